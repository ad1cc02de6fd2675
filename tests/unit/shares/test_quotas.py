# SPDX-License-Identifier: Apache-2.0

"""What accounts own, lend and borrow."""

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness.model import cluster
from nova_fairness.shares import quotas

CLASSES = ('GPU', 'VCPU')


def amounts(vcpu=0, gpu=0):
    return np.array([gpu, vcpu])


def account(name, parent=None, nominal=None, borrows=None, lends=None):
    def vcpus(amount):
        return () if amount is None else (('VCPU', amount),)

    return cluster.Account(
        name,
        parent,
        nominal=vcpus(nominal),
        borrowing_limit=vcpus(borrows),
        lending_limit=vcpus(lends),
    )


def opened(accounts, used=None, kept=None, supply=20):
    return quotas.Quotas(
        accounts,
        {name: amounts(much) for name, much in (kept or {}).items()},
        {name: amounts(much) for name, much in (used or {}).items()},
        amounts(supply, 100),
        CLASSES,
    )


def most(found, project):
    """VCPUs that a project alone could take."""
    much = 0
    while (
        found.passed(project, amounts(much + 1)) is None
        and found.excess(project, amounts(much + 1))[1] <= found.left[1]
    ):
        much += 1
    return much


@pytest.mark.parametrize(
    ('borrows', 'lends', 'used', 'expected'),
    [
        (None, None, 0, 21),
        (1, None, 0, 10),
        (None, 1, 0, 10),
        (None, 0, 0, 9),
        (None, None, 5, 16),
        (None, 1, 12, 9),
        (None, 1, 11, 10),
    ],
)
def test_two_teams_of_kueues_manual_get_its_numbers(
    borrows, lends, used, expected
):
    """Kueue, concepts/cluster_queue: of 21 CPUs team a owns 9, team b 12."""
    teams = [
        account('a', nominal=9, borrows=borrows),
        account('b', nominal=12, lends=lends),
    ]
    found = opened(teams, {'b': used}, supply=21)
    assert most(found, 'a') == expected


FACULTIES = (
    account('physics', nominal=10),
    account('biology', nominal=6),
    account('p1', 'physics'),
    account('p2', 'physics'),
    account('b1', 'biology'),
)


def test_room_that_no_account_keeps_is_shared():
    found = opened(FACULTIES, {'p1': 3})
    assert found.shared.tolist() == [100, 20]
    assert found.left.tolist() == [100, 17]


@pytest.mark.parametrize(
    ('lends', 'shared', 'left', 'excess'),
    [
        (None, 20, 20, 5),
        (10, 20, 20, 5),
        (4, 14, 14, 0),
        (0, 10, 10, 0),
    ],
)
def test_room_that_is_not_lent_is_kept_used_or_not(
    lends, shared, left, excess
):
    found = opened([account('p', nominal=10, lends=lends)])
    assert found.shared[1] == shared
    assert found.left[1] == left
    assert found.excess('p', amounts(5))[1] == excess


def test_guaranteed_parts_are_never_lent():
    found = opened([account('p', nominal=4)], {'p': 3}, {'p': 5})
    assert found.shared[1] == 15
    assert found.left[1] == 15
    assert found.excess('p', amounts(4))[1] == 2
    assert found.excess('other', amounts(4))[1] == 4


def test_room_lent_from_below_may_be_kept_by_the_parent():
    found = opened(
        [
            account('top', nominal=2, lends=3),
            account('p', 'top', nominal=6, lends=4),
        ]
    )
    # p keeps 2 of 6; top keeps 3 of its own 2 and the 4 that p lends.
    assert found.shared[1] == 15
    assert found.excess('p', amounts(6))[1] == 1
    found.take('p', amounts(4))
    assert found.left[1] == 15
    assert found.excess('p', amounts(3))[1] == 2
    assert found.excess('q', amounts(3))[1] == 3


@pytest.mark.parametrize(
    ('project', 'asked', 'used', 'steps'),
    [
        ('p1', 10, {}, 1),
        ('p1', 11, {}, 5),
        ('p1', 4, {'p2': 7}, 5),
        ('p1', 3, {'p2': 7}, 1),
        ('b1', 6, {'p2': 14}, 1),
        ('unknown', 1, {}, 5),
        ('p1', 0, {}, 5),
    ],
)
def test_steps_up_to_the_owner_of_a_request_are_counted(
    project, asked, used, steps
):
    found = opened(FACULTIES, used)
    asks = np.array([amounts(asked, 1), amounts(1000)])
    assert found.steps(project, asks).tolist() == [steps, 5]
    owner = {'p1': 'physics', 'b1': 'biology'}.get(project)
    told = found.owner(project, amounts(asked, 1))
    assert told == (owner if steps == 1 else None)


