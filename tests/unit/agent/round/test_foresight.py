# SPDX-License-Identifier: Apache-2.0

"""What an agent foresees."""

import dataclasses
import time

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.agent.round import foresight as agent_foresight
from nova_fairness.agent.round import measurement
from nova_fairness.decide import foresight as decide_foresight
from nova_fairness.decide import policy as policy_base
from nova_fairness.decide.policies import feedback
from nova_fairness.decide.policies import foresight
from nova_fairness.exchange import base
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.runtime import guard
from nova_fairness.shares import maxmin
from tests.unit.agent import fake_host
from tests.unit.measure import build

CPU = resources.RESOURCES.index('cpu_time')
RATIOS = np.full(len(resources.CONTROLS), 20.0)
NONE = np.zeros(3, dtype=bool)
"""No VM of these nodes is exempt."""


class WithPeer(base.LoopbackExchange):
    """Knows one other node, until that falls silent."""

    silent = False

    def view(self, now_s, metric):
        own = super().view(now_s, metric)
        if self.silent:
            return own
        peer = build.node_report(
            'another',
            {
                'aaa': build.user_totals(usage={'cpu_time': 3.0}),
                'bob': build.user_totals(usage={'cpu_time': 2.0}),
            },
            metric=metric,
            cpu_time=1.0,
        )
        return report.View(
            dict(sorted({**own.reports, 'another': peer}.items())),
            {**own.age_s, 'another': 0.0},
            {},
        )


def host_of(tmp_path, exchange=None):
    return fake_host.FakeHost(
        tmp_path,
        fake_host.vm('a-1', 'ann'),
        fake_host.vm('b-2', 'bob'),
        exchange=exchange or WithPeer(),
    )


@pytest.fixture
def measured(tmp_path):
    return host_of(tmp_path).rounds(3).measured


def foreseer():
    return agent_foresight.Foreseer(guard.Guard(1.0))


def look(measured, policy=None):
    chosen = policy or foresight.ForesightPolicy()
    return foreseer().of_node(measured, chosen, RATIOS, NONE)


def test_policies_without_foresight_compute_no_foresight_input(measured):
    found = foreseer().of_node(
        measured, feedback.FeedbackPolicy(), RATIOS, NONE
    )
    assert found is None


def test_each_vm_belongs_to_a_cell_of_its_node(measured):
    found = foreseer().of_node(
        measured, foresight.ForesightPolicy(), RATIOS, NONE
    )
    (view,) = found.views
    known = view.knowledge
    assert view.deciding.tolist() == [0]
    place = int(view.place[0])
    assert known.supply[place, CPU] > 0
    rows = known.cells_of(place, measured.ownership.user_index)
    assert (known.node[rows] == place).all()
    assert (known.user[rows] == measured.ownership.user_index).all()
    # One VM each, so that a cell wants what its VM wants.
    assert known.wanted[rows, CPU] == pytest.approx(found.wanted[:, CPU])
    assert (found.wanted >= found.used).all()


def test_heaviness_of_now_is_foreseen_as_it_was_in_the_round(measured):
    found = foreseer().of_node(
        measured, foresight.ForesightPolicy(), RATIOS, NONE
    )
    (view,) = found.views
    known = view.knowledge
    rows = known.cells_of(view.place[0], measured.ownership.user_index)
    used = known.wanted.copy()
    used[rows] = measured.usage.amounts
    assert known.weigh(used)[rows] == pytest.approx(measured.heaviness)


def test_nearly_unchanged_rounds_give_the_same_foresight_input(measured):
    made, policy = foreseer(), foresight.ForesightPolicy()
    first, second = (
        made.of_node(measured, policy, RATIOS, NONE).views[0].knowledge
        for _ in range(2)
    )
    assert first is second
    busier = dataclasses.replace(
        measured,
        knowledge=lambda: dataclasses.replace(
            measured.knowledge(),
            knowledge=dataclasses.replace(
                first, wanted=first.wanted * 2 + 1.0
            ),
        ),
    )
    third = made.of_node(busier, policy, RATIOS, NONE).views[0].knowledge
    assert third is not first


def silenced(tmp_path, exchange, pattern):
    """Run a node whose peer is silent where the pattern says so."""
    host = fake_host.FakeHost(
        tmp_path, fake_host.vm('b-2', 'bob'), exchange=exchange
    )
    for silent in pattern:
        exchange.silent = silent
        measured = host.rounds(1).measured
    return measured


LOSSY = [False] * 3 + [True, False, False] * 20
SILENT = [True] * 4


