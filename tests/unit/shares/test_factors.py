# SPDX-License-Identifier: Apache-2.0

import random

import numpy as np
import pytest

from nova_fairness.model import cluster
from nova_fairness.shares import factors
from nova_fairness.shares import tree as tree_module
from tests.fixtures import slurm_fair_tree

Account = cluster.Account

SYNERGY = (
    Account('A', None, 70),
    Account('B', None, 30),
    Account('A/a1', 'A', 10),
    Account('A/a2', 'A', 10),
    Account('B/b1', 'B', 10),
)
USED = {'A/a1': 300.0, 'A/a2': 100.0, 'B/b1': 400.0}


def test_factors_and_priorities_of_synergy():
    tree = tree_module.AccountTree(SYNERGY)
    own = np.array([USED.get(name, 0.0) for name in tree.names])
    use = tree.summed(own) / own.sum()
    part = tree.part(own > 0)
    factor = factors.classic_factor(tree, use, part)
    of_users = [factor[tree.place(name)] for name in USED]
    assert of_users == pytest.approx([0.4204, 0.5385, 0.3150], abs=5e-5)
    priority = np.array(of_users) * 170
    assert priority == pytest.approx([71.48, 91.55, 53.55], abs=0.01)


def test_use_equal_to_the_share_gives_a_factor_of_one_half():
    tree = tree_module.AccountTree([Account('a', None, 3), Account('b')])
    part = tree.part(np.ones(2, dtype=bool))
    factor = factors.classic_factor(tree, np.array([0.75, 0.25]), part)
    assert factor == pytest.approx([0.5, 0.5])


def test_the_damping_factor_is_the_root_exponent():
    tree = tree_module.AccountTree([Account('a')])
    part = tree.part(np.ones(1, dtype=bool))
    factor = factors.classic_factor(tree, np.ones(1), part, damping=2.0)
    assert factor == pytest.approx([0.5**0.5])


def test_the_factor_without_a_share_is_zero():
    tree = tree_module.AccountTree([Account('a', None, 0), Account('b')])
    part = tree.part(np.ones(2, dtype=bool))
    assert factors.classic_factor(tree, np.array([0.0, 1.0]), part)[0] == 0


def ranks(accounts, use):
    tree = tree_module.AccountTree(accounts)
    users = np.array(['/' in name for name in tree.names])
    own = np.array([use.get(name, 0.0) for name in tree.names])
    factor = factors.fair_tree_rank(tree, tree.summed(own), users)
    return {
        name: round(factor[tree.place(name)] * users.sum())
        for name in tree.names
        if '/' in name
    }


def test_all_users_of_an_account_ahead_rank_ahead():
    found = ranks(SYNERGY, {'A/a1': 60, 'A/a2': 0, 'B/b1': 20})
    # B has 30 shares for 20, A 70 for 60: B is ahead, whatever a2 used.
    assert found == {'B/b1': 3, 'A/a2': 2, 'A/a1': 1}


def test_users_that_tie_have_one_rank():
    found = ranks(SYNERGY, {'A/a1': 5, 'A/a2': 5, 'B/b1': 100})
    assert found == {'A/a1': 3, 'A/a2': 3, 'B/b1': 1}


def test_accounts_that_tie_are_one_with_the_children_of_both():
    accounts = (
        Account('A'),
        Account('B'),
        Account('A/x', 'A', 2),
        Account('A/y', 'A', 1),
        Account('B/z', 'B', 3),
        Account('B/w', 'B', 1),
    )
    use = {'A/x': 5, 'A/y': 5, 'B/z': 5, 'B/w': 5}
    # Each counts beside its own siblings: y has 1 of 3 shares, w 1 of 4.
    assert ranks(accounts, use) == {'B/z': 4, 'A/x': 3, 'A/y': 2, 'B/w': 1}


