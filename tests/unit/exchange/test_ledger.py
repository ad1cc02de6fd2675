# SPDX-License-Identifier: Apache-2.0

import contextlib
import dataclasses

import hypothesis
from hypothesis import strategies
import pytest

from nova_fairness import exception
from nova_fairness.exchange import codec
from nova_fairness.exchange import ledger as ledger_module
from nova_fairness.exchange import peer
from tests.unit.exchange import build

METRIC = 'GreedinessMetric'
OWN = build.node_report('me', users=('anna',))


def make(**changes):
    limits = dataclasses.replace(build.LIMITS, **changes)
    return ledger_module.Ledger('me', 'boot', limits)


def view(ledger, now_s=0.0, own=OWN, metric=METRIC, interval_s=10.0):
    return ledger.view(now_s, own, metric, interval_s)


def reason(ledger, report, now_s=0.0):
    with pytest.raises(exception.ReportRefused) as caught:
        ledger.accept(report, now_s)
    return caught.value.reason


def test_own_report_is_always_in_view_and_hosts_are_sorted():
    ledger = make()
    ledger.accept(build.node_report('z'), 0.0)
    ledger.accept(build.node_report('a'), 1.0)
    got = view(ledger, 3.0)
    assert list(got.reports) == ['a', 'me', 'z']
    assert got.age_s == {'a': 2.0, 'me': 0.0, 'z': 3.0}
    assert list(view(ledger, 1e6).reports) == ['me']


def test_before_the_own_first_report_the_others_are_in_view():
    ledger = make()
    ledger.accept(build.node_report('n1'), 0.0)
    assert list(view(ledger, own=None).reports) == ['n1']


@pytest.mark.parametrize(
    ('sequence', 'expected'),
    [(5, 'duplicate'), (4, 'late'), (0, 'late'), (5 + 1_001, 'future')],
)
def test_what_is_not_the_next_is_refused(sequence, expected):
    ledger = make()
    ledger.accept(build.node_report(sequence=5), 0.0)
    assert reason(ledger, build.node_report(sequence=sequence)) == expected
    assert view(ledger).reports['n1'].sequence == 5


def test_a_leap_is_believed_when_there_was_time_for_it():
    ledger = make()
    ledger.accept(build.node_report(sequence=5), 0.0)
    ledger.accept(build.node_report(sequence=5_000), 3600.0)
    assert view(ledger, 3600.0).reports['n1'].sequence == 5_000


def test_a_restarted_agent_begins_again_and_its_former_run_is_refused():
    ledger = make()
    ledger.accept(build.node_report(sequence=900, boot_id='old'), 0.0)
    ledger.accept(build.node_report(sequence=1, boot_id='new'), 1.0)
    old = build.node_report(sequence=901, boot_id='old')
    assert reason(ledger, old, 2.0) == 'replayed'
    assert reason(ledger, old, 1e5) == 'replayed'
    assert view(ledger, 2.0).reports['n1'].boot_id == 'new'


def test_memory_of_former_runs_is_bounded():
    ledger = make()
    for number in range(3 * peer.RETIRED):
        ledger.accept(build.node_report(boot_id=f'run {number}'), 0.0)
    recent = 3 * peer.RETIRED - 2
    refused = build.node_report(boot_id=f'run {recent}')
    assert reason(ledger, refused) == 'replayed'
    assert ledger.hosts == 1
    assert ledger.rows == 2


@hypothesis.given(
    strategies.permutations(range(8)),
    strategies.lists(strategies.integers(0, 7), max_size=8),
)
def test_order_and_repetition_of_arrivals_do_not_matter(order, again):
    ledger = make()
    for sequence in (*order, *again):
        with contextlib.suppress(exception.ReportRefused):
            ledger.accept(build.node_report(sequence=sequence), 0.0)
    assert view(ledger).reports['n1'].sequence == 7
    assert ledger.rows == 2


@hypothesis.given(strategies.permutations(['a', 'b', 'c', 'd']))
def test_hosts_do_not_influence_each_other(order):
    ledger = make()
    for number, host in enumerate(order):
        ledger.accept(build.node_report(host, sequence=number), 0.0)
    got = view(ledger)
    assert list(got.reports) == ['a', 'b', 'c', 'd', 'me']


@pytest.mark.parametrize(
    ('theirs_s', 'own_s', 'age_s', 'is_in_view'),
    [
        (10.0, 10.0, 30.0, True),
        (10.0, 10.0, 30.1, False),
        (60.0, 10.0, 179.0, True),
        (60.0, 10.0, 181.0, False),
        (10.0, 60.0, 179.0, True),
        (80_000.0, 10.0, 299.0, True),
        (80_000.0, 10.0, 301.0, False),
    ],
)
def test_a_report_ages_by_the_longer_interval(
    theirs_s, own_s, age_s, is_in_view
):
    ledger = make()
    ledger.accept(build.node_report(interval_s=theirs_s), 100.0)
    got = view(ledger, 100.0 + age_s, interval_s=own_s)
    assert ('n1' in got.reports) is is_in_view
    assert ('n1' in got.left_out) is not is_in_view


