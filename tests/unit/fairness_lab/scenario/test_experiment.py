# SPDX-License-Identifier: Apache-2.0


"""Scenarios as the simulator runs them, and what is refused to it."""

import pathlib
import textwrap

import numpy as np
import pytest

from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import experiment
from fairness_lab.scenario import programs
from fairness_lab.scenario import reader as lab_file
from fairness_lab.scenario import values
from nova_fairness import exception
from nova_fairness.model import resources
from tests.unit.fairness_lab.node_sim import build

LEAST = """\
description: a test
rounds: 10
interval: 2
nodes:
  n: {cpus: [0]}
vms:
  a: {user: u}
"""


def read(tmp_path, text, **overrides):
    path = tmp_path / 'mine.yaml'
    path.write_text(textwrap.dedent(text))
    return experiment.read(path, overrides)


def wrong(tmp_path, text):
    with pytest.raises(exception.BadScenario) as caught:
        read(tmp_path, text)
    return str(caught.value).removeprefix(str(tmp_path / 'mine.yaml'))


@pytest.mark.parametrize('name', programs.SIMULATOR.names())
def test_every_scenario_of_the_set_can_be_read(name):
    found = experiment.find(name)
    assert found.name == name
    assert found.cloud.rounds >= 50
    assert len(found.cloud.description) > 40


def test_the_set_is_as_large_as_promised():
    clouds = [experiment.find(n).cloud for n in programs.SIMULATOR.names()]
    assert len(clouds) >= 12
    assert {1, 1000} <= {len(cloud.nodes) for cloud in clouds}
    assert any(cloud.coupled.any() for cloud in clouds)
    assert any(len(set(cloud.user_weight)) > 1 for cloud in clouds)
    assert any(len(set(cloud.speed)) > 1 for cloud in clouds)


NOT_HERE = {'redis-away', 'redis-flushed', 'rolling-restart'}


@pytest.mark.parametrize(
    'name', sorted(set(programs.LABORATORY.names()) - NOT_HERE)
)
def test_a_scenario_of_the_laboratory_means_the_same(name):
    there = lab_file.find(name, programs.LABORATORY)
    here = experiment.read(programs.LABORATORY.folder / f'{name}.yaml')
    cloud = here.cloud
    assert cloud.interval_s == there.interval_s
    assert cloud.rounds == np.ceil(there.duration_s / there.interval_s)
    assert cloud.vms == tuple(sorted(there.vms))
    for row, vm in enumerate(cloud.vms):
        owner = cloud.users[cloud.user_of_vm[row]]
        assert owner == there.vms[vm].user
    assert here.agents.metric == there.agents.metric
    assert here.agents.policy == there.agents.policy


@pytest.mark.parametrize('name', sorted(NOT_HERE))
def test_a_scenario_of_the_laboratory_alone_is_refused(name):
    with pytest.raises(
        exception.BadScenario, match='only nova-fairness-lab understands'
    ):
        experiment.read(programs.LABORATORY.folder / f'{name}.yaml')


def test_a_minimal_scenario_is_read(tmp_path):
    cloud = read(tmp_path, LEAST).cloud
    assert (cloud.users, cloud.vms, cloud.nodes) == (('u',), ('a',), ('n',))
    assert cloud.capacity[0, build.CPU] == values.SPEED


def test_load_and_events_of_vms_are_read_over_time(tmp_path):
    cloud = read(
        tmp_path,
        LEAST
        + """\
load:
  a:
    - {at: 0, cpu: max}
    - {at: 8, cpu: 0.5, disk_read_mib_s: 3}
events:
  - {at: 4, freeze: a}
  - {at: 6, thaw: a}
  - {at: 12.5, destroy: a}
""",
    ).cloud
    changes = cloud.changes
    told = list(
        zip(
            changes.round.tolist(),
            changes.node.tolist(),
            changes.demand[:, build.CPU].tolist(),
            (changes.demand[:, build.READ] / values.MIB).tolist(),
            strict=True,
        )
    )
    assert told[1:] == [
        (0, 0, np.inf, 0),
        (2, 0, 0, 0),
        (3, 0, np.inf, 0),
        (4, 0, 0.5, 3),
        (7, cloud_module.ABSENT, 0.5, 3),
    ]