def test_a_user_that_ties_with_an_account_has_the_rank_of_its_first():
    accounts = (
        Account('top'),
        Account('top/u', 'top'),
        Account('P', 'top'),
        Account('P/a', 'P', 3),
        Account('P/b', 'P', 1),
    )
    use = {'top/u': 2, 'P/a': 1, 'P/b': 1}
    assert ranks(accounts, use) == {'top/u': 3, 'P/a': 3, 'P/b': 1}


def shared(root):
    """The same tree as the product has it, and what its users used."""
    below = slurm_fair_tree.list_descendants(root)
    accounts = [
        Account(each.name, each.parent.name or None, each.shares)
        for each in below
    ]
    return accounts, {each.name: each.usage for each in below if each.is_user}


def test_ranks_are_those_of_slurm_in_trees_with_many_ties():
    ties = 0
    for seed in range(3000):
        chance = random.Random(seed)
        root = slurm_fair_tree.random_tree(chance)
        accounts, own = shared(root)
        wanted = slurm_fair_tree.rank(root)
        assert ranks(accounts, own) == wanted, seed
        ties += len(set(wanted.values())) < len(wanted)
    assert ties > 1000


def test_an_error_of_rounding_breaks_no_tie():
    accounts = (Account('A'), Account('B'), Account('C'))
    accounts += tuple(Account(f'{p}/u', p) for p in 'ABC')
    use = {'A/u': 0.1 + 0.2, 'B/u': 0.3, 'C/u': 0.9 / 3}
    assert set(ranks(accounts, use).values()) == {3}


def test_a_share_of_nothing_is_last_even_unused():
    accounts = (Account('A', None, 0), Account('B'))
    accounts += (Account('A/x', 'A'), Account('B/y', 'B'))
    assert ranks(accounts, {'B/y': 100})['A/x'] == 1


def test_the_dominant_share_equals_that_of_kueue():
    share = factors.dominant_share(
        use=np.array([[6.0, 10.0], [1.0, 9.0], [5.0, 5.0]]),
        nominal=np.array([[2.0, 9.0], [2.0, 9.0], [0.0, 0.0]]),
        lendable=np.array([20.0, 0.0]),
        weight=np.array([2.0, 0.0, 0.0]),
    )
    assert share.tolist() == [100.0, 0.0, np.inf]


def test_fass_with_the_sum_of_all_users():
    buckets = np.array([[4.0, 3.0, 2.0, 0.0], [4.0, 0.0, 0.0, 0.0]])
    factor = factors.fass_factor(
        buckets, buckets.sum(axis=0), np.array([0.5, 0.5])
    )
    # 1 + 1/2 + 2/4 = 2 of 6, and 4 of 6.
    assert factor == pytest.approx([2 ** (-2 / 3), 2 ** (-4 / 3)])


def test_fass_as_published_takes_the_first_user_for_all():
    buckets = np.array([[4.0, 3.0, 2.0, 0.0], [4.0, 0.0, 0.0, 0.0]])
    factor = factors.fass_factor(buckets, buckets[0], np.array([0.5, 0.5]))
    assert factor == pytest.approx([2**-2.0, 2**-4.0])


def test_no_user_used_anything_with_fass():
    factor = factors.fass_factor(
        np.zeros((2, 4)), np.zeros(4), np.array([0.5, 0.0])
    )
    assert factor.tolist() == [1.0, 0.0]


def test_a_user_above_the_desired_part_has_too_much():
    amounts = np.array([[3.0], [1.0], [0.0]])
    over = factors.excess_over_desired(amounts, np.array([0.5, 0.0, 0.5]))
    assert over.tolist() == [0.25, 1.0, -0.5]


def test_a_volume_counts_twice_of_two_classes_four_times():
    amounts = np.array([[2.0, 2.0], [1.0, 1.0]])
    over = factors.excess_over_desired(amounts, np.array([0.5, 0.5]))
    assert over == pytest.approx([0.3, -0.3])
