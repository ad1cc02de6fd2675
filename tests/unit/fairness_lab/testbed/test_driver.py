# SPDX-License-Identifier: Apache-2.0

import math

import pytest

from fairness_lab.figures import report
from fairness_lab.results import recording
from fairness_lab.results import tables
from fairness_lab.scenario import programs
from fairness_lab.scenario import reader
from fairness_lab.testbed import backend
from fairness_lab.testbed import driver
from nova_fairness import exception

TEXT = """\
description: all that can happen
duration: 20
settle: 3
nodes: {n1: {cpus: [0]}}
vms:
  a: {user: alice}
  late: {user: bob}
load:
  a: [{at: 0, cpu: max}, {at: 12.5, cpu: 0.5}]
  late: [{at: 6, cpu: 1}]
events:
  - {at: 4, start: late}
  - {at: 8, freeze: a}
  - {at: 9, thaw: a}
  - {at: 10, kill-agent: n1}
  - {at: 11, start-agent: n1}
  - {at: 15, destroy: late}
"""


class FakeBackend:
    """A machine with a clock of its own that notes what it is told."""

    name = 'fake'

    def __init__(self, boot_s=5.0):
        self.clock = 1000.0
        self.told = []
        self.running = {}
        self.boot_s = boot_s
        self.pending = []
        self.fail_at = math.inf

    def note(self, *what):
        self.told.append((round(self.clock - 1003, 3), *what))

    def open(self, say):
        self.running['a'] = 0.0
        say('open')

    def close(self):
        self.note('close')

    def now(self):
        return self.clock

    def sleep_until(self, when):
        for ready_at, vm, ready in list(self.pending):
            if ready_at <= when:
                self.clock = ready_at
                self.pending.remove((ready_at, vm, ready))
                ready()
        self.clock = max(self.clock, when)
        if self.clock - 1003 > self.fail_at:
            raise KeyboardInterrupt

    def load(self, vm, step):
        self.note('load', vm, step.cpu)

    def start_vm(self, vm, ready):
        self.note('start', vm)
        self.running[vm] = self.clock
        self.pending.append((self.clock + self.boot_s, vm, ready))

    def destroy_vm(self, vm):
        self.note('destroy', vm)
        del self.running[vm]

    def move_vm(self, vm, node, ready):
        self.note('move', vm, node)
        self.running[vm] = self.clock
        self.pending.append((self.clock + self.boot_s, vm, ready))

    def freeze_vm(self, vm):
        self.note('freeze', vm)

    def thaw_vm(self, vm):
        self.note('thaw', vm)

    def start_agents(self, nodes, *, wait):
        self.note('agents', list(nodes), wait)

    def stop_agents(self, nodes, *, kill):
        self.note('no agents', list(nodes), kill)

    def hold_agents(self, nodes):
        self.note('hold', list(nodes))

    def release_agents(self, nodes):
        self.note('release', list(nodes))

    def restart_agent(self, node):
        self.note('restart', node)

    def cut(self, node):
        self.note('cut', node)

    def heal(self, node):
        self.note('heal', node)

    def redis(self):
        return FakeRedis(self)

    def state(self, vm):
        if vm not in self.running:
            return None
        return backend.VmState(self.clock - self.running[vm], 1024, None)

    def machine(self):
        return {'cpus': 1}


class FakeRedis:
    def __init__(self, backend):
        for name in ('start', 'kill', 'freeze', 'thaw', 'flush'):
            setattr(
                self, name, lambda name=name: backend.note(f'{name} redis')
            )


class FakeProgress:
    def __init__(self):
        self.said = []

    def print_line(self, text):
        self.said.append(text)

    def begin(self, duration_s):
        self.said.append(duration_s)

    def tick(self, t_s, parts):
        assert 0.99 < sum(parts.values()) < 1.01 or not parts

    def end(self):
        self.said.append('end')


def run(tmp_path, text=TEXT, agents=True, **options):
    path = tmp_path / 'mine.yaml'
    path.write_text(text)
    fake = FakeBackend(**options)
    out = tmp_path / 'out'
    made = driver.Driver(
        reader.read(path, programs.LABORATORY),
        fake,
        out,
        agents=agents,
        progress=FakeProgress(),
    )
    return fake, out, made


def test_all_events_happen_at_their_times(tmp_path):
    fake, _, made = run(tmp_path)
    made.run()
    assert fake.told == [
        (-3, 'agents', ['n1'], True),
        (0, 'load', 'a', math.inf),
        (4, 'start', 'late'),
        (8, 'freeze', 'a'),
        (9, 'load', 'late', 1),
        (9, 'thaw', 'a'),
        (10, 'no agents', ['n1'], True),
        (11, 'agents', ['n1'], False),
        (12.5, 'load', 'a', 0.5),
        (15, 'destroy', 'late'),
        (20, 'close'),
    ]


def test_without_agents_none_is_started_or_killed(tmp_path):
    fake, out, made = run(tmp_path, agents=False)
    made.run()
    assert not [what for what in fake.told if 'agents' in what[1]]
    events = [event.event for event in recording.read(out).events]
    assert 'kill-agent' not in events


