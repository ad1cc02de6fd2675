# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness.measure import ownership
from tests.unit.measure import build

VMS = (
    build.vm('a', user='zoe', project='red'),
    build.vm('b', user='anna', project='red'),
    build.vm('c', user='zoe', project='blue'),
)


@pytest.mark.parametrize(
    ('entity', 'users', 'index'),
    [
        ('user', ('anna', 'zoe'), [1, 0, 1]),
        ('project', ('blue', 'red'), [1, 1, 0]),
    ],
)
def test_rows_point_to_their_owner_in_a_sorted_list(entity, users, index):
    got = ownership.owners_of_node(VMS, entity)
    assert got.users == users
    assert got.user_index.tolist() == index
    assert got.node_index.tolist() == [0, 0, 0]


def test_unknown_entity_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match="user or project, got 'domain'"):
        ownership.owners_of_node(VMS, 'domain')


def test_users_of_other_nodes_move_the_indices():
    own = ownership.owners_of_node(VMS, 'user')
    got = ownership.with_other_users(own, ('bob', 'anna', 'aaron'))
    assert got.users == ('aaron', 'anna', 'bob', 'zoe')
    assert [got.users[index] for index in got.user_index] == [
        'zoe',
        'anna',
        'zoe',
    ]


def test_node_without_vms_knows_the_users_of_others():
    got = ownership.with_other_users(
        ownership.owners_of_node((), 'user'), ('bob',)
    )
    assert got.users == ('bob',)
    assert len(got.user_index) == 0
