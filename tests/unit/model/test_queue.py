# SPDX-License-Identifier: Apache-2.0

"""What owners read of a request that waits."""

import dataclasses

import pytest

from nova_fairness.model import cluster
from nova_fairness.model import queue
from nova_fairness.model import reason
from tests.fixtures import small_cloud

R = reason.Reason
REQUEST = dataclasses.replace(
    small_cloud.waiting_request('r', 8, 'physics'), user='ann'
)
NO_ROOM = reason.why(R.NO_ROOM, 'VCPU', asked=8, free=2)


def told(position, why, **factors):
    place = cluster.Waiting(position, why, factors)
    return queue.request_sentences(REQUEST, why, place)


def test_a_summary_has_use_place_and_missing_resources():
    assert told(5, NO_ROOM, project_use=3.12, user_use=0.5, other=9.0) == [
        'Its project has used 312% of its share, its user 50% of theirs.',
        '4 requests are before it.',
        '6 VCPU are missing.',
        'A server needs 8 VCPU, the host that comes closest has 2 left.',
    ]


def test_a_summary_of_one_uses_the_singular():
    why = reason.why(R.NO_ROOM, 'VCPU', asked=8, free=7)
    assert told(2, why)[:2] == [
        '1 request is before it.',
        '1 VCPU is missing.',
    ]


def test_a_summary_omits_unknown_numbers():
    why = reason.why(R.BEHIND_OTHERS, before=0)
    assert told(1, why, user_use=2.0) == [
        'It is next.',
        f'{why.sentence[0].upper()}{why.sentence[1:]}.',
    ]


@pytest.mark.parametrize('token', [R.STARTED, R.SENT])
def test_of_one_that_does_not_wait_only_the_reason_is_told(token):
    why = reason.why(token)
    [sentence] = queue.request_sentences(REQUEST, why, None)
    assert sentence.lower() == f'{why.sentence.lower()}.'


def test_when_it_starts_is_told_if_it_is_known():
    place = cluster.Waiting(1, NO_ROOM)
    estimate = cluster.Estimate(3600.0, 90000.0)
    told = queue.request_sentences(REQUEST, NO_ROOM, place, estimate)
    assert told[-2] == (
        'It starts at about 1970-01-01 01:00 UTC, and by 1970-01-02 01:00 UTC'
        ' nine times of ten.'
    )
    assert told[:-2] + told[-1:] == queue.request_sentences(
        REQUEST, NO_ROOM, place
    )


def test_a_request_with_a_reservation_is_told():
    for at, sentence in (
        (
            90.0,
            (
                'Room is reserved for it, expected to be free at 1970-01-01'
                ' 00:01 UTC.'
            ),
        ),
        (None, 'Room is kept for it as servers end.'),
    ):
        place = cluster.Waiting(
            1, NO_ROOM, {}, cluster.Reservation(('secret',), at)
        )
        found = queue.request_sentences(REQUEST, NO_ROOM, place)
        assert sentence in found
        assert 'secret' not in ' '.join(found)
