# SPDX-License-Identifier: Apache-2.0

"""Who may do what."""

from oslo_config import cfg
import pytest
import yaml

from api_ext import enforcement
from api_ext import policies
from api_ext import routes
from tests.unit.api_ext import fake_cloud

OPERATORS = {'admin', 'auditor'}
EVERYBODY = {'admin', 'auditor', 'alice', 'bob', 'carol'}

ALLOWED = {
    'os_fairness_api:plugins:list': EVERYBODY,
    'os_fairness_api:openapi:show': EVERYBODY,
    'os_fairness_api:hosts:set-metric': {'admin'},
    'os_fairness_api:hosts:set-policy': {'admin'},
    'os_fairness_api:hosts:pause': {'admin'},
    'os_fairness_api:hosts:resume': {'admin'},
    'os_fairness_api:hosts:reset': {'admin'},
    'os_fairness_api:hosts:list': OPERATORS,
    'os_fairness_api:hosts:show': OPERATORS,
    'os_fairness_api:hosts:preview': OPERATORS,
    'os_fairness_api:users:list': OPERATORS,
    'os_fairness_api:users:show': {*OPERATORS, 'alice'},
    'os_fairness_api:projects:list': OPERATORS,
    'os_fairness_api:projects:show': {*OPERATORS, 'alice', 'bob'},
    'os_fairness_api:instances:show': {*OPERATORS, 'alice', 'bob'},
    'os_fairness_api:requests:list': {*OPERATORS, 'alice', 'bob'},
    'os_fairness_api:requests:list-all': OPERATORS,
    'os_fairness_api:requests:show': {*OPERATORS, 'alice', 'bob'},
    'os_fairness_api:requests:cancel': {'admin', 'alice', 'bob'},
    'os_fairness_api:requests:release': {'admin'},
    'os_fairness_api:requests:first': {'admin'},
    'os_fairness_api:requests:unfirst': {'admin'},
    'os_fairness_api:requests:hold': {'admin', 'alice', 'bob'},
    'os_fairness_api:requests:unhold': {'admin', 'alice', 'bob'},
    'os_fairness_api:requests:hold-as-operator': {'admin'},
    'os_fairness_api:requests:extend': {'admin', 'alice', 'bob'},
    'os_fairness_api:limits:list': {*OPERATORS, 'alice', 'bob'},
    'os_fairness_api:limits:list-all': OPERATORS,
    'os_fairness_api:limits:set': {'admin'},
    'os_fairness_api:orders:preview': OPERATORS,
    'os_fairness_api:groups:list': {*OPERATORS, 'alice', 'bob'},
    'os_fairness_api:groups:list-all': OPERATORS,
    'os_fairness_api:groups:set': {'admin', 'alice', 'bob'},
    'os_fairness_api:shares:list': {*OPERATORS, 'alice', 'bob'},
    'os_fairness_api:shares:list-all': OPERATORS,
    # Who manages the red project, too: see test_shares.py.
    'os_fairness_api:shares:set': {'admin'},
    # With tokens of a domain alone: see test_tokens.py.
    'os_fairness_api:shares:set-domain': set(),
    'os_fairness_api:preemptions:list': {*OPERATORS, 'alice', 'bob'},
    'os_fairness_api:preemptions:list-all': OPERATORS,
    'os_fairness_api:preemptions:show': {*OPERATORS, 'alice', 'bob'},
    'os_fairness_api:partition:list': OPERATORS,
    'os_fairness_api:partition:show': OPERATORS,
    'os_fairness_api:partition:move': {'admin'},
    'os_fairness_api:partition:cancel': {'admin'},
    'os_fairness_api:partition:target': {'admin'},
    'os_fairness_api:plans:list': OPERATORS,
    'os_fairness_api:plans:show': OPERATORS,
    'os_fairness_api:plans:create': {'admin'},
    'os_fairness_api:plans:approve': {'admin'},
    'os_fairness_api:plans:stop': {'admin'},
    'os_fairness_api:prices:list': {*OPERATORS, 'alice', 'bob'},
    'os_fairness_api:prices:history': OPERATORS,
    # Managers of the red project alone.
    'os_fairness_api:reasons:manager': set(),
    'os_fairness_api:reasons:operator': OPERATORS,
    'os_fairness_api:capacity:show': EVERYBODY,
    'os_fairness_api:status:show': OPERATORS,
}
"""Who may, of something that is Alice's in the red project."""


def test_the_reference_table_names_every_policy_rule():
    assert {rule.name for rule in policies.list_rules()} == set(ALLOWED)


@pytest.mark.parametrize('rule', ALLOWED)
def test_default_policies_equal_the_reference_table(cloud, rule):
    target = {'user_id': fake_cloud.ALICE, 'project_id': fake_cloud.RED}
    allowed = {
        who
        for who, values in fake_cloud.TOKENS.items()
        if cloud.enforcement.allows(
            rule,
            target,
            fake_cloud.context.RequestContext(overwrite=False, **values),
        )
    }
    assert allowed == ALLOWED[rule]


def test_an_own_instance_of_another_project_is_not_shown(cloud):
    values = {**fake_cloud.TOKENS['alice'], 'project_id': fake_cloud.BLUE}
    assert not cloud.enforcement.allows(
        'os_fairness_api:instances:show',
        {'user_id': fake_cloud.ALICE, 'project_id': fake_cloud.RED},
        fake_cloud.context.RequestContext(overwrite=False, **values),
    )


def test_every_route_checks_an_existing_policy_rule():
    names = {rule.name for rule in policies.list_rules()}
    for route in routes.ROUTES:
        assert set(route.rules) <= names


def test_every_rule_names_an_url_that_exists():
    known = {f'{route.method} {route.path}' for route in routes.ROUTES}
    named = {
        f'{operation["method"]} {operation["path"].partition(" ")[0]}'
        for rule in policies.list_rules()
        for operation in rule.operations
    }
    assert named == known


def test_a_policy_file_of_the_operator_overrides_defaults(tmp_path):
    path = tmp_path / 'policy.yaml'
    path.write_text(yaml.safe_dump({'os_fairness_api:hosts:list': '@'}))
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    asks = enforcement.Enforcement(conf)
    conf.set_override('policy_file', str(path), group='oslo_policy')
    asks = enforcement.Enforcement(conf)
    alice = fake_cloud.context.RequestContext(
        overwrite=False, **fake_cloud.TOKENS['alice']
    )
    assert asks.allows('os_fairness_api:hosts:list', {}, alice)
    assert not asks.allows('os_fairness_api:hosts:show', {}, alice)
