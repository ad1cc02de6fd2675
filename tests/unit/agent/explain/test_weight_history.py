# SPDX-License-Identifier: Apache-2.0

"""The weights of the last hour: few, bounded, and gone with the VM."""

import threading
import types

import numpy as np
import pytest

from nova_fairness.agent.explain import history as weight_history
from nova_fairness.model import resources

ENOUGH_S = 60  # for broken code only


def fake_round(wall_s, **weights):
    """A round that gave each VM one weight for all controls."""
    decided = None
    if None not in weights.values():
        decided = types.SimpleNamespace(
            weights=np.array(
                [
                    [value] * len(resources.CONTROLS)
                    for value in weights.values()
                ]
            ).reshape(len(weights), len(resources.CONTROLS))
        )
    return types.SimpleNamespace(
        wall_s=wall_s,
        decided=decided,
        incarnations=[
            types.SimpleNamespace(instance=types.SimpleNamespace(uuid=name))
            for name in weights
        ],
    )


@pytest.fixture
def history():
    return weight_history.WeightHistory()


def told(history, uuid, now_s=0.0):
    return [
        (item.wall_s, item.weights[0])
        for item in history.entries_of(uuid, now_s)
    ]


def test_an_unchanged_weight_is_noted_once(history):
    for number in range(100):
        history.add(fake_round(number * 10.0, a=1.0 + 0.001 * (number % 3)))
    assert told(history, 'a') == [(0.0, 1.0)]


def test_a_slow_drift_of_a_weight_is_recorded_once_large_enough(history):
    for number in range(7):
        history.add(fake_round(number * 60.0, a=1.0 + 0.004 * number))
    assert told(history, 'a') == [
        (0.0, 1.0),
        (180.0, 1.012),
        (360.0, 1.024),
    ]


def test_weight_history_keeps_the_last_entry_of_a_minute(history):
    for number in range(13):
        history.add(fake_round(number * 10.0, a=1.0 + number))
    assert told(history, 'a') == [(50.0, 6.0), (110.0, 12.0), (120.0, 13.0)]


def test_weight_history_keeps_one_hour(history):
    for number in range(1000):
        history.add(fake_round(number * 10.0, a=1.0 + number % 2, b=1.0))
    now_s = 9990.0
    entries = told(history, 'a', now_s)
    assert 60 <= len(entries) <= weight_history.MAX_ENTRIES
    assert entries[0][0] > now_s - weight_history.MAX_AGE_S
    assert entries[-1][0] == now_s
    assert len(history._by_uuid['a']) <= weight_history.MAX_ENTRIES
    # That is not told any more, although nothing came in its place.
    assert told(history, 'b', now_s) == []


def test_weight_history_drops_only_vanished_vms(history):
    history.add(fake_round(0.0, a=1.0, b=2.0))
    history.add(fake_round(60.0, b=3.0))
    history.add(fake_round(120.0, a=5.0, b=3.0))
    assert told(history, 'a') == [(120.0, 5.0)]
    assert told(history, 'b') == [(0.0, 2.0), (60.0, 3.0)]
    history.add(fake_round(180.0))
    assert told(history, 'b') == []


def test_a_round_without_decision_leaves_weight_history_unchanged(history):
    history.add(fake_round(0.0, a=1.0))
    history.add(fake_round(60.0, a=None))
    history.add(fake_round(120.0, a=1.0))
    assert told(history, 'a') == [(0.0, 1.0)]


def test_weight_history_holds_no_arrays_of_rounds(history):
    done = fake_round(0.0, a=1.0, b=2.0)
    history.add(done)
    done.decided.weights[:] = 9.0
    assert told(history, 'a') == [(0.0, 1.0)]
    assert all(
        item.weights.base is None for item in history.entries_of('a', 0.0)
    )


def test_weight_history_can_be_read_while_a_round_ends(history):
    ended = threading.Event()
    problems = []

    def ask():
        while not ended.is_set():
            try:
                history.entries_of('a', 0.0)
            except RuntimeError as error:
                problems.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    for number in range(2000):
        history.add(fake_round(number * 60.0, a=1.0 + number % 2))
    ended.set()
    asking.join(ENOUGH_S)
    assert problems == []