def test_without_nominal_parts_no_account_owns_anything():
    assert not opened([account('p', borrows=4)]).has_owners
    assert not opened([], kept={'p': 4}).has_owners
    assert opened(FACULTIES).has_owners


@pytest.mark.parametrize(
    ('project', 'asked', 'used', 'over'),
    [
        ('p', 7, {}, None),
        ('p', 8, {}, ('p', 1, 4, 3)),
        ('p', 1, {'p': 9}, ('p', 1, 6, 3)),
        ('q', 9, {}, ('top', 1, 3, 2)),
        ('q', 2, {'p': 6}, None),
        ('q', 3, {'p': 6}, ('top', 1, 3, 2)),
        ('other', 15, {}, None),
    ],
)
def test_no_account_borrows_beyond_any_limit_above(project, asked, used, over):
    found = opened(
        [
            account('top', nominal=2, borrows=2),
            account('p', 'top', nominal=4, borrows=3),
            account('q', 'top'),
        ],
        used,
    )
    told = found.passed(project, amounts(asked))
    assert (told and tuple(told)) == over
    assert found.passed(project, amounts(0, 50)) is None


def test_returned_room_comes_back_to_its_owner_first():
    found = opened(
        [account('p', nominal=6, lends=2), account('q')], {'p': 7, 'q': 2}
    )
    assert found.left[1] == 16 - 3 - 2
    later = found.after({'p': amounts(5), 'q': amounts(1), 'r': amounts(0)})
    assert later.left[1] == 16 - 1
    assert found.excess('p', amounts(3), later)[1] == 1
    assert found.left[1] == 16 - 5
    assert found.excess('p', amounts(3))[1] == 3


def test_unnamed_classes_have_no_owner():
    found = opened(FACULTIES, {'p1': 9})
    assert found.steps('p1', amounts(1, 90)[np.newaxis]).tolist() == [1]
    assert found.passed('p1', amounts(1, 90)) is None


PROJECTS = ('a', 'b', 'c')
maybe = st.one_of(st.none(), st.integers(0, 8))


@st.composite
def trees(draw):
    middle = [account('m', None, draw(maybe), draw(maybe), draw(maybe))]
    return middle + [
        account(
            name,
            draw(st.sampled_from([None, 'm'])),
            draw(maybe),
            draw(maybe),
            draw(maybe),
        )
        for name in PROJECTS
    ]


taken = st.lists(
    st.tuples(st.sampled_from((*PROJECTS, 'free')), st.integers(0, 4)),
    max_size=12,
)


@hypothesis.given(trees(), taken, st.integers(0, 30))
def test_used_room_is_kept_or_comes_from_the_top(tree, took, supply):
    found = opened(tree, supply=supply)
    used = dict.fromkeys((*PROJECTS, 'free'), 0)
    for project, much in took:
        before = found.left[1]
        excess = found.excess(project, amounts(much))[1]
        found.take(project, amounts(much))
        used[project] += much
        assert found.left[1] == before - excess
    again = opened(tree, used, supply=supply)
    assert again.left.tolist() == found.left.tolist()
    assert again.shared.tolist() == found.shared.tolist()


@hypothesis.given(trees(), taken, taken)
def test_releasing_quota_reverts_allocating_it(tree, first, second):
    before, after = opened(tree), opened(tree)
    for project, much in first:
        before.take(project, amounts(much))
        after.take(project, amounts(much))
    given = {}
    for project, much in second:
        after.take(project, amounts(much))
        given[project] = given.get(project, amounts(0)) + amounts(much)
    later = after.after(given)
    assert later.left.tolist() == before.left.tolist()
    for project in PROJECTS:
        asked = amounts(5)
        had = before.excess(project, asked)
        assert after.excess(project, asked, later).tolist() == had.tolist()


@hypothesis.given(trees(), taken)
def test_within_limits_no_account_borrows_more_than_it_may(tree, took):
    found = opened(tree)
    for project, much in took:
        if found.passed(project, amounts(much)) is None:
            found.take(project, amounts(much))
    for project in PROJECTS:
        assert found.passed(project, amounts(0)) is None
        # One more of who is at the limit is one too many, of others not.
        told = found.passed(project, amounts(1))
        assert told is None or told.asked == told.limit + 1
