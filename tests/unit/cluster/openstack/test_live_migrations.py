# SPDX-License-Identifier: Apache-2.0

"""What Nova says of live migrations and server groups."""

import pytest

from nova_fairness import exception
from nova_fairness.cluster.openstack import live_migrations
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.model import request
from tests.fixtures import fake_cloud


@pytest.fixture
def cloud():
    made = fake_cloud.FakeCloud()
    made.migrates_at_once = False
    for name in ('h1', 'h2'):
        made.add_host(name)
    made.add_server('s1')
    made.build('s1', 'h1', {'VCPU': 1, 'MEMORY_MB': 100})
    return made


def test_migrations_of_a_server_come_newest_first(cloud):
    asked = live_migrations.LiveMigrations(cloud.apis.nova)
    nova = nova_module.Nova(cloud.apis.nova)
    nova.live_migrate('s1', 'h2')
    assert asked.progress('s1') == live_migrations.Progress(1, 1024)
    [running] = asked.running_migrations(0.0)
    assert running == live_migrations.Migration(1, 's1', 'running', 'h1', 'h2')
    assert running.is_running
    with pytest.raises(exception.CloudRefused):
        nova.live_migrate('s1', 'h2')
    asked.cancel('s1', 1)
    assert asked.progress('s1') is None
    assert asked.running_migrations(0.0) == []
    nova.live_migrate('s1', 'h2')
    cloud.end_migration('s1')
    second, first = asked.migrations_of_server('s1')
    assert (first.is_cancelled, first.is_done) == (True, False)
    assert (second.is_cancelled, second.is_done) == (False, True)


def test_other_kinds_of_migrations_are_left_out(cloud):
    cloud.begin_migration('s1', 'h2')
    cloud.migrations[0]['migration_type'] = 'resize'
    assert (
        live_migrations.LiveMigrations(cloud.apis.nova).migrations_of_server(
            's1'
        )
        == []
    )


def test_groups_whose_rule_binds_are_known_by_their_members(cloud):
    rules = {
        'apart': {'policy': 'anti-affinity'},
        'two': {
            'policy': 'anti-affinity', 'rules': {'max_server_per_host': 2},
        },
        'many': {
            'policy': 'anti-affinity',
            'rules': {'max_server_per_host': 10**30},
        },
        'together': {'policy': 'affinity'},
        'soft': {'policy': 'soft-affinity'},
    }  # fmt: skip
    for name, each in rules.items():
        cloud.groups[name] = [f's-{name}']
        cloud.policies[name] = each
    apart, together = request.Rule.APART, request.Rule.TOGETHER
    assert live_migrations.LiveMigrations(
        cloud.apis.nova
    ).strict_group_by_member() == {
        's-apart': request.Group('apart', apart, 1),
        's-two': request.Group('two', apart, 2),
        's-many': request.Group('many', apart, request.LARGEST),
        's-together': request.Group('together', together, 1),
    }


@pytest.mark.parametrize(
    'answer', ['{}', '{"migrations": 3}', '{"migrations": [{"id": "x"}]}', 503]
)
def test_an_unreadable_answer_of_nova_is_reported(cloud, answer):
    cloud.broken['GET /os-migrations'] = answer
    asked = live_migrations.LiveMigrations(cloud.apis.nova)
    for do in (
        lambda: asked.migrations_of_server('s1'),
        lambda: asked.running_migrations(9.0),
    ):
        with pytest.raises(exception.CloudAway):
            do()