def test_the_recording_has_the_offered_load(tmp_path):
    _, out, made = run(tmp_path)
    made.run()
    offers = [
        (offer.t_s, offer.vm, offer.cpu)
        for offer in recording.read(out).offers
    ]
    assert offers == [
        (0, 'a', math.inf),
        (4, 'late', math.inf),
        (9, 'late', 1),
        (12.5, 'a', 0.5),
    ]


def test_the_recording_has_events_and_readings(tmp_path):
    _, out, made = run(tmp_path)
    made.run()
    found = recording.read(out)
    assert [(e.t_s, e.event, e.subject) for e in found.events] == [
        (4, 'start', 'late'),
        (8, 'freeze', 'a'),
        (9, 'ready', 'late'),
        (9, 'thaw', 'a'),
        (10, 'kill-agent', 'n1'),
        (11, 'start-agent', 'n1'),
        (15, 'destroy', 'late'),
    ]
    times = [row.t_s for row in found.readings if row.vm == 'a']
    assert times == [float(second) for second in range(21)]
    late = [row.state for row in found.readings if row.vm == 'late']
    assert late == ['absent'] * 4 + ['running'] * 11 + ['absent'] * 6
    assert found.meta['options']['agents'] is True
    assert found.meta['monotonic_start_s'] == 1003


def test_the_recording_can_be_evaluated(tmp_path):
    _, out, made = run(tmp_path, agents=False)
    made.run()
    result = report.load(report.write(out, out).parent)
    assert result['backend'] == 'fake'
    assert set(result['instances']) == {'a', 'late'}


def test_pairs_hold_and_release_agents_in_turns_that_alternate(tmp_path):
    text = TEXT.partition('events')[0] + 'pairs: 2\n'
    fake, out, made = run(tmp_path, text)
    made.run()
    assert [what for what in fake.told if what[1] in {'hold', 'release'}] == [
        (0, 'hold', ['n1']),
        (5, 'release', ['n1']),
        (10, 'release', ['n1']),
        (15, 'hold', ['n1']),
    ]
    events = [(e.t_s, e.event) for e in recording.read(out).events]
    assert events == [
        (0, 'agents_stopped'),
        (5, 'agents_started'),
        (10, 'agents_started'),
        (15, 'agents_stopped'),
    ]


def test_an_interrupted_run_is_cleaned_up_and_keeps_its_records(tmp_path):
    fake, out, made = run(tmp_path)
    fake.fail_at = 7.5
    with pytest.raises(KeyboardInterrupt):
        made.run()
    assert fake.told[-1][1] == 'close'
    _, rows = 0, list(tables.rows(out / recording.INSTANCES, ('t_s',)))
    assert len(rows) > 7


def test_a_directory_that_holds_something_is_refused(tmp_path):
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out' / 'mine').write_text('')
    with pytest.raises(exception.LabError, match='is not empty'):
        run(tmp_path)


PEERS = """\
description: all that can happen between nodes
duration: 30
settle: 3
nodes: {n1: {cpus: [0]}, n2: {cpus: [1]}}
vms:
  a: {user: alice, node: n1}
load:
  a: [{at: 0, cpu: 0.5}]
events:
  - {at: 2, start-agent: n2}
  - {at: 4, freeze-agent: n1}
  - {at: 5, thaw-agent: n1}
  - {at: 6, cut: n2}
  - {at: 7, heal: n2}
  - {at: 8, redis: freeze}
  - {at: 9, redis: thaw}
  - {at: 10, redis: kill}
  - {at: 11, redis: start}
  - {at: 12, redis: flush}
  - {at: 13, restart-agent: n1}
  - {at: 14, move: a, to: n2}
"""


def test_events_between_nodes_happen_on_time(tmp_path):
    fake, _, made = run(tmp_path, PEERS)
    made.run()
    assert fake.told == [
        (-3, 'agents', ['n1'], True),
        (0, 'load', 'a', 0.5),
        (2, 'agents', ['n2'], False),
        (4, 'hold', ['n1']),
        (5, 'release', ['n1']),
        (6, 'cut', 'n2'),
        (7, 'heal', 'n2'),
        (8, 'freeze redis'),
        (9, 'thaw redis'),
        (10, 'kill redis'),
        (11, 'start redis'),
        (12, 'flush redis'),
        (13, 'restart', 'n1'),
        (14, 'move', 'a', 'n2'),
        (19, 'load', 'a', 0.5),
        (30, 'close'),
    ]


def test_without_agents_only_other_events_happen(tmp_path):
    fake, _, made = run(tmp_path, PEERS, agents=False)
    made.run()
    assert [what[1] for what in fake.told] == [
        *('load', 'cut', 'heal', 'move', 'load', 'close')
    ]


def test_a_moved_vm_is_recorded_where_it_is(tmp_path):
    _, out, made = run(tmp_path, PEERS)
    made.run()
    found = recording.read(out)
    nodes = [row.node for row in found.readings]
    assert nodes == ['n1'] * 14 + ['n2'] * 17
    offers = [(offer.t_s, offer.cpu) for offer in found.offers]
    assert offers == [(0, 0.5), (14, math.inf), (19, 0.5)]
    result = report.load(report.write(out, out).parent)
    assert result['instances']['a']['node'] == 'n2'
    assert result['instances']['a']['stays'] == [
        {'from_s': 0, 'node': 'n1'},
        {'from_s': 14, 'node': 'n2'},
    ]
    assert result['instances']['a']['cpu_share'] == 1.0
