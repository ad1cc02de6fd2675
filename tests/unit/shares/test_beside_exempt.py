# SPDX-License-Identifier: Apache-2.0

"""Weights on nodes on which VMs are exempt."""

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies
import numpy as np
import pytest

from nova_fairness.shares import beside_exempt
from nova_fairness.shares import filling

RATIO = 20.0
REACH = np.log(RATIO) / 2
H = 100.0


def aimed(vms, due, capacity=1.0):
    """vms: (user, wanted, size, whether it is exempt) of one node.

    :returns: weights, and what each user gets with them.
    """
    user, wanted, size, exempt = (
        np.array(row) for row in zip(*vms, strict=True)
    )
    log = beside_exempt.weights_for_amounts(
        np.zeros(len(vms), dtype=np.intp),
        user,
        np.zeros(len(vms)),
        wanted.astype(float),
        size.astype(float),
        np.array(due, dtype=float),
        exempt,
        REACH,
    )
    got, _ = filling.fill(
        np.array([float(capacity)]),
        np.zeros(len(vms), dtype=np.intp),
        wanted.astype(float),
        size * np.exp(log),
    )
    return np.exp(log), np.bincount(user, got)


def test_users_get_their_due_beside_an_exempt_vm():
    weights, got = aimed(
        [(0, H, 1, True), (0, H, 1, False), (1, H, 1, False)], [0.5, 0.5]
    )
    assert weights[0] == 1
    assert got == pytest.approx([0.5, 0.5], abs=1e-3)


def test_an_exempt_vm_of_a_light_user_gets_more_when_others_have_less():
    weights, got = aimed([(0, H, 1, True), (1, H, 4, False)], [0.5, 0.5])
    assert got == pytest.approx([0.5, 0.5], abs=1e-3)
    assert weights[1] == pytest.approx(0.25, rel=1e-2)


def test_users_lack_the_same_part_where_an_exempt_vm_has_too_much():
    weights, got = aimed(
        [(0, H, 40, True), (1, H, 1, False), (2, H, 1, False)],
        [0.1, 0.6, 0.3],
    )
    assert weights.max() == pytest.approx(np.sqrt(RATIO))
    assert got[1] == pytest.approx(2 * got[2], rel=1e-2)


def test_a_small_want_is_met():
    _, got = aimed(
        [(0, H, 1, True), (1, 0.1, 1, False), (2, H, 1, False)],
        [0.45, 0.1, 0.45],
    )
    assert got == pytest.approx([0.45, 0.1, 0.45], abs=1e-3)


def test_a_user_without_a_due_gets_next_to_nothing():
    weights, got = aimed(
        [(0, H, 1, True), (1, 0.0, 1, False), (2, H, 1, False)], [0.5, 0, 0.5]
    )
    assert np.isfinite(weights).all()
    assert got[1] == 0


VMS = strategies.lists(
    strategies.tuples(
        strategies.integers(0, 3),
        strategies.floats(0.01, 3.0),
        strategies.sampled_from([1, 2, 4]),
        strategies.booleans(),
    ),
    min_size=2,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(VMS, strategies.lists(strategies.floats(0.0, 1.0), min_size=4))
def test_weights_stay_within_reach_and_those_of_exempt_vms_at_one(vms, due):
    weights, _ = aimed(vms, due[:4])
    exempt = np.array([vm[3] for vm in vms])
    assert (weights[exempt] == 1).all()
    assert (np.abs(np.log(weights)) <= REACH + 1e-9).all()
