# SPDX-License-Identifier: Apache-2.0

"""The agent as a service: when it begins, and that it always ends cleanly."""

import json
import math
import pathlib
import signal
import threading
import types

from oslo_config import cfg
import pytest

from fairness_lab.testbed.nodes import processes
from nova_fairness.agent import service
from nova_fairness.agent.comms import peering
from nova_fairness.agent.inputs import active_settings
from nova_fairness.agent.inputs import best_effort
from nova_fairness.agent.inputs import nova_facts
from nova_fairness.conf import opts
from nova_fairness.observe import record
from nova_fairness.runtime import state_file
from nova_fairness.runtime import supervision
from tests.fixtures import notified
from tests.fixtures import patience
from tests.unit.agent import fake_host

ENOUGH_S = 60  # for broken code only


class FakeInventory(fake_host.FakeInventory):
    """Whether libvirt answers is what the test says."""

    def __init__(self, *vms):
        super().__init__(*vms)
        self.ready = True
        self.asked = threading.Event()

    def start(self):
        """Nothing to start."""

    def stop(self):
        """Nothing to stop."""

    def look_again(self, uuid):
        """Nothing to look at."""

    def wait_ready(self, timeout_s):
        self.asked.set()
        return self.ready


class FakeParts:
    """What an agent is made of, on a host that exists in memory only."""

    def __init__(self, tmp_path):
        host = fake_host.FakeHost(tmp_path, fake_host.vm('a-1', 'ann'))
        self.restored = 0
        self.warm = threading.Event()
        self.warm.set()
        self.warming = threading.Event()
        self.inventory = FakeInventory(*host.inventory.vms)
        self.began = threading.Event()
        nothing = types.SimpleNamespace(close=lambda: None)
        self.node_cycle = types.SimpleNamespace(
            round=self._round, restore=self._restore
        )
        self.cycle_parts = types.SimpleNamespace(
            inventory=self.inventory,
            counters=host.cpu,
            decision=types.SimpleNamespace(memory={}),
            guard=types.SimpleNamespace(stop=lambda: None),
            idling=None,
        )
        self.memory = state_file.PolicyMemory(tmp_path / 'policies.json')
        self.found = host.found
        self.controls = types.SimpleNamespace(scales={}, close=lambda: None)
        self.pressure = nothing
        self.peering = peering.Peering()
        self.cloud = nova_facts.NoCloud()
        self.best_effort = best_effort.NoBestEffort()
        self.notices = None
        self.orders = active_settings.SettingOrders(tmp_path / 'paused.json')
        self.state_files = (self.found, self.memory, self.orders.state_file)
        self.regime = active_settings.Regime(
            host.settings,
            self.orders,
            self.peering.newest,
            lambda settings: host.plugins(),
        )
        self._host = host

    def operations(self, newest_round, history, previewer):
        """Nobody calls."""

    def warm_up(self):
        self.warming.set()
        assert self.warm.wait(ENOUGH_S)

    def _round(self, missed):
        done = self._host.rounds(1)
        self.began.set()
        return done

    def _restore(self):
        self.restored += 1
        return self._host.cycle.restore()


@pytest.fixture
def fake_parts(tmp_path):
    return FakeParts(tmp_path)


@pytest.fixture
def conf():
    made = cfg.ConfigOpts()
    opts.register_opts(made)
    made([], default_config_files=[], default_config_dirs=[])
    made.set_override('prometheus_port', 0, group='fairness_observe')
    return made


@pytest.fixture
def agent(conf, fake_parts):
    made = service.FairnessService(conf, fake_parts)
    # Only the main thread of a program takes signals.
    made._catch_signals = lambda: None
    yield made
    fake_parts.warm.set()
    made.stop()


def test_a_stop_before_the_start_restores_and_ends(agent, fake_parts):
    agent.stop()
    agent.wait()
    assert fake_parts.restored == 1


@pytest.fixture
def systemd(tmp_path, monkeypatch):
    with notified.listening(tmp_path, monkeypatch) as heard:
        yield heard


@pytest.fixture
def hurried(conf, monkeypatch):
    """Each round and each wait is told of."""
    conf.set_override('interval', 0.2, group='fairness')
    monkeypatch.setattr(supervision, '_MIN_INTERVAL_S', 0.0)


def test_systemd_hears_of_the_first_round_of_work_and_of_the_end(
    hurried, agent, systemd
):
    agent.start()
    said = []

    def is_told():
        said.extend(systemd.lines())
        return said.count('WATCHDOG=1') > 1 and 'READY=1' in said

    patience.wait_for_value(is_told)
    assert 'STATUS=steers 1 VM' in said
    agent.stop()
    assert 'STOPPING=1' in systemd.lines()


def test_rounds_that_fail_are_no_hang(hurried, agent, fake_parts, systemd):
    def fails(missed):
        raise ValueError

    fake_parts.node_cycle.round = fails
    agent.start()
    said = []

    def is_told():
        said.extend(systemd.lines())
        return said.count('WATCHDOG=1') > 2 and 'READY=1' in said

    patience.wait_for_value(is_told)