def test_wants_of_a_node_with_lost_reports_count_for_longer(tmp_path):
    measured = silenced(tmp_path, WithPeer(), LOSSY + SILENT)
    # What bob uses there counts no longer, but what he wants there does.
    assert measured.ownership.users == ('bob',)
    found = look(measured)
    (view,) = found.views
    assert view.knowledge.node.tolist() == [0, 0, 1]
    assert view.place.tolist() == [1]
    assert found.user.tolist() == [1]
    row = view.knowledge.cells_of(1, found.user)
    assert view.knowledge.wanted[row, CPU] == pytest.approx(
        found.wanted[:, CPU]
    )


@pytest.mark.parametrize(
    'before', [[False] * 63, LOSSY + SILENT * 3], ids=['always there', 'long']
)
def test_a_node_that_is_not_silent_by_chance_is_forgotten(tmp_path, before):
    measured = silenced(tmp_path, WithPeer(), before + SILENT)
    (view,) = look(measured).views
    assert view.knowledge.node.tolist() == [0]
    assert view.place.tolist() == [0]


def test_nodes_that_are_never_silent_change_nothing(tmp_path):
    memory = measurement.SilentNodes()
    both = build.view(
        build.node_report('one', {}), build.node_report('two', {})
    )
    for now_s in range(10):
        assert memory.extended(both, float(now_s), 1.0) is both


class Slow:
    """Weighs by asking a metric that takes long."""

    def __init__(self, weigh, seconds):
        self.weigh, self.seconds = weigh, seconds

    def __call__(self, used):
        end_s = time.thread_time() + self.seconds
        while time.thread_time() < end_s:
            pass
        return self.weigh(used)


def with_metric(measured, which, wrap):
    """Let another weigh cells, or users."""
    found = measured.knowledge()
    known = found.knowledge
    if which == 'cells':
        changed = {'weigh': wrap(known.weigh), 'weigh_users': None}
    else:
        changed = {'weigh_users': wrap(known.weigh_users)}
    told = dataclasses.replace(
        found, knowledge=dataclasses.replace(known, **changed)
    )
    return dataclasses.replace(measured, knowledge=lambda: told)


WEIGHED = pytest.mark.parametrize('which', ['cells', 'users'])


@WEIGHED
def test_a_slow_metric_is_asked_for_one_step_only(measured, which, caplog):
    made, policy = foreseer(), foresight.ForesightPolicy()
    slow = with_metric(measured, which, lambda weigh: Slow(weigh, 0.1))
    for _ in range(3):
        assert made.of_node(slow, policy, RATIOS, NONE) is None
    assert caplog.text.count('feedback decides until it takes less') == 1
    assert (
        f'for {len(measured.knowledge().knowledge.node)} pairs' in caplog.text
    )
    # What it knew before is no begin any more; the next round looks anew.
    quick = with_metric(measured, which, lambda weigh: weigh)
    found = made.of_node(quick, policy, RATIOS, NONE)
    assert found.views[0].end.sharpness <= decide_foresight.SHARP
    assert caplog.text.count('fast enough again') == 1


@WEIGHED
def test_a_search_that_ran_out_of_time_continues_in_the_next_round(
    measured, which, monkeypatch
):
    monkeypatch.setattr(decide_foresight, 'STEPS', 2)
    made, policy = foreseer(), foresight.ForesightPolicy()
    still = with_metric(measured, which, lambda weigh: weigh)
    sharpness = [
        made.of_node(still, policy, RATIOS, NONE).views[0].end.sharpness
        for _ in range(40)
    ]
    assert sharpness[0] > maxmin.SHARPEST
    assert sharpness[-1] == maxmin.SHARPEST


def test_a_metric_that_raises_during_foresight_is_named(measured):
    broken = with_metric(measured, 'cells', lambda weigh: lambda used: 1 / 0)
    name = measured.knowledge().knowledge.metric
    with pytest.raises(exception.PluginMisbehaved, match=name):
        look(broken)


def test_vms_of_an_owner_with_preferences_look_alike(measured):
    given = look(measured)
    situation = policy_base.Situation(
        keys=('a', 'b', 'c'),
        heaviness=np.zeros(3),
        user=np.array([0, 0, 1]),
        vcpus=np.array([1, 3, 1]),
        contended=np.zeros(len(resources.CONTROLS), dtype=bool),
        wanting=np.zeros((3, len(resources.CONTROLS)), dtype=bool),
        foresight=dataclasses.replace(
            given,
            used=np.array([[6.0], [2.0], [5.0]]),
            wanted=np.array([[9.0], [3.0], [7.0]]),
        ),
    )
    found = agent_foresight.of_owners(situation, np.array([True, True, False]))
    assert found.used[:, 0].tolist() == [2.0, 6.0, 5.0]
    assert found.wanted[:, 0].tolist() == [3.0, 9.0, 7.0]
    alone = dataclasses.replace(situation, foresight=None)
    assert agent_foresight.of_owners(alone, np.ones(3, dtype=bool)) is None
