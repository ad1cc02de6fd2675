# SPDX-License-Identifier: Apache-2.0

"""Messages whose numbers are looked at when somebody wants to see them."""

import dataclasses
import logging

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.exchange import codec
from nova_fairness.exchange import desired_state
from nova_fairness.exchange import desired_store
from nova_fairness.exchange import intake as intake_module
from nova_fairness.exchange import ledger as ledger_module
from nova_fairness.exchange import tables
from nova_fairness.exchange import unread
from nova_fairness.runtime import quiet_log as tally_module
from tests.unit.exchange import build

LIMITS = dataclasses.replace(build.LIMITS, max_peers=20)


class Node:
    """What hears reports."""

    def __init__(self, tmp_path):
        log = tally_module.QuietLog(logging.getLogger(__name__), lambda: 0.0)
        self.tally = tally_module.Tally()
        self.intake = intake_module.Intake(
            ledger_module.Ledger('me', 'boot', LIMITS),
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
    numbers = np.frombuffer(sent['table'], tables.WRITTEN).copy()
    numbers[place] = value
    return {**sent, 'table': numbers.tobytes()}


def test_numbers_wait_until_somebody_wants_to_see_them(node):
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


def test_what_is_remembered_includes_what_waits(node):
    node.hear(message(), message(sequence=2))
    assert node.intake.remembered() == (1, 2)
    assert node.count('accepted') == node.count('received') == 2


def test_numbers_of_many_hosts_are_each_its_own(node, monkeypatch):
    monkeypatch.setattr(unread, '_ROWS', 5)
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
def test_who_sends_wrong_numbers_is_left_out_alone(node, place, value):
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
def test_what_is_no_block_is_refused_at_once(node, table):
    node.hear(message(), {**message(sequence=2), 'table': table})
    assert node.count('refused_malformed') == 1
    assert node.view().reports['n1'].sequence == 1


def test_two_that_are_read_at_a_time_do_not_hide_each_other():
    ledger = ledger_module.Ledger('me', 'boot', LIMITS)
    known = codec.decode(message(), LIMITS).known
    ledger.accept(build.node_report(), 0.0, known)
    second, third = (
        codec.shorten(sent, codec.head(sent, LIMITS), LIMITS, known)
        for sent in (message(sequence=2), message(sequence=3))
    )
    assert ledger.postpone(second, 0.0)
    assert not ledger.postpone(third, 0.0)
    ledger.accept(build.node_report(sequence=4), 0.0)
    settled = ledger.settle()
    assert settled.accepted == 0
    assert [item.error.reason for item in settled.refusals] == ['late']