def test_an_event_of_a_node_does_not_happen_to_a_vm_of_its_name(tmp_path):
    text = LEAST.replace('a: {user: u}', 'n: {user: u}')
    cloud = read(tmp_path, text + 'events: [{at: 4, cut: n}]\n').cloud
    assert cloud.cut.any()
    assert cloud.changes.round.tolist() == [0]


def test_a_step_can_come_again_and_again(tmp_path):
    cloud = read(
        tmp_path,
        LEAST
        + """\
load:
  a:
    - {at: 2, cpu: max, every: 6, for: 2}
    - {at: 15, cpu: 0.5}
""",
    ).cloud
    changes = cloud.changes
    assert list(
        zip(
            changes.round.tolist(),
            changes.demand[:, build.CPU].tolist(),
            strict=True,
        )
    ) == [
        (0, 0),
        (1, np.inf),
        (2, 0),
        (4, np.inf),
        (5, 0),
        (7, np.inf),
        (8, 0.5),
    ]


def test_kinds_of_loops_are_read(tmp_path):
    assert read(tmp_path, LEAST).cloud.loops is None
    found = read(
        tmp_path,
        LEAST
        + """\
  b: {user: u, loop: open}
  c: {user: u, loop: pool, threads: 4, vcpus: 2}
  d: {user: u, loop: pool, threads: 2, vcpus: 8}
""",
    ).cloud.loops
    assert found.open.tolist() == [False, True, False, False]
    assert found.threads.tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        (
            '  b: {user: u, loop: open, coupled: [cpu]}\n',
            ': scenario.vms.b: expected no key "loop" beside "coupled"',
        ),
        (
            'load: {a: [{at: 0, cpu: 1, every: 5, for: 5}]}\n',
            ': expected a time "for" that is below "every"',
        ),
        (
            'load: {a: [{at: 0, cpu: 1, every: 5}]}\n',
            'for',
        ),
    ],
)
def test_impossible_loops_and_jobs_are_refused(tmp_path, text, expected):
    assert expected in wrong(tmp_path, LEAST + text)


def test_kinds_of_loops_can_be_drawn_by_chance(tmp_path):
    text = """\
    description: a test
    rounds: 10
    generate: {loop: %s, threads: 3, demand: cron, period: 5, length: 2}
    """
    assert read(tmp_path, text % 'open').cloud.loops.open.all()
    assert read(tmp_path, text % '[closed]').cloud.loops is None
    assert 'at least one word' in wrong(tmp_path, text % '[]')


def test_stopped_agents_and_cut_off_nodes_are_read(tmp_path):
    text = LEAST.replace('n: {cpus: [0]}', 'n: {cpus: 2, count: 2}')
    cloud = read(
        tmp_path,
        text.replace('a: {user: u}', 'a: {user: u, node: n-1}')
        + """\
events:
  - {at: 4, kill-agent: n-1}
  - {at: 8, start-agent: n-1}
  - {at: 6, start-agent: n-2}
  - {at: 10, cut: n-2}
""",
    ).cloud
    assert np.flatnonzero(cloud.silent[:, 0]).tolist() == [2, 3]
    assert np.flatnonzero(cloud.silent[:, 1]).tolist() == [0, 1, 2]
    assert np.flatnonzero(cloud.cut[:, 1]).tolist() == [5, 6, 7, 8, 9]


def test_reports_of_some_nodes_are_slower(tmp_path):
    found = read(
        tmp_path,
        LEAST.replace('n: {cpus: [0]}', 'n: {cpus: 1, count: 3}').replace(
            'a: {user: u}', 'a: {user: u, node: n-1}'
        )
        + """\
ticks: 4
reports:
  delay: 0.5
  loss: 0.25
  of: {n-2: {delay: 3}}
""",
    )
    links = cloud_module.links(found.agents, found.cloud.nodes)
    assert links.delay.tolist() == [[2, 12, 2]] * 3
    assert (links.loss == 0.25).all()


