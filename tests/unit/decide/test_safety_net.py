# SPDX-License-Identifier: Apache-2.0

"""Weights that do harm, and weights that only look as if they did."""

import dataclasses

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness.decide import safety_net
from nova_fairness.shares import filling


@dataclasses.dataclass
class World:
    """Nodes of some CPUs; VMs get by weight, users are weighed by CPU time.

    :ivar vms: (node, user, CPUs wanted, vCPUs) of each.
    """

    vms: tuple
    weights: list
    cpus: tuple = (1.0,)
    elsewhere: tuple = (0.0,) * 4

    def __post_init__(self):
        self.past = safety_net.RoundCounts.unknown(len(self.cpus))
        self.asked = 0

    def division(self, had=None):
        node, user = (np.array(self.vms)[:, n].astype(int) for n in (0, 1))
        wanted, size = (np.array(self.vms)[:, n].astype(float) for n in (2, 3))
        weight = np.where(
            (self.past.rest > 0)[node], 1.0, np.array(self.weights)
        )
        if had is None:
            had, _ = filling.fill(
                np.array(self.cpus), node, wanted, size * weight
            )
        total = np.bincount(user, had, 4) + np.array(self.elsewhere)
        return safety_net.CpuDivision(
            node=node,
            nodes=len(self.cpus),
            user=user,
            received=had,
            wanted=wanted,
            parts=size * weight,
            neutral=size,
            user_total=total[user],
            is_steered=np.ones(len(node), dtype=bool),
        )

    def round(self):
        now = self.division()

        def weigh(less):
            self.asked += 1
            users = now.node * 4 + now.user
            return now.user_total - np.bincount(users, less)[users]

        found = safety_net.judge(now, self.past, weigh)
        self.past = found.past
        return found

    def rounds(self, count):
        return [self.round() for _ in range(count)]


HEAVY, LIGHT = (0, 0, 1.0, 1), (0, 1, 1.0, 1)


def inverted():
    """Two VMs of a heavy user beside one of a light user, and wrong weights:
    the light user has a fifth instead of a third of a CPU."""
    return World((HEAVY, HEAVY, LIGHT), [2.0, 2.0, 1.0])


def test_weights_that_favour_the_heavy_return_to_neutral():
    found = inverted().rounds(safety_net.LASTING)
    assert [bool(each.neutral[0]) for each in found[:-1]] == [False] * 7
    assert found[-1].neutral[0]
    assert found[-1].returned[0]
    assert found[-1].harmed[0] == 1
    assert found[-1].harm[0] == pytest.approx(1 - 0.2 * 3)


def test_weights_that_favour_the_light_stay():
    world = World((HEAVY, HEAVY, LIGHT), [1.0, 1.0, 2.0])
    found = world.rounds(50)
    assert not any(each.neutral[0] for each in found)
    assert all(each.harm[0] == 0 for each in found)


def test_weights_that_give_too_much_to_the_light_return():
    world = World((HEAVY, HEAVY, LIGHT), [1.0, 1.0, 18.0])
    found = world.rounds(safety_net.LASTING)[-1]
    assert found.returned[0]
    assert found.harmed[0] == 0


def test_a_user_with_plenty_elsewhere_may_have_less_here():
    world = World((HEAVY, LIGHT), [1.0, 9.0], elsewhere=(2.0, 0, 0, 0))
    assert not any(each.harm[0] for each in world.rounds(20))
    world = World((HEAVY, LIGHT), [1.0, 9.0], elsewhere=(0, 2.0, 0, 0))
    assert world.rounds(safety_net.LASTING)[-1].returned[0]


def test_unfair_weights_that_are_better_than_none_stay():
    """What small VMs lack by a fault they would lack without weights, too."""
    wide, small = (0, 0, 16.0, 16), (0, 1, 1.0, 1)
    world = World(
        (*[wide] * 20, *[small] * 5), [1.0] * 20 + [5.0] * 5, (16.0,)
    )
    assert not any(each.neutral[0] for each in world.rounds(50))


def test_a_wrong_view_is_found_by_shares_of_users():
    """Weights as foresight gives them to somebody it believes to have plenty
    elsewhere, who has nothing there."""
    small, large = (0, 0, 0.3, 1), (0, 1, 4.0, 4)
    world = World((small, large), [0.25, 1.0], (2.0,))
    found = world.rounds(safety_net.LASTING)[-1]
    assert found.returned[0]
    assert found.harmed[0] == 0


