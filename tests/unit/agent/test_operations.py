# SPDX-License-Identifier: Apache-2.0

"""What an agent answers, and that the reference page says the same."""

import dataclasses
import json
import types

import pytest

from nova_fairness import exception
from nova_fairness.agent import operations
from nova_fairness.agent.comms import peering
from nova_fairness.agent.explain import history
from nova_fairness.agent.inputs import preferences
from nova_fairness.agent.round import preview
from nova_fairness.exchange import desired_state
from nova_fairness.exchange import desired_store
from nova_fairness.model import report
from nova_fairness.model import round as round_model
from tests.fixtures import documented
from tests.fixtures import manual_fields
from tests.unit.agent.inputs import test_active_settings

KEYS = {
    'peers': '<host>',
    'quarantined': '<plugin>',
    'exchange': '<name>',
    'transport': '<name>',
    'wanting': '<control>',
    'usage_parts': '<resource>',
    'weight_ratios': '<control>',
    'applied_units': '<control>',
    'controls': '<control>',
    'without_effect': '<uuid>',
    'idle': '<uuid>',
    'instances': '<uuid>',
    'users': '<user>',
    'usage_quotas': '<resource>',
    'projects': '<project>',
    'by_resource': '<resource>',
    'endowment': '<resource>',
    'quota': '<resource>',
    'usage': '<resource>',
    'owner_usage': '<resource>',
    'weights': '<control>',
}


class FakePeering(peering.Peering):
    """A domain that is a file and two peers that are told about."""

    def __init__(self, path):
        super().__init__()
        self._desired = desired_state.DesiredState(
            'n1', desired_store.FileStore(path / 'desired.json')
        )
        self.exchange = types.SimpleNamespace(
            view=lambda now_s, metric: report.View(
                {}, {'fake': 0.0, 'n2': 1.5}, {'n3': 'silent for 40 s'}
            )
        )

    @property
    def desired(self):
        return self._desired

    def newest(self):
        return self._desired.current()

    def statistics(self):
        return {'exchange': {'sent': 3}, 'transport': {'dropped': 0}}


class FakeAgent:
    """Operations on a node in memory."""

    def __init__(self, tmp_path, peers):
        self.domain = test_active_settings.FakeDomain(tmp_path)
        self.domain.regime._newest = peers.newest
        self.newest = None
        self.history = history.WeightHistory()
        self.operations = operations.AgentOperations(
            operations.Sources(
                boot_id='boot',
                peering=peers,
                regime=self.domain.regime,
                orders=self.domain.orders,
                preferences=preferences.Preferences(
                    tmp_path / 'preferences.json'
                ),
                newest_round=lambda: self.newest,
                clock=lambda: 0.0,
                history=self.history,
                previewer=preview.Previewer(
                    self.domain.host.cycle._parts.decision._scales
                ),
                wall_clock=lambda: 60.0,
            )
        )

    def rounds(self, count):
        for _ in range(count):
            self.newest = self.domain.rounds(1)
            self.history.add(self.newest)
        return self.newest


@pytest.fixture
def agent(tmp_path):
    return FakeAgent(tmp_path, FakePeering(tmp_path))


def fields(value, path, key=''):
    """Path of each field with the values that occur there."""
    if '.' in path:
        yield path.removesuffix('[]'), value
    if isinstance(value, dict):
        for inner, item in value.items():
            yield from fields(item, f'{path}.{KEYS.get(key, inner)}', inner)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                for inner, part in item.items():
                    yield from fields(part, f'{path}[].{inner}', inner)


def shadow_of(done, name, problem=''):
    """A shadow by which each VM is as heavy as its place in the round."""
    keys = [] if problem else [vm.key for vm in done.incarnations]
    heavy = {key: float(place) for place, key in enumerate(keys)}
    users = dict.fromkeys(('ann', 'bob'), 0.25) if not problem else {}
    return round_model.ShadowHeaviness(
        name, done.number, problem, heavy, heavy, users
    )


def answers(agent):
    """Every kind of answer by the method's name on the page."""
    asked = agent.operations
    return {
        'set_metric': asked.choose('UniformMetric', None),
        'pause': asked.pause(),
        'reset': asked.reset(),
        'set_preferences': asked.prefer({'a-1': 3.0}),
        'get_status': asked.status(),
        'list_instances': asked.instances(),
        'list_users': asked.users(),
        'list_projects': asked.projects(),
        'get_usage': asked.usage(),
        'get_idle': asked.idle(0.0),
        'get_lacking': asked.lacking(),
        'get_plugins': asked.plugins(),
        'get_preview': asked.preview(None),
    } | ({'get_instance': asked.instance('a-1')} if agent.newest else {})


