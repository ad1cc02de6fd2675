# SPDX-License-Identifier: Apache-2.0

import contextlib
import dataclasses
import logging

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.exchange import codec
from nova_fairness.exchange import desired_state
from nova_fairness.exchange import desired_store
from nova_fairness.exchange import intake as intake_module
from nova_fairness.exchange import ledger as ledger_module
from nova_fairness.exchange import tables
from nova_fairness.runtime import quiet_log as tally_module
from tests.unit.exchange import build

METRIC = 'GreedinessMetric'
OWN = build.node_report('me', users=('anna',))


def make(**changes):
    limits = dataclasses.replace(build.LIMITS, **changes)
    return ledger_module.ReportLedger('me', 'boot', limits)


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
def test_a_report_that_is_not_the_next_is_refused(sequence, expected):
    ledger = make()
    ledger.accept(build.node_report(sequence=5), 0.0)
    assert reason(ledger, build.node_report(sequence=sequence)) == expected
    assert view(ledger).reports['n1'].sequence == 5


def test_a_sequence_jump_is_accepted_if_enough_time_passed():
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
    for number in range(3 * ledger_module.MAX_RETIRED_RUNS):
        ledger.accept(build.node_report(boot_id=f'run {number}'), 0.0)
    recent = 3 * ledger_module.MAX_RETIRED_RUNS - 2
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


def test_a_silent_peer_is_named_and_later_removed():
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


def test_reports_of_another_metric_are_left_out_and_named():
    ledger = make()
    ledger.accept(build.node_report(metric='Other'), 0.0)
    got = view(ledger)
    assert list(got.reports) == ['me']
    assert got.left_out == {
        'n1': 'measures with Other, not with GreedinessMetric'
    }
    assert list(view(ledger, metric='Other').reports) == ['me', 'n1']


def test_an_own_report_received_back_is_no_peer():
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


def test_a_refusal_without_a_name_is_not_remembered():
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
    return ledger.static_content(codec.parse_head(codec.encode(report)), now_s)


def test_a_report_without_news_is_refused_before_it_is_read():
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


def test_lasting_parts_of_a_host_go_with_its_report():
    ledger, news = make(), build.node_report(sequence=9)
    lasting = codec.decode(build.message(), build.LIMITS).lasting
    ledger.accept(build.node_report(), 0.0, lasting)
    assert expect(ledger, news) is lasting
    view(ledger, 1e3)
    assert expect(ledger, news, 1e3) is None


LIMITS = dataclasses.replace(build.LIMITS, max_peers=20)


class Node:
    """What hears reports."""

    def __init__(self, tmp_path):
        log = tally_module.QuietLog(logging.getLogger(__name__), lambda: 0.0)
        self.tally = tally_module.NameCounts()
        self.intake = intake_module.Intake(
            ledger_module.ReportLedger('me', 'boot', LIMITS),
            LIMITS,
            desired_state.DesiredState(
                'me', desired_store.FileStore(tmp_path / 'desired.json')
            ),
            self.tally,
            log,
            lambda: 0.0,
        )

    def hear(self, *sent):
        """Take messages in."""
        for message in sent:
            self.intake.received({}, message)

    def view(self):
        """What counts."""
        return self.intake.view(0.0, None, 'GreedinessMetric', 10.0)

    def count(self, name):
        """How often that happened until now."""
        return self.tally.counts().get(name, 0)


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def message(host='n1', sequence=1, **changes):
    made = build.node_report(host, sequence, **changes)
    return codec.encode(made, as_bytes=True)


def broken(place, value, **changes):
    """A message with one number that cannot be."""
    sent = message(**changes)
    numbers = np.frombuffer(sent['table'], tables.NUMBER_TYPE).copy()
    numbers[place] = value
    return {**sent, 'table': numbers.tobytes()}


def test_numbers_wait_until_they_are_read(node):
    node.hear(message(), message(sequence=2, table=build.table('anna', 'zoe')))
    assert node.count('accepted') == 1
    news = build.table('anna', 'zoe', heaviness=0.25, part=0.2)
    node.hear(message(sequence=3, table=news))
    assert node.count('accepted') == 2
    got = node.view().reports['n1']
    assert node.count('accepted') == 3
    sent = build.node_report(sequence=3, table=news)
    assert build.same(got, sent)
    assert node.view().reports['n1'] is got


