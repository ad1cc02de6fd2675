# SPDX-License-Identifier: Apache-2.0

import math
import re

import pytest

from fairness_lab.scenario import demand
from fairness_lab.scenario import programs
from fairness_lab.scenario import reader
from fairness_lab.scenario import values
from nova_fairness import exception

SMALL = """\
description: two VMs
duration: 20
nodes:
  node1: {cpus: [0]}
vms:
  a: {user: alice}
"""


def read(tmp_path, text):
    path = tmp_path / 'mine.yaml'
    path.write_text(text)
    return reader.read(path, programs.LABORATORY)


@pytest.mark.parametrize('name', programs.LABORATORY.names())
def test_every_scenario_of_the_package_can_be_read(name):
    found = reader.find(name, programs.LABORATORY)
    assert found.name == name
    assert set(found.load) <= set(found.vms)


def test_the_scenarios_of_the_issue_are_there():
    assert {
        'one-node-cpu',
        'spike',
        'many-against-one',
        'uncontended',
        'churn',
        'frozen-guest',
    } <= set(programs.LABORATORY.names())


def test_a_missing_key_has_a_default(tmp_path):
    found = read(tmp_path, SMALL)
    assert found.name == 'mine'
    assert found.agents.metric == 'DominantShareMetric'
    assert found.agents.policy == 'foresight'
    assert found.interval_s == 10
    assert found.users == {'alice': values.User('alice')}
    assert found.vms['a'].node == 'node1'
    assert found.vms['a'].vcpus == 1
    assert found.load == {}
    assert found.pairs == 0


def test_a_scenario_with_every_key_is_read(tmp_path):
    found = read(
        tmp_path,
        """\
name: all
description: everything
duration: 50
interval: 2
settle: 1.5
metric: UniformMetric
policy: thesis
max_weight_ratio: 5
pairs: 3
nodes:
  n1: {cpus: [1, 0], memory_mib: 2048, disk_mib_s: 50, network_mbit_s: 100}
  n2: {cpus: [1]}
users:
  alice: {weight: 2}
  bob: {}
vms:
  a:
    user: alice
    node: n1
    count: 2
    vcpus: 2
    memory_mib: 256
    disks: [{size_mib: 10, cache: writeback}, {}]
    nics: 1
  b: {user: bob, node: n2}
load:
  a:
    - {at: 0, cpu: 1.5, memory_mib: 100, disk_read_mib_s: max}
    - {at: 10, cpu: max, disk_write_mib_s: 3, net_send_mbit_s: 2.5}
events:
  - {at: 30, destroy: b}
  - {at: 5, start: b}
  - {at: 7, kill-agent: n2}
agent:
  fairness: {decay_factor: 0.3}
""",
    )
    assert found.name == 'all'
    assert found.nodes['n1'].cpu_numbers == (0, 1)
    assert found.users['alice'].weight == 2
    assert list(found.vms) == ['a-1', 'a-2', 'b']
    assert found.vms['a-2'].disks[0].cache == 'writeback'
    assert found.load['a-1'] == found.load['a-2']
    assert found.load['a-1'][0] == demand.DemandStep(
        0,
        1.5,
        memory_mib=100,
        disk_read_mib_s=math.inf,
        disk_write_mib_s=0,
    )
    assert found.load['a-1'][1].cpu == math.inf
    assert found.load['a-1'][1].disk_read_mib_s == math.inf
    assert found.load['a-1'][1].disk_write_mib_s == 3
    assert [event.at_s for event in found.events] == [5, 7, 30]
    assert found.events[1].action is values.ScenarioAction.KILL_AGENT
    assert found.starts_late('b')
    assert not found.starts_late('a-1')
    assert found.agents.options == {'fairness': {'decay_factor': '0.3'}}
    assert found.agents.max_weight_ratio == 5


@pytest.mark.parametrize(
    ('step', 'vcpus', 'expected'),
    [
        ('load: open', 1, ('open', 1, 0.0)),
        ('load: closed, think_s: 0.2', 2, ('closed', 2, 0.2)),
        ('load: pool, think_s: 0.2, threads: 8', 2, ('pool', 8, 0.2)),
        ('load: cron, period_s: 10', 2, ('cron', 2, 10.0)),
    ],
)
def test_a_vm_may_want_the_cpu_by_turns(tmp_path, step, vcpus, expected):
    text = SMALL.replace('user: alice', f'user: alice, vcpus: {vcpus}')
    text += f'load: {{a: [{{at: 0, cpu: 0.5, {step}}}, {{at: 5, cpu: 1}}]}}\n'
    first, second = read(tmp_path, text).load['a']
    assert first.cpu == 0.5
    load, threads, wait_s = expected
    assert first.cycle == demand.DemandCycle(
        demand.CpuLoad(load), threads, wait_s
    )
    assert second == demand.DemandStep(5, 1.0)


def test_a_longer_run_moves_load_and_events_in_proportion(tmp_path):
    text = SMALL + 'load: {a: [{at: 0, cpu: 1}, {at: 5, cpu: 0}]}\n'
    text += 'events: [{at: 10, freeze: a}]\n'
    found = read(tmp_path, text).with_duration(40)
    assert found.duration_s == 40
    assert [step.at_s for step in found.load['a']] == [0, 10]
    assert found.events[0].at_s == 20


