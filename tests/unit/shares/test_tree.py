# SPDX-License-Identifier: Apache-2.0

from hypothesis import given
from hypothesis import strategies
import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.shares import tree as tree_module

Account = cluster.Account

CLOUD = (
    Account('physics', None, 70),
    Account('history', None, 30),
    Account('physics/ann', 'physics', 3),
    Account('physics/bob', 'physics', 1),
    Account('history/eve', 'history'),
)


def part_of(tree, wants, name):
    mask = np.array([each in wants for each in tree.names])
    return tree.part(mask)[tree.place(name)]


def test_parents_come_before_children_after_any_given_order():
    names = tree_module.AccountTree(reversed(CLOUD)).names
    assert names == tree_module.AccountTree(CLOUD).names
    assert names.index('physics') < names.index('physics/bob')


@pytest.mark.parametrize(
    ('wants', 'name', 'part'),
    [
        (('physics/ann', 'physics/bob', 'history/eve'), 'physics/ann', 0.525),
        (('physics/ann', 'history/eve'), 'physics/ann', 0.7),
        (('history/eve',), 'history/eve', 1.0),
        (('history/eve',), 'physics', 0.0),
    ],
)
def test_shares_count_among_wanting_users(wants, name, part):
    tree = tree_module.AccountTree(CLOUD)
    assert part_of(tree, wants, name) == pytest.approx(part)


def test_a_hundred_users_without_wants_dilute_no_share():
    crowd = [Account(f'tiny-{n}') for n in range(100)]
    tree = tree_module.AccountTree([*CLOUD, *crowd])
    assert part_of(tree, ('physics/ann',), 'physics/ann') == 1


def test_without_shares_wanting_users_divide_by_number():
    tree = tree_module.AccountTree(
        [Account('a', None, 0), Account('b', None, 0)]
    )
    assert part_of(tree, ('a', 'b'), 'a') == 0.5


def test_a_share_of_nothing_gets_nothing_beside_others():
    tree = tree_module.AccountTree([Account('a', None, 0), Account('b')])
    assert part_of(tree, ('a', 'b'), 'a') == 0


def test_use_below_an_account_counts_above():
    tree = tree_module.AccountTree(CLOUD)
    own = np.zeros((len(tree), 1))
    own[tree.place('physics/ann')] = 2
    own[tree.place('physics')] = 1
    total = tree.summed(own)[:, 0]
    assert total[tree.place('physics')] == 3
    assert total[tree.place('history')] == 0


@pytest.mark.parametrize(
    ('accounts', 'says'),
    [
        ([Account('a'), Account('a')], "'a' comes twice"),
        ([Account('a', 'b')], "parent 'b' of account 'a' is not in the tree"),
        ([Account('a', 'a')], 'circle: a > a'),
        (
            [Account('a', 'b'), Account('b', 'c'), Account('c', 'a')],
            'circle: a > b > c > a',
        ),
        ([Account('a', None, -1)], 'from 0 to 1e+09, got -1'),
        ([Account('a', None, 1e300)], 'got 1e+300'),
        ([Account('a', None, float('nan'))], 'got nan'),
    ],
)
def test_an_invalid_account_tree_is_refused_by_name(accounts, says):
    with pytest.raises(exception.BadShares) as caught:
        tree_module.AccountTree(accounts)
    assert says in str(caught.value)


def test_all_errors_of_an_account_tree_are_named_at_once():
    accounts = [Account('a', 'x', -1), Account('b'), Account('b')]
    with pytest.raises(exception.BadShares) as caught:
        tree_module.AccountTree(accounts)
    assert str(caught.value).count(';') == 2


@strategies.composite
def trees(draw):
    n = draw(strategies.integers(1, 12))
    accounts = []
    for i in range(n):
        up = draw(strategies.integers(-1, i - 1))
        share = draw(strategies.sampled_from([0, 0.5, 1, 3, 1e6]))
        accounts.append(Account(f'a{i}', f'a{up}' if up >= 0 else None, share))
    wants = draw(
        strategies.lists(strategies.booleans(), min_size=n, max_size=n)
    )
    return tree_module.AccountTree(accounts), np.array(wants)


@given(trees())
def test_the_parts_of_children_are_the_parts_of_their_parents(case):
    tree, wants = case
    part = tree.part(wants)
    for at, below in tree.children().items():
        if part[below].any():
            above = 1.0 if at == tree_module.ROOT else part[at]
            assert part[below].sum() == pytest.approx(above)
    top = part[tree.children()[tree_module.ROOT]].sum()
    assert top == pytest.approx(1.0 if wants.any() else 0.0)


def test_shares_that_are_set_replace_those_of_the_file():
    shares = {'physics': 1.0, 'physics/new': 2.0, 'law/eve': 3.0, 'arts': 4.0}
    given = {name: {'share': share} for name, share in shares.items()}
    found = tree_module.with_replaced_fields(CLOUD, given)
    by_name = {each.name: each for each in found}
    assert by_name['physics'] == Account('physics', None, 1.0)
    assert by_name['physics/ann'] == Account('physics/ann', 'physics', 3)
    assert by_name['physics/new'] == Account('physics/new', 'physics', 2.0)
    assert by_name['law/eve'] == Account('law/eve', 'law', 3.0)
    assert by_name['law'] == Account('law')
    assert by_name['arts'] == Account('arts', None, 4.0)
    assert len(tree_module.AccountTree(found)) == len(CLOUD) + 4


def test_an_empty_setting_leaves_the_tree_unchanged():
    assert tree_module.with_replaced_fields(CLOUD, {}) == CLOUD