def test_a_weight_that_a_kernel_cannot_hold_counts_as_it_is_held():
    """A policy raised somebody whose units were at the end of their range,
    and others a little with them."""
    wide, small = (0, 0, 8.0, 1), (0, 1, 1.0, 1)
    world = World((wide, *[small] * 8), [1.0, *[1.2] * 8], (4.0,))
    found = world.rounds(safety_net.LASTING)[-1]
    assert found.returned[0]
    assert found.harmed[0] == 0


def test_losing_less_than_the_margin_is_no_harm():
    least = 1 - safety_net.MARGIN
    world = World((HEAVY, LIGHT), [1.0, 1.01 * least])
    assert not any(each.neutral[0] for each in world.rounds(30))


def test_no_user_is_weighed_where_weights_take_from_none():
    world = World((HEAVY, HEAVY, LIGHT), [1.0, 1.0, 1.0])
    world.rounds(3)
    assert world.asked == 0


def test_nodes_are_judged_apart():
    there = [
        (1, user, wanted, size) for _, user, wanted, size in (HEAVY, LIGHT)
    ]
    world = World((HEAVY, LIGHT, *there), [1.0, 1.0, 9.0, 1.0], (1.0, 1.0))
    found = world.rounds(safety_net.LASTING)[-1]
    assert found.neutral.tolist() == [False, True]
    assert found.harmed.tolist() == [-1, 1]


def test_an_unsteered_vm_counts_for_no_user():
    now = inverted().division()
    now = dataclasses.replace(now, is_steered=np.array([True, True, False]))
    assert now.gains() == pytest.approx([0, 0, 0])


def test_a_node_is_neutral_for_a_while_and_then_tries_again():
    world = inverted()
    world.rounds(safety_net.LASTING)
    rest = world.rounds(safety_net.REST)
    assert all(each.neutral[0] for each in rest[:-1])
    assert not rest[-1].neutral[0]
    assert not any(each.harm[0] > 0 for each in rest)


def test_each_neutral_time_is_longer_up_to_a_maximum():
    world, rests = inverted(), []
    for _ in range(6):
        world.rounds(safety_net.LASTING)
        rests.append(int(world.past.rest[0]))
        world.rounds(rests[-1])
    assert rests == [30, 60, 120, 240, 480, 480]


def test_a_removed_cause_resets_the_neutral_time():
    world = inverted()
    world.rounds(safety_net.LASTING + safety_net.REST)
    assert world.past.next_rest[0] == 2 * safety_net.REST
    world.weights = [1.0, 1.0, 2.0]
    world.rounds(2 * safety_net.REST)
    assert world.past.next_rest[0] == safety_net.REST


def test_harm_in_every_second_round_is_ignored():
    world = inverted()
    for _ in range(50):
        world.weights = [2.0, 2.0, 1.0]
        assert world.round().harm[0] > safety_net.MARGIN
        world.weights = [1.0, 1.0, 1.0]
        assert not world.round().neutral[0]


def test_picked_rows_equal_the_rows_that_were_put():
    past = safety_net.RoundCounts.unknown(3)
    here = np.array([1, 2])
    fallen = past.select(here).after_round(np.array([1.0, 0.0]))
    past.replace_nodes(here, fallen)
    assert past.harmful.tolist() == [0, 1, 0]
    assert past.harmless.tolist() == [0, 0, 1]


amounts = st.floats(0.0, 4.0)


@hypothesis.given(
    st.lists(
        st.tuples(st.integers(0, 2), amounts, amounts, st.integers(1, 8)),
        min_size=1,
        max_size=8,
    )
)
def test_a_node_with_neutral_weights_does_no_harm_with_any_kernel(
    rows,
):
    vms = tuple((0, user, wanted, size) for user, wanted, _, size in rows)
    world = World(vms, [1.0] * len(vms), (4.0,))
    fair = world.division().received
    off = np.array([1.0 + each / 4 for _, _, each, _ in rows])
    had = fair * off
    now = world.division(received=had)
    assert now.gains() == pytest.approx(np.zeros(len(vms)), abs=1e-6)


@hypothesis.given(
    st.lists(
        st.tuples(
            st.integers(0, 2), amounts, st.floats(0.2, 5), st.integers(1, 8)
        ),
        min_size=1,
        max_size=8,
    )
)
def test_gains_of_some_users_are_losses_of_others(rows):
    vms = tuple((0, user, wanted, size) for user, wanted, _, size in rows)
    world = World(vms, [weight for _, _, weight, _ in rows], (2.0,))
    assert world.division().gains().sum() == pytest.approx(0, abs=1e-6)