def test_options_of_the_agent_that_mean_something_are_used(tmp_path):
    found = read(
        tmp_path,
        LEAST + 'agent: {fairness: {decay_factor: 0.3, state_path: /x}}\n',
    )
    assert found.agents.decay_factor == 0.3


def test_values_replace_those_of_the_file(tmp_path):
    path = tmp_path / 'mine.yaml'
    path.write_text(LEAST)
    found = experiment.read(
        path, {'duration': '50', 'reports.loss': '0.5', 'controls': '[cpu]'}
    )
    assert found.cloud.rounds == 25
    assert found.agents.links.loss == 0.5
    assert found.agents.controls == (resources.ResourceControl.CPU,)


OVERRIDES = {
    'no such key': ({'ratio': '3'}, 'unknown key ratio'),
    'a wrong value': ({'reports.loss': '2'}, 'expected a probability'),
    'nothing': ({'seed': ''}, "expected a value in YAML, got ''"),
    'no YAML': ({'seed': '['}, "expected a value in YAML, got '['"),
    'below a value': ({'rounds.x': '1'}, 'expected a key of the scenario'),
}


@pytest.mark.parametrize(
    ('overrides', 'expected'), OVERRIDES.values(), ids=OVERRIDES
)
def test_an_override_of_an_unknown_key_is_refused(
    tmp_path, overrides, expected
):
    path = tmp_path / 'mine.yaml'
    path.write_text(LEAST)
    with pytest.raises(exception.BadScenario) as caught:
        experiment.read(path, overrides)
    assert expected in str(caught.value)


GENERATED = """\
description: a test
rounds: 10
generate:
  graph: chain
  nodes: 3
"""

WRONG = {
    'no length': (
        LEAST.replace('rounds: 10\n', ''),
        (
            ', line 1: scenario: expected exactly one of the keys rounds and'
            ' duration'
        ),
    ),
    'two lengths': (
        LEAST + 'duration: 20\n',
        ', line 1: scenario: expected exactly one of the keys',
    ),
    'a word for a number': (
        LEAST.replace('rounds: 10', 'rounds: ten'),
        (
            ', line 2: scenario.rounds: expected a whole number, at least 1'
            " and at most 1000000, got 'ten'"
        ),
    ),
    'a key that is not known': (
        LEAST + 'colour: 1\n',
        ', line 8: scenario: unknown key colour, expected one of',
    ),
    'a node without CPUs': (
        LEAST.replace('{cpus: [0]}', '{}'),
        ', line 5: scenario.nodes.n: expected the key cpus, which is missing',
    ),
    'a node of no CPUs': (
        LEAST.replace('[0]', '0'),
        ', line 5: scenario.nodes.n.cpus: expected a number above 0',
    ),
    'a VM on no node': (
        LEAST.replace('{user: u}', '{user: u, node: m}'),
        ', line 7: scenario.vms.a.node: expected one of n',
    ),
    'a load of an unknown VM': (
        LEAST + 'load:\n  b: [{at: 0, cpu: 1}]\n',
        ', line 9: scenario.load.b: expected a VM or group out of a',
    ),
    'a load that goes back in time': (
        LEAST + 'load:\n  a:\n  - {at: 2}\n  - {at: 1}\n',
        ', line 11: scenario.load.a[1]: expected times that rise and stay',
    ),
    'an event after the end': (
        LEAST + 'events:\n- {at: 99, destroy: a}\n',
        ', line 9: scenario.events[0]: expected a time below 20 s',
    ),
    'a move to nowhere': (
        LEAST + 'events:\n- {at: 9, move: a}\n',
        ', line 9: scenario.events[0]: expected "move: VM" and "to: NODE"',
    ),
    'a probability above 1': (
        LEAST + 'reports: {loss: 33}\n',
        (
            ', line 8: scenario.reports.loss: expected a probability, 0 to 1,'
            " got '33'"
        ),
    ),
    'reports of a node that is not there': (
        LEAST + 'reports: {of: {m: {delay: 1}}}\n',
        (
            ', line 8: scenario.reports.of.m: expected a node, such as n,'
            ' instead of m'
        ),
    ),
    'a control that is none': (
        LEAST + 'controls: [cpus]\n',
        (
            ', line 8: scenario.controls[0]: expected one of cpu, memory,'
            " blkio, network (did you mean cpu?), got 'cpus'"
        ),
    ),
    'a graph that is none': (
        GENERATED.replace('chain', 'chains'),
        (
            ', line 4: scenario.generate.graph: expected one of chain, star,'
            ' random (did you mean chain?)'
        ),
    ),
    'told and generated': (
        GENERATED + 'vms: {a: {user: u}}\n',
        ', line 6: scenario.vms: expected no such section beside "generate"',
    ),
    'a part above 1': (
        GENERATED + '  churn: 3\n',
        ', line 6: scenario.generate.churn: expected a number, 0 to 1',
    ),
    'half a vCPU': (
        GENERATED + '  vcpus: [1, 0.5]\n',
        ', line 6: scenario.generate.vcpus: expected whole numbers',
    ),
    'a resource that is none': (
        GENERATED + '  resources: [gpu]\n',
        ', line 6: scenario.generate.resources[0]: expected one of cpu, disk',
    ),
    'too many VMs': (
        GENERATED + '  vms_per_node: 9999999\n',
        ', line 4: scenario.generate: expected at most 10000000 VMs',
    ),
}


