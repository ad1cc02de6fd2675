# SPDX-License-Identifier: Apache-2.0

"""What was read before makes reading cheaper, and changes nothing else."""

import dataclasses

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.exchange import codec
from nova_fairness.exchange import desired
from tests.unit.exchange import build

LIMITS = build.LIMITS
SET = dataclasses.asdict(desired.DesiredChoice(7, 'Metric', 'policy', 'n9'))
BEFORE = codec.decode(build.message(desired=SET), LIMITS).lasting


def next_one(**changes):
    news = build.node_report(sequence=2, table=build.table('anna', 'zoe'))
    return {**codec.encode(news), 'desired': SET, **changes}


def test_lasting_parts_are_kept_once():
    got = codec.decode(next_one(), LIMITS, BEFORE)
    assert got.lasting is BEFORE
    assert got.report.resources is BEFORE.resources
    assert got.report.users.ids is BEFORE.ids
    assert got.desired is BEFORE.desired


def test_ids_are_kept_once_though_something_else_has_changed():
    got = codec.decode(next_one(metric='Other'), LIMITS, BEFORE)
    assert got.report.users.ids is BEFORE.ids


FULL = build.RESOURCES.names
CHANGES = {
    'nothing': {},
    'the users': codec.encode(build.node_report(users=('anna', 'bob'))),
    'no user is there': codec.encode(build.node_report(users=())),
    'the run': {'boot_id': 'another'},
    'the metric': {'metric': 'Another'},
    'the CPUs': {'cpus': [0, 3]},
    'their speed': {'speed_factor': 3.0},
    'the capacity': {'capacity': [200.0] * len(FULL)},
    'the order of resources': {'resources': [*reversed(FULL)]},
    'the interval': {'interval_s': 20.0},
    'the desired state': {'desired': {**SET, 'epoch': 8}},
    'no desired state': {'desired': None},
    'another host': {'host': 'n2'},
}


@pytest.mark.parametrize('changes', CHANGES.values(), ids=CHANGES)
def test_a_changed_part_is_read(changes):
    sent = next_one(**changes)
    got = codec.decode(sent, LIMITS, BEFORE)
    fresh = codec.decode(sent, LIMITS)
    assert build.same(got.report, fresh.report)
    assert got.desired == fresh.desired
    assert got.report.resources.host == sent['host']


@pytest.mark.parametrize(
    'changes',
    [
        {'version': 1},
        {'sequence': -1},
        {'interval_s': 0.0},
        {'interval_s': float('nan')},
        {'capacity': [1e30] * len(FULL)},
        {'users': ['zoe', 'anna']},
        {'users': ['anna']},
        {'table': ''},
        {'desired': 7},
        {'metric': ''},
    ],
)
def test_a_wrong_report_is_refused_as_it_would_be_at_first(changes):
    sent = next_one(**changes)
    with pytest.raises(exception.ReportRefused) as first:
        codec.decode(sent, LIMITS)
    with pytest.raises(exception.ReportRefused) as later:
        codec.decode(sent, LIMITS, BEFORE)
    assert str(later.value) == str(first.value)


def test_numbers_are_checked_against_the_capacity_that_lasts():
    much = build.table('anna', 'zoe', part=0.9)
    sent = codec.encode(build.node_report(table=much))
    with pytest.raises(exception.ReportRefused, match='endowment'):
        codec.decode({**sent, 'desired': SET}, LIMITS, BEFORE)


def test_nothing_is_kept_of_unread_fields():
    sent = next_one(desired={**SET, 'later': 'x' * 1000}, later=[0] * 1000)
    lasting = codec.decode(sent, LIMITS).lasting
    assert lasting.written == BEFORE.written
    assert np.array_equal(lasting.resources.capacity, [100.0] * len(FULL))