@pytest.mark.parametrize(
    ('old', 'new', 'line', 'says'),
    [
        ('duration: 20', 'duration: -1', 2, 'a number above 0'),
        ('duration: 20', 'duration: soon', 2, "got 'soon'"),
        ('duration: 20', 'duration: .nan', 2, 'a number above 0'),
        ('duration: 20', 'duraton: 20', 1, 'keys rounds and duration'),
        ('duration: 20', 'duration: 20\nmetrik: X', 3, 'did you mean metric?'),
        ('duration: 20', 'duration: 20\ninterval: 0', 3, 'at least 0.2'),
        ('duration: 20', 'duration: 20\nduration: 3', 3, 'every name once'),
        ('cpus: [0]', 'cpus: 0', 4, 'a list'),
        ('cpus: [0]', 'cpus: []', 4, 'numbers of CPUs'),
        ('cpus: [0]', 'cpus: [-1]', 4, 'at least 0'),
        ('cpus: [0]', 'cpu: [0]', 4, 'the key cpus'),
        ('cpus: [0]', 'cpus: [0], memory_mib: 5', 4, 'at least 96'),
        ('  node1: {cpus: [0]}', '  {}', 4, '1 to 30 nodes'),
        ('node1:', '"no de":', 4, 'letters, digits'),
        ('user: alice', 'vcpus: 1', 6, 'the key user'),
        ('user: alice', 'user: alice, vcpus: 0', 6, 'at least 1'),
        ('user: alice', 'user: alice, node: node2', 6, 'did you mean node1?'),
        ('user: alice', 'user: alice, disks: [{cache: x}]', 6, 'writeback'),
        ('user: alice', 'user: [alice]', 6, 'got a list'),
        ('user: alice', 'user: alice, count: 1000', 6, 'at most 200'),
        ('user: alice', 'user: alice, vpcus: 2', 6, 'did you mean vcpus?'),
    ],
)
def test_a_wrong_value_is_named_with_its_line(tmp_path, old, new, line, says):
    assert old in SMALL
    with pytest.raises(exception.BadScenario) as caught:
        read(tmp_path, SMALL.replace(old, new))
    message = str(caught.value)
    assert f'mine.yaml, line {line}: ' in message
    assert says in message


@pytest.mark.parametrize(
    ('more', 'says'),
    [
        ('load: {b: [{at: 0}]}', 'a VM or group out of a'),
        ('load: {a: [{at: 0, cpu: 2}]}', 'CPUs from 0 to 1, or max'),
        ('load: {a: [{cpu: 1}]}', 'the key at'),
        ('load: {a: [{at: 0, cpu: 1, load: cold}]}', 'one of open, closed'),
        ('load: {a: [{at: 0, cpu: 1, load: closed}]}', 'the key think_s'),
        (
            'load: {a: [{at: 0, cpu: 1, load: pool, think_s: 1}]}',
            'the key threads',
        ),
        ('load: {a: [{at: 0, cpu: 1, load: cron}]}', 'the key period_s'),
        ('load: {a: [{at: 0, cpu: 1, think_s: 1}]}', 'unknown key think_s'),
        (
            'load: {a: [{at: 0, load: cron, period_s: 1}]}',
            'how much cpu, since it says which load',
        ),
        (
            'load: {a: [{at: 0, cpu: max, load: cron, period_s: 1}]}',
            'CPUs and not max',
        ),
        (
            'load: {a: [{at: 0, cpu: 1, load: closed, think_s: 1}]}',
            'less than 1 CPUs',
        ),
        ('load: {a: [{at: 5}, {at: 5}]}', 'times that rise'),
        ('load: {a: [{at: 25}]}', 'stay below 20 s'),
        ('load: {a: [{at: 0, disk_read_mib_s: 1}]}', 'a has no disk'),
        ('load: {a: [{at: 0, net_send_mbit_s: 1}]}', 'a has no NIC'),
        ('load: {a: [{at: 0, memory_mib: 96}]}', 'at most 32'),
        ('load: {a: {at: 0}}', 'a list'),
        ('events: [{at: 1, stop: a}]', 'unknown key stop'),
        ('events: [{at: 1, start: node1}]', 'one of a'),
        ('events: [{at: 1}]', 'exactly one of start, destroy'),
        ('events: [{at: 1, freeze: a, thaw: a}]', 'exactly one of'),
        ('events: [{at: 20, freeze: a}]', 'a time below 20 s'),
        ('events: [{at: 1, cut: a}]', 'one of node1'),
        ('events: [{at: 1, redis: stop}]', 'one of freeze, thaw, kill'),
        ('events: [{at: 1, redis: kill}]', '"redis: true"'),
        ('events: [{at: 1, move: a}]', '"to: NODE" together'),
        ('events: [{at: 1, freeze: a, to: node1}]', '"to: NODE" together'),
        ('events: [{at: 1, move: a, to: node2}]', 'one of node1'),
        ('redis: perhaps', 'one of true, false'),
        ('agent: {fairness: [1]}', 'a section of names'),
        ('max_weight_ratio: 0.5', 'at least 1'),
        ('pairs: 1.5', 'a whole number'),
        ('load: [', 'expected YAML'),
        ('users: {bob: {}}', 'one of bob'),
        ('users: {bob: {wait: 1}}', 'did you mean weight?'),
    ],
)
def test_a_wrong_load_or_event_is_named(tmp_path, more, says):
    with pytest.raises(exception.BadScenario, match=re.escape(says)) as caught:
        read(tmp_path, SMALL + more + '\n')
    assert re.search(r'mine\.yaml, line \d+: ', str(caught.value))