def test_remembered_reports_include_waiting_ones(node):
    node.hear(message(), message(sequence=2))
    assert node.intake.remembered() == (1, 2)
    assert node.count('accepted') == node.count('received') == 2


def test_postponed_numbers_of_many_hosts_stay_separate(node, monkeypatch):
    monkeypatch.setattr(tables, '_MAX_ROWS', 5)
    hosts = [f'n{number}' for number in range(9)]
    for sequence in (1, 2):
        for number, host in enumerate(hosts):
            few = build.table(*'abc'[: number % 3 + 1], part=number / 100)
            node.hear(message(host, sequence, table=few))
    got = node.view().reports
    assert list(got) == hosts
    for number, host in enumerate(hosts):
        few = build.table(*'abc'[: number % 3 + 1], part=number / 100)
        assert build.same(got[host], build.node_report(host, 2, table=few))


WRONG = {
    'no number': (0, np.nan),
    'too heavy': (0, 1e7),
    'too light': (0, -1e7),
    'infinite': (2, np.inf),
    'negative': (3, -1.0),
    'no VM': (1, 0.0),
    'half a VM': (1, 1.5),
    'too many VMs': (1, 1e9),
    'more than the node has': (2, 1e9),
    'more than a node can have': (2 + len(build.RESOURCES), 1e30),
}


@pytest.mark.parametrize(('place', 'value'), WRONG.values(), ids=WRONG)
def test_a_host_that_sends_wrong_numbers_is_left_out_alone(node, place, value):
    hosts = ['n1', 'n2', 'n3']
    node.hear(*(message(host) for host in hosts))
    bad = broken(place, value, host='n2', sequence=2)
    node.hear(message('n1', 2), bad, message('n3', 2))
    got = node.view()
    assert [item.sequence for item in got.reports.values()] == [2, 1, 2]
    assert node.count('accepted') == 5
    with pytest.raises(exception.ReportRefused) as caught:
        codec.decode(bad, LIMITS)
    assert node.count(f'refused_{caught.value.reason}') == 1
    late = node.intake.view(99.0, None, 'GreedinessMetric', 10.0)
    assert late.left_out['n2'] == f'refused: {caught.value}'


def test_a_wrong_message_does_not_stand_in_the_way_of_the_next(node):
    node.hear(message(), broken(0, np.nan, sequence=900))
    node.hear(message(sequence=2))
    assert node.view().reports['n1'].sequence == 2
    assert node.count('refused_malformed') == 1
    assert node.view().left_out == {}


def test_a_message_that_waits_counts_for_the_order(node):
    node.hear(message(), message(sequence=3), message(sequence=3))
    node.hear(message(sequence=2))
    assert node.view().reports['n1'].sequence == 3
    assert node.count('refused_duplicate') == 1
    assert node.count('refused_late') == 1


def test_nothing_is_postponed_where_something_else_has_changed(node):
    node.hear(message(), message(sequence=2, metric='Other'))
    assert node.count('accepted') == 2
    node.hear(message(sequence=3, metric='Other', users=()))
    node.hear(message(sequence=4, metric='Other', users=()))
    assert node.count('accepted') == 4
    assert node.intake.remembered() == (1, 0)


@pytest.mark.parametrize('table', [b'', b'x' * 7, None, 'AAAA', 7])
def test_a_table_that_is_no_block_is_refused_at_once(node, table):
    node.hear(message(), {**message(sequence=2), 'table': table})
    assert node.count('refused_malformed') == 1
    assert node.view().reports['n1'].sequence == 1


def test_two_simultaneously_read_reports_are_both_kept():
    ledger = ledger_module.ReportLedger('me', 'boot', LIMITS)
    lasting = codec.decode(message(), LIMITS).lasting
    ledger.accept(build.node_report(), 0.0, lasting)
    second, third = (
        codec.shorten(sent, codec.parse_head(sent), lasting)
        for sent in (message(sequence=2), message(sequence=3))
    )
    assert ledger.postpone(second, 0.0)
    assert not ledger.postpone(third, 0.0)
    ledger.accept(build.node_report(sequence=4), 0.0)
    settled = ledger.settle()
    assert settled.accepted == 0
    assert [item.error.reason for item in settled.refusals] == ['late']