def test_the_page_names_every_field_of_every_answer_with_its_type(agent):
    agent.rounds(3)
    guard = agent.domain.host.cycle._parts.guard
    with pytest.raises(exception.PluginMisbehaved):
        guard.call('Wild', lambda: 1 / 0)
    agent.domain.host.control.without_effect = lambda: {'a-1/1/1': 'a reason'}
    agent.rounds(1)
    agent.newest = dataclasses.replace(
        agent.newest,
        unsaved=('disk full',),
        shadow=shadow_of(agent.newest, 'AssetFairnessMetric'),
    )
    said = manual_fields.fields_of_answers()
    found = {}
    for method, answer in answers(agent).items():
        assert json.loads(json.dumps(answer, allow_nan=False)) == answer
        for path, value in fields(answer, method):
            found[path] = value
            assert documented.has_documented_type(value, said.get(path, '')), (
                path
            )
    assert found.keys() == said.keys()


def test_the_reference_page_shows_each_field_once_with_its_description():
    directive = manual_fields.load('answer_fields')
    text = directive.text('get_idle', 'IdleFields')
    assert '\n\n``get_idle.round`` (integer or null)\n    The newest' in text
    assert text.endswith(
        '(object of numbers)\n    Seconds for which VMs have been idle, by'
        ' UUID.\n'
    )
    assert text.count('``get_idle.') == 3


def test_operations_answer_before_the_first_round_has_ended(agent):
    said = manual_fields.fields_of_answers()
    for method, answer in answers(agent).items():
        for path, value in fields(answer, method):
            assert documented.has_documented_type(value, said[path]), path
    agent.rounds(1)  # measured nothing yet
    for method, answer in answers(agent).items():
        for path, value in fields(answer, method):
            assert documented.has_documented_type(value, said[path]), path


def test_a_choice_is_applied_in_the_announced_round(agent):
    agent.rounds(2)
    told = agent.operations.choose('UniformMetric', None)
    assert (told['epoch'], told['policy']) == (1, 'feedback')
    done = agent.rounds(1)
    assert done.number == told['from_round']
    assert (done.metric, done.epoch) == ('UniformMetric', 1)
    told = agent.operations.pause()
    assert agent.rounds(1).number == told['from_round']
    assert agent.newest.paused


def test_a_harmful_metric_and_policy_are_reported_in_answers(agent):
    assert agent.operations.status()['warning'] == ''
    for metric, begin in (
        ('GreedinessMetric', 'metric GreedinessMetric with policy feedback'),
        ('AssetFairnessMetric', ''),
    ):
        told = agent.operations.choose(metric, None)['warning']
        assert told.startswith(begin)
        agent.rounds(1)
        assert agent.operations.status()['warning'] == told


def test_an_unknown_plugin_is_refused_before_any_node_takes_it(agent):
    with pytest.raises(exception.UnknownPlugin, match='UniformMetric'):
        agent.operations.choose('NoSuchMetric', None)
    with pytest.raises(exception.UnknownPlugin, match='feedback'):
        agent.operations.take_over('UniformMetric', 'nonesuch', 2, 'n2')
    assert agent.rounds(1).epoch == 0


def test_the_epoch_of_another_node_is_adopted_unchanged(agent):
    told = agent.operations.take_over('UniformMetric', 'thesis', 7, 'n9')
    assert (told['epoch'], told['origin']) == (7, 'n9')
    # Whoever asks again gets the same answer.
    assert agent.operations.take_over('UniformMetric', 'thesis', 7, 'n9')
    done = agent.rounds(1)
    assert (done.metric, done.policy, done.epoch) == (
        'UniformMetric',
        'thesis',
        7,
    )


def test_an_older_epoch_is_refused_with_the_newer_one(agent):
    agent.operations.take_over('UniformMetric', None, 7, 'n9')
    with pytest.raises(exception.Superseded, match='epoch 7 of n9'):
        agent.operations.take_over('GreedinessMetric', None, 6, 'n1')


def test_a_node_names_choices_that_it_could_not_apply(agent):
    agent.operations._sources.peering.desired.offer(
        test_active_settings.desired.DesiredChoice(
            4, 'NoSuchMetric', 'feedback', 'n2'
        ),
        trusted=True,
    )
    agent.rounds(1)
    told = agent.operations.status()
    assert told['metric'] == 'DominantShareMetric'
    assert (told['epoch'], told['desired']['epoch']) == (0, 4)
    assert 'NoSuchMetric' in told['refused']


def test_a_node_without_a_domain_can_pause_but_not_choose_a_metric(
    tmp_path,
):
    alone = FakeAgent(tmp_path, peering.Peering())
    assert alone.operations.pause()['paused']
    assert alone.operations.status()['desired'] == {}
    with pytest.raises(exception.StateError, match='transport_url'):
        alone.operations.choose('UniformMetric', None)


def test_use_of_users_is_given_as_a_fraction_of_their_quota(agent):
    agent.rounds(20)
    users = agent.operations.users()['users']
    # Both have half of one CPU, and both use it up.
    for user in ('ann', 'bob'):
        assert users[user]['usage_quotas']['cpu_time'] == pytest.approx(
            1.0, abs=0.06
        )
    assert [users[user]['instances_here_count'] for user in users] == [2, 1]


