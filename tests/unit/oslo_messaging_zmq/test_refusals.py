# SPDX-License-Identifier: Apache-2.0

import pytest

from oslo_messaging_zmq.access import refusals


@pytest.fixture
def noted(caplog):
    made = refusals.Refusals('driver', quiet_s=3600)

    def note(kind, who):
        caplog.clear()
        made.note(kind, who, 'because')
        return caplog.messages

    note.counts = made.counts
    return note


def test_refusals_are_counted_and_the_first_of_each_is_logged(noted):
    assert noted('unknown_key', 'a') == ['driver refused a: because']
    assert noted('unknown_key', 'a') == []
    assert noted('revoked_key', 'a') == [
        'driver refused a: because (1 more were not logged)'
    ]
    assert noted('unknown_key', 'b') == ['driver refused b: because']
    assert noted.counts == {'unknown_key': 3, 'revoked_key': 1}


def test_a_repeated_refusal_is_logged_again_after_a_while(caplog):
    made = refusals.Refusals('driver', quiet_s=0)
    made.note('unknown_key', 'a', 'because')
    made.note('unknown_key', 'a', 'because')
    assert len(caplog.messages) == 2


def test_many_names_fill_neither_memory_nor_log(noted):
    said = 0
    for number in range(5000):
        said += len(noted('unknown_key', f'key {number}'))
    assert said == refusals._MAX_NAMES
    assert noted.counts['unknown_key'] == 5000


def test_room_is_made_for_new_names_after_a_while(caplog):
    made = refusals.Refusals('driver', quiet_s=0)
    for number in range(refusals._MAX_NAMES + 5):
        made.note('unknown_key', f'key {number}', 'because')
    assert len(caplog.messages) == refusals._MAX_NAMES + 5
    assert len(made._said) == refusals._MAX_NAMES
