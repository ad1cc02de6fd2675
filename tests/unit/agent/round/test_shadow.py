# SPDX-License-Identifier: Apache-2.0

"""A second metric sees the same rounds, and changes none of them."""

import threading
import time

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.agent.round import shadow
from tests.unit.agent import fake_host
from tests.unit.agent.round import test_preview

ACTIVE = 'DominantShareMetric'
OTHER = 'AssetFairnessMetric'
ENOUGH_S = 60  # for broken code only


class Faulty(plugins.metric.Metric):
    description = 'Raises until it is told to work.'
    works = False

    def instances(self, demands):
        if not self.works:
            raise ZeroDivisionError('by the test')
        return np.ones(len(demands.usage))


class Slow(plugins.metric.Metric):
    description = 'Waits until it may answer.'

    def __init__(self):
        self.asked = threading.Event()
        self.may_answer = threading.Event()

    def instances(self, demands):
        self.asked.set()
        assert self.may_answer.wait(ENOUGH_S)
        return np.ones(len(demands.usage))


class Watched:
    """A host whose rounds have a shadow."""

    def __init__(self, host, metrics=()):
        self.host = host
        self.metrics = dict(metrics)
        self.loads = 0
        self.finished = []
        self._arrived = threading.Semaphore(0)
        self.shadow = shadow.ShadowMeasurement(self._finish, self._load)

    def _load(self, name):
        self.loads += 1
        return self.metrics.get(name) or plugins.load_metric(name)

    def _finish(self, done):
        self.finished.append(done)
        self._arrived.release()

    def add(self, rounds=1):
        for _ in range(rounds):
            done = self.host.rounds(1)
            assert self.shadow.add(done, self.host.settings)
        return done

    def wait(self, rounds=1):
        for _ in range(rounds):
            assert self._arrived.acquire(timeout=ENOUGH_S)
        return self.finished[-1].shadow

    def rounds(self, count=1):
        for _ in range(count):
            self.add()
            found = self.wait()
        return found


@pytest.fixture
def made(tmp_path):
    every = []

    def make(name=OTHER, metrics=(), exchange=None, **options):
        path = tmp_path / str(len(every))
        path.mkdir()
        host = fake_host.FakeHost(
            path,
            *test_preview.vms(),
            exchange=exchange,
            shadow_metric=name,
            **options,
        )
        every.append(Watched(host, metrics))
        return every[-1]

    yield make
    for watched in every:
        for metric in watched.metrics.values():
            getattr(metric, 'may_answer', threading.Event()).set()
        watched.shadow.stop()


def heaviness(done):
    measured = done.measured
    keys = [vm.key for vm in measured.usage.incarnations]
    return (
        dict(zip(keys, measured.heaviness, strict=True)),
        dict(
            zip(measured.ownership.users, measured.user_heaviness, strict=True)
        ),
    )


@pytest.mark.parametrize('name', test_preview.METRICS)
def test_heaviness_is_that_of_the_metric_in_force(made, name):
    watched, in_force = made(name), made(name, metric=name)
    for each in (watched, in_force):
        each.host.cpu.wants = {'a-1': 0.3}
        each.host.cpu.ignores_weights = True
    found = watched.rounds(4)
    of_vms, of_users = heaviness(in_force.host.rounds(4))
    assert (found.metric, found.round_number, found.problem) == (name, 4, '')
    assert found.heaviness == pytest.approx(of_vms)
    assert found.user_heaviness == pytest.approx(of_users)


def test_a_shadow_metric_changes_no_weight(made):
    with_shadow, without = made(OTHER), made('')
    with_shadow.rounds(6)
    without.host.rounds(6)
    names = ('a-1', 'a-2', 'b-3')
    assert with_shadow.host.shares(*names) == without.host.shares(*names)
    assert with_shadow.host.rounds(1).quarantined == {}


@pytest.mark.parametrize('name', [OTHER, ACTIVE])
def test_use_on_other_nodes_counts(made, name):
    alone = made(name).rounds(4).user_heaviness
    among = made(name, exchange=test_preview.FakeOthers()).rounds(4)
    # Bob's VMs are on both nodes, Ann's only on this one.
    assert among.problem == ''
    ratio = {user: among.user_heaviness[user] / alone[user] for user in alone}
    assert ratio['bob'] > ratio['ann']


def test_without_a_shadow_metric_nothing_runs(made):
    watched = made('')
    done = watched.host.rounds(2)
    assert not watched.shadow.add(done, watched.host.settings)
    assert watched.shadow.newest is None
    watched.shadow.stop()


def test_before_anything_is_measured_that_is_said(made):
    found = made().rounds(1)
    assert found.problem == shadow.NOT_MEASURED
    assert (found.heaviness, found.user_heaviness) == ({}, {})