def test_heaviness_by_the_shadow_metric_stands_beside_the_other(agent):
    done = agent.rounds(3)
    assert agent.operations.status()['shadow'] is None
    assert agent.operations.users()['shadow_metric'] == ''
    agent.newest = dataclasses.replace(
        done, shadow=shadow_of(done, 'AssetFairnessMetric')
    )
    said = agent.operations.status()['shadow']
    assert said == {'metric': 'AssetFairnessMetric', 'round': 3, 'problem': ''}
    key = 'shadow_heaviness_quotas'
    told = agent.operations.instances()
    assert told['shadow_metric'] == 'AssetFairnessMetric'
    assert [vm[key] for vm in told['instances']] == [
        float(place) for place in range(len(done.incarnations))
    ]
    users = agent.operations.users()['users']
    assert {one[key] for one in users.values()} == {0.25}
    projects = agent.operations.projects()['projects']
    assert sum(one[key] for one in projects.values()) == sum(
        range(len(done.incarnations))
    )
    last = done.incarnations[-1].instance.uuid
    why = agent.operations.instance(last)['instance']['heaviness']
    assert why['shadow'] == len(done.incarnations) - 1
    assert why['shadow_metric'] == 'AssetFairnessMetric'


def test_a_shadow_metric_that_fails_is_named_and_has_no_numbers(agent):
    done = agent.rounds(3)
    agent.newest = dataclasses.replace(
        done, shadow=shadow_of(done, 'Wild', 'Wild: raised ' + 'x' * 1000)
    )
    said = agent.operations.status()['shadow']
    assert said['problem'].startswith('Wild: raised x')
    assert len(said['problem']) == 300
    for told in (
        *agent.operations.instances()['instances'],
        *agent.operations.users()['users'].values(),
        *agent.operations.projects()['projects'].values(),
    ):
        assert told['shadow_heaviness_quotas'] is None
        assert told['heaviness_quotas'] is not None


def test_projects_of_a_node_are_the_sums_of_its_vms(agent):
    agent.rounds(20)
    told = agent.operations.projects()
    assert (told['entity'], told['scope']) == ('user', 'host')
    projects = told['projects']
    assert list(projects) == ['project-ann', 'project-bob']
    assert projects['project-ann']['instances_here_count'] == 2
    # One CPU for two users: half of it is an equal part.
    for one in projects.values():
        assert one['usage_quotas']['cpu_time'] == pytest.approx(1.0, abs=0.06)
    vms = agent.newest.measured.instance_heaviness
    assert projects['project-ann']['heaviness_quotas'] == pytest.approx(
        vms[:2].sum()
    )


def test_projects_replace_users_where_projects_are_compared(agent):
    agent.domain.configure(entity='project')
    agent.rounds(3)
    told, users = agent.operations.projects(), agent.operations.users()
    assert (told['entity'], told['scope']) == ('project', 'domain')
    assert users['entity'] == 'project'
    assert told['projects'] == users['users']
    assert list(told['projects']) == ['project-ann', 'project-bob']


def test_installed_plugins_are_listed_with_their_descriptions(agent):
    told = agent.operations.plugins()
    names = [item['name'] for item in told['metrics']]
    assert 'GreedinessMetric' in names
    assert names == sorted(names)
    assert {'feedback', 'thesis'} <= {
        item['name'] for item in told['policies']
    }
    every = [*told['metrics'], *told['policies']]
    assert all(item['description'] for item in every)


def test_a_vm_unknown_to_the_agent_is_named(agent):
    with pytest.raises(exception.UnknownInstance, match='VM a-1: unknown'):
        agent.operations.instance('a-1')
    agent.rounds(2)
    with pytest.raises(exception.UnknownInstance, match='VM x-9: unknown'):
        agent.operations.instance('x-9')


def test_an_explanation_names_the_actions_of_the_round(agent):
    agent.rounds(20)
    why = agent.operations.instance('b-3')['instance']
    vm = agent.operations.instances()['instances'][2]
    assert why['uuid'] == vm['uuid'] == 'b-3'
    assert why['weights'] == vm['weight_ratios']
    assert why['heaviness']['total'] == vm['heaviness_quotas']
    assert why['endowment']['cpu_time'] == pytest.approx(1 / 3)
    assert why['quota']['cpu_time'] == pytest.approx(0.5)
    assert why['usage']['cpu_time'] == pytest.approx(0.5, abs=0.03)
    assert why['owner_usage'] == pytest.approx(why['usage'])
    assert 'cpu_time' in why['contended']
    assert 'cpu_time' in why['waiting']
    assert why['weights_last_hour'][-1]['weights'] == pytest.approx(
        why['weights'], rel=0.02
    )