def test_a_round_that_hangs_is_not_reported(
    hurried, agent, fake_parts, systemd
):
    works, ends, hangs = fake_parts.node_cycle.round, threading.Event(), []

    def hang(missed):
        if agent._had_round:
            hangs.append(missed)
            assert ends.wait(ENOUGH_S)
        return works(missed)

    fake_parts.node_cycle.round = hang
    agent.start()
    patience.wait_for_value(lambda: hangs)
    systemd.lines()
    try:
        assert not agent._stopping.wait(0.5)
        assert systemd.lines() == []
    finally:
        ends.set()
    patience.wait_for_value(systemd.beats)


def test_the_wait_between_two_rounds_is_no_hang(
    hurried, conf, agent, systemd, monkeypatch
):
    conf.set_override('interval', 3600.0, group='fairness')
    monkeypatch.setattr(supervision, 'PAUSE_S', 0.01)
    agent.start()
    heard = 0

    def is_often():
        nonlocal heard
        heard += systemd.beats()
        return heard > 10

    patience.wait_for_value(is_often)


@pytest.fixture
def signals():
    """Handlers of signals are as before afterwards."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    descriptor = signal.set_wakeup_fd(-1)
    yield
    signal.set_wakeup_fd(descriptor)
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_signals_are_noticed_while_no_handler_can_run(
    conf, fake_parts, signals
):
    agent = service.FairnessService(conf, fake_parts)
    reloads, heard = [], []
    agent.reset = lambda: reloads.append(1)
    main = pathlib.Path(f'/proc/self/task/{threading.get_native_id()}')

    def reads():
        """Whether the main thread is inside of its reading."""
        words = (main / 'syscall').read_text().split()
        return words[1:2] == [hex(agent._signal_pipe)]

    def send():
        # To a thread that is not the main one, which nothing interrupts.
        for number, is_heard in (
            (signal.SIGHUP, lambda: reloads),
            (signal.SIGTERM, agent._stopping.is_set),
        ):
            assert processes.wait_until(reads, ENOUGH_S)
            signal.pthread_kill(threading.get_ident(), number)
            heard.append(processes.wait_until(is_heard, ENOUGH_S))
        if not all(heard):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

    agent.start()
    sender = threading.Thread(target=send)
    sender.start()
    agent.wait()
    sender.join()
    assert heard == [True, True]
    assert reloads == [1]
    assert fake_parts.restored == 1


def test_a_stop_waits_for_the_helper_that_is_being_started(agent, fake_parts):
    fake_parts.warm.clear()
    agent.start()
    assert fake_parts.warming.wait(ENOUGH_S)
    stopping = threading.Thread(target=agent.stop)
    stopping.start()
    assert fake_parts.restored == 0
    fake_parts.warm.set()
    stopping.join(ENOUGH_S)
    agent.wait()
    assert fake_parts.restored == 1
    assert not fake_parts.began.is_set()


def test_an_unavailable_libvirt_delays_no_round(agent, fake_parts):
    fake_parts.inventory.ready = False
    fake_parts.inventory.problem = 'libvirt does not answer'
    agent.start()
    assert fake_parts.began.wait(ENOUGH_S)
    assert not fake_parts.inventory.asked.is_set()


def test_a_stop_does_not_wait_for_libvirt(agent, fake_parts):
    fake_parts.inventory.ready = False
    fake_parts.inventory.wait_ready = lambda timeout_s: agent._stopping.wait()
    agent.start()
    agent.stop()
    assert fake_parts.restored == 1
    assert not fake_parts.began.is_set()


def test_a_second_stop_restores_nothing_again(agent, fake_parts):
    agent.start()
    assert fake_parts.began.wait(ENOUGH_S)
    agent.stop()
    agent.stop()
    assert fake_parts.restored == 1


def test_other_state_is_saved_if_one_record_cannot_be_written(
    agent, fake_parts, tmp_path
):
    agent._recorder = record.RoundRecorder(pathlib.Path('/dev/full'))
    agent._saved_s = -math.inf
    fake_parts.cycle_parts.decision.memory['feedback'] = {'settled': True}
    agent.start()
    assert fake_parts.began.wait(ENOUGH_S)
    agent._stopping.set()
    agent._thread.join(ENOUGH_S)
    assert 'settled' in (tmp_path / 'policies.json').read_text()
    agent._stopping.clear()


def is_complete(done):
    return done.shadow is not None and done.shadow.round_number == done.number


def test_a_round_is_recorded_once_its_shadow_metric_was_computed(
    agent, fake_parts, tmp_path
):
    path = tmp_path / 'rounds.jsonl'
    agent._recorder = record.RoundRecorder(path)
    agent._run_round(0)
    fake_parts._host.change(shadow_metric='UniformMetric')
    fake_parts.regime.configure(
        fake_parts._host.settings, fake_parts._host.cycle
    )
    for _ in range(3):
        agent._run_round(0)
        patience.wait_for_value(lambda: is_complete(agent._collector.newest))
    agent.stop()
    lines = map(json.loads, path.read_text().splitlines())
    told = [(line['round'], line.get('shadow')) for line in lines]
    assert told[0] == (1, None)
    assert told[1:] == [
        (
            number,
            {'metric': 'UniformMetric', 'round': number, 'problem': ''},
        )
        for number in (2, 3, 4)
    ]
    assert agent._collector.newest.shadow.round_number == 4


def test_a_round_names_unsaved_state_and_the_next_saves_it(
    agent, fake_parts, tmp_path
):
    in_the_way = tmp_path / 'paused.json.new'
    in_the_way.mkdir()
    fake_parts.orders.pause(paused=True)
    why = f'cannot write {tmp_path}/paused.json: Is a directory'
    assert some_rounds(agent, fake_parts, 2).unsaved == (why,)
    assert agent._collector.status()['unsaved'] == [why]
    in_the_way.rmdir()
    assert some_rounds(agent, fake_parts, 1).unsaved == ()
    assert active_settings.SettingOrders(tmp_path / 'paused.json').paused


def test_unsaved_state_is_reported_in_its_round(agent, fake_parts, tmp_path):
    (tmp_path / 'policies.json.new').mkdir()
    agent._saved_s = -math.inf
    fake_parts.cycle_parts.decision.memory['feedback'] = {'settled': True}
    (why,) = some_rounds(agent, fake_parts, 1).unsaved
    assert 'policies.json' in why


def some_rounds(agent, fake_parts, count):
    """Run rounds on this thread."""
    for _ in range(count):
        agent._run_round(0)
    return agent._collector.newest


def test_weights_of_rounds_enter_the_history(agent, fake_parts):
    done = some_rounds(agent, fake_parts, 3)
    (sample,) = agent._previewer._samples
    assert sample.use_and_want.keys() == {
        item.key for item in done.incarnations
    }
    (entry,) = agent._history.entries_of('a-1', done.wall_s)
    assert (entry.weights == done.decided.weights[0]).all()


def test_a_round_continues_after_an_error_of_the_history(
    agent, fake_parts, monkeypatch, caplog
):
    monkeypatch.setattr(agent._history, 'add', lambda done: 1 / 0)
    assert some_rounds(agent, fake_parts, 2).number == 2
    assert 'Histories: a round could not be added' in caplog.text


def test_notifications_of_rounds_have_the_ratios_in_force(
    agent, fake_parts, monkeypatch
):
    seen = []
    monkeypatch.setattr(
        agent._notifying, 'add', lambda done, ratios: seen.append(ratios)
    )
    some_rounds(agent, fake_parts, 1)
    assert (seen[0] == fake_parts.regime.in_force.settings.max_ratios()).all()


@pytest.mark.parametrize(
    ('finished_s', 'missed', 'next_s'),
    [
        (100.5, 0, 110.0),
        (109.99, 0, 110.0),
        (110.0, 0, 110.0),
        (110.5, 1, 120.0),
        (120.0, 1, 120.0),
        (155.0, 5, 160.0),
    ],
    ids=[
        'a short round waits for the next time',
        'a round may take almost the interval',
        'a round may take the interval',
        'a round a little late leaves one out',
        'a round that ends on time is not late',
        'a very late round leaves out all whose time is over',
    ],
)
def test_late_rounds_never_pile_up(finished_s, missed, next_s):
    pace = service.RoundTimer(10.0, 100.0)
    assert pace.advance(finished_s) == missed
    assert pace.next_s == next_s


class FakeNotices:
    """Tells nobody; remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def start(self):
        self.asked.append('start')

    def stop(self):
        self.asked.append('stop')

    def set_vms(self, here):
        self.asked.append(tuple(here))

    def statistics(self):
        return {'sent': 3, 'failed': 2}


def test_guest_notices_are_sent_after_each_round_and_counted(conf, fake_parts):
    fake_parts.notices = FakeNotices()
    agent = service.FairnessService(conf, fake_parts)
    agent._run_round(0)
    assert fake_parts.notices.asked == [agent._collector.newest.incarnations]
    counted = {
        sample.name: sample.value
        for family in agent._collector.collect()
        for sample in family.samples
    }
    assert counted['nova_fairness_guest_notices_sent_total'] == 3
    assert counted['nova_fairness_guest_notices_failed_total'] == 2
    agent.stop()
    assert fake_parts.notices.asked[-1] == 'stop'


def test_a_reload_names_values_that_the_next_start_refuses(
    conf, fake_parts, caplog, tmp_path
):
    path = tmp_path / 'agent.conf'
    path.write_text('[fairness]\nentity = user\n')
    conf(['--config-file', str(path)], default_config_dirs=[])
    fake_parts.node_cycle.reconfigure = lambda *_: None
    agent = service.FairnessService(conf, fake_parts)
    path.write_text('[fairness]\nentity = planet\n')
    agent._apply_new_configuration()
    assert '[fairness] entity: invalid value' in caplog.text
    assert 'the next start will fail' in caplog.text