@pytest.mark.parametrize(
    ('old', 'new', 'line', 'key'),
    [
        ('duration: 20', 'duration: 20\nseed: 1', 3, 'seed'),
        ('duration: 20', 'duration: 20\nreports: {}', 3, 'reports'),
        ('duration: 20', 'duration: 20\ngenerate: {}', 3, 'generate'),
        ('cpus: [0]', 'cpus: [0], speed: 2', 4, 'speed'),
        ('cpus: [0]', 'cpus: [0], count: 2', 4, 'count'),
        ('user: alice', 'user: alice, loop: open', 6, 'loop'),
        (
            '{user: alice}',
            '{user: alice}\nload: {a: [{at: 0, cpu: 1, every: 5, for: 1}]}',
            7,
            'every',
        ),
    ],
)
def test_a_key_of_the_simulator_alone_is_left_to_it(
    tmp_path, old, new, line, key
):
    assert old in SMALL
    with pytest.raises(exception.BadScenario) as caught:
        read(tmp_path, SMALL.replace(old, new))
    message = str(caught.value)
    assert f'mine.yaml, line {line}: ' in message
    assert (
        f'expected no key {key}, which only nova-fairness-sim understands'
        in message
    )


def test_a_length_may_be_told_in_rounds(tmp_path):
    found = read(
        tmp_path, SMALL.replace('duration: 20', 'rounds: 4\ninterval: 2.5')
    )
    assert found.duration_s == 10


@pytest.mark.parametrize(
    ('option', 'says'),
    [
        ('decay_factor: 2', 'a number above 0, at most 1'),
        ('decay_factor: 0', 'a number above 0'),
        ('largest_step: 0.5', 'at least 1'),
        ('weight_tolerance: -1', 'at least 0'),
    ],
)
def test_an_option_that_no_agent_would_take_is_refused(tmp_path, option, says):
    with pytest.raises(exception.BadScenario, match=says):
        read(tmp_path, SMALL + f'agent: {{fairness: {{{option}}}}}\n')


@pytest.mark.parametrize('text', ['', '[1, 2]', 'words', '\t{', '\x00'])
def test_a_file_that_is_no_scenario_is_refused(tmp_path, text):
    with pytest.raises(exception.BadScenario, match=r'line 1'):
        read(tmp_path, text)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(exception.BadScenario, match=r'nowhere\.yaml'):
        reader.find(str(tmp_path / 'nowhere.yaml'), programs.LABORATORY)


def test_an_unknown_name_lists_those_that_exist():
    with pytest.raises(exception.BadScenario, match='one-node-cpu'):
        reader.find('one-node-gpu', programs.LABORATORY)


def test_a_file_with_copies_of_a_name_is_refused(tmp_path):
    text = SMALL + '  a-1: {user: bob}\n'
    with pytest.raises(exception.BadScenario, match='a-1 exists'):
        read(tmp_path, text.replace('{user: alice}', '{user: x, count: 2}'))


@pytest.mark.parametrize(
    ('more', 'redis', 'keys'),
    [
        ('', False, False),
        ('redis: true', True, True),
        ('redis: true\nkeys: false', True, False),
    ],
)
def test_one_node_has_redis_and_keys_on_request(tmp_path, more, redis, keys):
    found = read(tmp_path, f'{SMALL}{more}\n')
    assert (found.redis, found.keys) == (redis, keys)


def test_several_nodes_have_both_unless_told_otherwise(tmp_path):
    text = SMALL.replace('[0]}', '[0]}\n  node2: {cpus: [1]}')
    text = text.replace('user: alice', 'user: alice, node: node1')
    found = read(tmp_path, text)
    assert found.redis
    assert found.keys
    assert not read(tmp_path, text + 'redis: false\n').redis


def test_events_between_nodes_are_read(tmp_path):
    text = (
        SMALL
        + """\
redis: true
events:
  - {at: 1, start-agent: node1}
  - {at: 2, redis: flush}
  - {at: 3, move: a, to: node1}
"""
    )
    found = read(tmp_path, text)
    assert found.events == (
        values.ScenarioEvent(1, values.ScenarioAction.START_AGENT, 'node1'),
        values.ScenarioEvent(2, values.ScenarioAction.FLUSH_REDIS, ''),
        values.ScenarioEvent(3, values.ScenarioAction.MOVE, 'a', 'node1'),
    )
    assert found.joins_late('node1')
    assert not found.starts_late('a')