@pytest.mark.parametrize(('text', 'expected'), WRONG.values(), ids=WRONG)
def test_an_error_of_a_scenario_names_its_place(tmp_path, text, expected):
    assert wrong(tmp_path, text).startswith(expected)


def test_a_missing_scenario_is_named():
    with pytest.raises(exception.BadScenario, match='there is no scenario x'):
        experiment.find('x')
    with pytest.raises(exception.BadScenario, match='cannot be read'):
        experiment.find(str(pathlib.Path('x.yaml')))


@pytest.mark.parametrize(
    ('load', 'is_open', 'threads'),
    [
        ('load: closed, think_s: 0.1', False, 1),
        ('load: pool, think_s: 0.1, threads: 8', False, 4),
        ('load: open', True, 1),
        ('load: cron, period_s: 8', True, 1),
    ],
)
def test_loops_of_laboratory_scenarios_are_read(
    tmp_path, load, is_open, threads
):
    text = LEAST.replace('user: u', 'user: u, vcpus: 4')
    text += '  b: {user: u}\n'
    text += f'load:\n  a: [{{at: 0, cpu: 0.5, {load}}}]\n'
    text += '  b: [{at: 0, cpu: 0.5, load: open}]\n'
    loops = read(tmp_path, text).cloud.loops
    assert loops.open.tolist() == [is_open, True]
    assert loops.threads.tolist() == [threads, 1]


def test_vms_are_closed_loops_by_default(tmp_path):
    text = LEAST + 'load:\n  a: [{at: 0, cpu: 0.5}]\n'
    assert read(tmp_path, text).cloud.loops is None


@pytest.mark.parametrize(
    ('cpu', 'expected'),
    [
        # 2 seconds of CPU come in one round of 2 s, every fourth round.
        (0.25, [1.0, 0.0, 0.0, 0.0] * 2 + [1.0, 0.0]),
        # 6 seconds come in 3 rounds.
        (0.75, [1.0, 1.0, 1.0, 0.0] * 2 + [1.0, 1.0]),
        (1.0, [1.0] * 10),
        (0.0, [0.0] * 10),
    ],
)
def test_a_job_of_cron_comes_with_all_of_its_work(tmp_path, cpu, expected):
    step = f'{{at: 0, cpu: {cpu}, load: cron, period_s: 8}}'
    found = read(tmp_path, LEAST + f'load:\n  a: [{step}]\n').cloud
    wanted = dict(
        zip(found.changes.round, found.changes.demand[:, 0], strict=True)
    )
    now, rounds = 0.0, []
    for number in range(10):
        now = wanted.get(number, now)
        rounds.append(now)
    assert rounds == pytest.approx(expected)


def test_a_load_that_does_not_exist_is_refused(tmp_path):
    text = LEAST + 'load:\n  a: [{at: 0, cpu: 1, load: shut}]\n'
    assert 'one of open, closed, pool, cron' in wrong(tmp_path, text)