def test_a_metric_that_fails_is_set_aside_until_a_retry(made, caplog):
    faulty = Faulty()
    watched = made('Faulty', {'Faulty': faulty})
    found = watched.rounds(3)
    assert 'raised ZeroDivisionError: by the test' in found.problem
    assert found.heaviness == {}
    assert watched.host.rounds(1).measured is not None
    assert 'nothing depends on it' in caplog.text
    faulty.works = True
    assert 'is in quarantine' in watched.rounds(1).problem
    watched.shadow.retry()
    found = watched.rounds(1)
    assert found.problem == ''
    assert set(found.user_heaviness) == {'ann', 'bob'}


def test_a_slow_metric_delays_no_round_and_is_set_aside(made):
    slow = Slow()
    watched = made('Slow', {'Slow': slow}, metric_deadline_s=0.2)
    watched.rounds(1)
    began_s = time.monotonic()
    watched.add()
    assert time.monotonic() - began_s < ENOUGH_S
    assert slow.asked.wait(ENOUGH_S)
    # The round ended while the metric was still asked.
    assert watched.host.rounds(1).decided is not None
    found = watched.wait()
    assert 'took longer than its deadline of 0.2 s' in found.problem
    assert 'is in quarantine' in watched.rounds(1).problem


def test_the_deadline_is_at_most_half_of_an_interval(made):
    watched = made('Slow', {'Slow': Slow()}, interval_s=0.4)
    found = watched.rounds(2)
    assert 'took longer than its deadline of 0.2 s' in found.problem


def test_rounds_are_left_out_while_the_metric_is_busy(made):
    slow = Slow()
    watched = made('Slow', {'Slow': slow}, interval_s=600.0)
    watched.host.change(metric_deadline_s=60.0)
    watched.rounds(1)
    watched.add()
    assert slow.asked.wait(ENOUGH_S)
    watched.add(3)
    slow.may_answer.set()
    watched.wait(4)
    told = [done.shadow for done in watched.finished[1:]]
    assert [each.round_number for each in told] == [2, 3, 4, 5]
    assert [each.problem for each in told] == [
        '',
        shadow.STILL_BUSY,
        shadow.STILL_BUSY,
        '',
    ]


def test_an_unknown_name_is_answered_with_installed_names(made, caplog):
    watched = made('NoMetric')
    found = watched.rounds(3)
    assert "no metric 'NoMetric'; installed: " in found.problem
    assert watched.loads == 1
    assert caplog.text.count('[fairness] shadow_metric: no metric') == 1
    watched.host.change(shadow_metric=OTHER)
    assert watched.rounds(1).problem == ''


def test_a_shadow_metric_can_be_switched_off(made):
    watched = made()
    watched.rounds(2)
    watched.host.change(shadow_metric='')
    assert watched.rounds(1) is None
    assert watched.shadow.newest is None


def test_the_metric_in_force_can_be_changed_meanwhile(made):
    watched = made(OTHER)
    watched.rounds(3)
    watched.host.change(metric=OTHER)
    found = watched.rounds(1)
    of_vms, of_users = heaviness(watched.finished[-1])
    assert (found.heaviness, found.user_heaviness) == (of_vms, of_users)
    watched.host.change(metric='UniformMetric')
    found = watched.rounds(1)
    assert found.problem == ''
    assert found.user_heaviness['ann'] > found.user_heaviness['bob']


def test_a_failure_of_the_metric_in_force_is_named(made):
    watched = made(OTHER)
    watched.rounds(2)
    guard = watched.host.cycle._parts.guard
    with pytest.raises(exception.PluginMisbehaved):
        guard.call(ACTIVE, lambda: 1 / 0)
    assert watched.rounds(1).problem == shadow.NOT_MEASURED


def test_an_error_of_a_reader_ends_no_later_round(made, caplog):
    watched = made()
    working, watched.shadow._finish = watched.shadow._finish, broken
    watched.add()
    watched.shadow._jobs.put(None)
    watched.shadow._thread.join(ENOUGH_S)
    assert 'a round could not be finished' in caplog.text
    watched.shadow._thread, watched.shadow._finish = None, working
    assert watched.rounds(1).problem == ''


def broken(done):
    raise OSError(28, 'No space left on device')


def test_a_stop_leaves_out_waiting_rounds(made):
    slow = Slow()
    watched = made('Slow', {'Slow': slow}, metric_deadline_s=0.5)
    watched.rounds(1)
    watched.add()
    assert slow.asked.wait(ENOUGH_S)
    watched.add(2)
    watched.shadow.stop()
    told = [done.shadow.problem for done in watched.finished]
    assert told[2:] == [shadow.STOPPING] * 2
    assert not watched.shadow._thread.is_alive()