def test_a_silent_peer_is_named_and_forgotten_at_last():
    ledger = make(forget_after_s=3600.0)
    ledger.accept(build.node_report(), 0.0)
    assert view(ledger, 45.0).left_out == {'n1': 'silent for 45 s'}
    assert ledger.rows == 0
    assert ledger.hosts == 1
    assert view(ledger, 3601.0).left_out == {}
    assert ledger.hosts == 0


def test_a_peer_that_was_silent_is_back_with_its_next_report_only():
    ledger = make()
    ledger.accept(build.node_report(sequence=5), 0.0)
    view(ledger, 100.0)
    assert reason(ledger, build.node_report(sequence=5), 100.0) == 'duplicate'
    assert 'n1' in view(ledger, 100.0).left_out
    ledger.accept(build.node_report(sequence=6), 100.0)
    assert view(ledger, 100.0).left_out == {}


def test_another_metric_is_left_out_whole_and_named():
    ledger = make()
    ledger.accept(build.node_report(metric='Other'), 0.0)
    got = view(ledger)
    assert list(got.reports) == ['me']
    assert got.left_out == {
        'n1': 'measures with Other, not with GreedinessMetric'
    }
    assert list(view(ledger, metric='Other').reports) == ['me', 'n1']


def test_own_report_that_came_back_is_no_peer():
    ledger = make()
    assert reason(ledger, OWN) == 'own'
    other = build.node_report('me', boot_id='other')
    assert reason(ledger, other) == 'namesake'
    ledger.refused('me', 'whatever', 0.0)
    assert ledger.hosts == 0


def test_a_refusal_is_shown_when_nothing_better_is_known():
    ledger = make()
    ledger.refused('n1', 'refused: too large', 0.0)
    assert view(ledger).left_out == {'n1': 'refused: too large'}
    ledger.accept(build.node_report(), 1.0)
    ledger.refused('n1', 'refused: too large', 2.0)
    assert view(ledger, 2.0).left_out == {}
    assert view(ledger, 99.0).left_out == {'n1': 'refused: too large'}


def test_a_refusal_of_nobody_is_not_remembered():
    ledger = make()
    ledger.refused('', 'refused: no host', 0.0)
    assert ledger.hosts == 0


def test_hosts_are_bounded_and_those_with_reports_stay():
    ledger = make(max_peers=3)
    for number in range(100):
        ledger.refused(f'junk {number}', 'refused: junk', float(number))
    assert ledger.hosts == 3
    for host in 'abc':
        ledger.accept(build.node_report(host), 100.0)
    ledger.refused('more junk', 'refused: junk', 101.0)
    assert reason(ledger, build.node_report('d'), 101.0) == 'full'
    assert list(view(ledger, 102.0).reports) == ['a', 'b', 'c', 'me']
    view(ledger, 140.0)
    ledger.accept(build.node_report('d'), 140.0)
    assert 'd' in view(ledger, 140.0).reports


def test_rows_of_all_reports_together_are_bounded():
    ledger = make(max_total_users=3)
    ledger.accept(build.node_report('a'), 0.0)
    assert reason(ledger, build.node_report('b')) == 'full'
    ledger.accept(build.node_report('a', sequence=2, users=('x',)), 0.0)
    ledger.accept(build.node_report('b'), 0.0)
    assert ledger.rows == 3
    ledger.accept(build.node_report('a', sequence=3, users=()), 0.0)
    assert ledger.rows == 2


def expect(ledger, report, now_s=0.0):
    return ledger.expect(
        codec.Head(report.host, report.boot_id, report.sequence), now_s
    )


def test_what_is_no_news_is_refused_before_it_is_read():
    ledger = make()
    assert expect(ledger, build.node_report()) is None
    ledger.accept(build.node_report(sequence=5), 0.0)
    ledger.accept(build.node_report(boot_id='new', sequence=5), 0.0)
    for report, expected in (
        (OWN, 'own'),
        (build.node_report('me', boot_id='other'), 'namesake'),
        (build.node_report(boot_id='new', sequence=5), 'duplicate'),
        (build.node_report(boot_id='new', sequence=4), 'late'),
        (build.node_report(boot_id='new', sequence=9_999), 'future'),
        (build.node_report(sequence=6), 'replayed'),
    ):
        with pytest.raises(exception.ReportRefused) as caught:
            expect(ledger, report)
        assert caught.value.reason == expected


def test_what_is_known_of_a_host_goes_with_its_report():
    ledger, news = make(), build.node_report(sequence=9)
    known = codec.decode(build.message(), build.LIMITS).known
    ledger.accept(build.node_report(), 0.0, known)
    assert expect(ledger, news) is known
    view(ledger, 1e3)
    assert expect(ledger, news, 1e3) is None
