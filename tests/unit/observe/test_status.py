# SPDX-License-Identifier: Apache-2.0

"""Answers fit into messages, however large the cloud is."""

import types

import msgpack
import numpy as np
import pytest

from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.observe import status

WIDTH = len(resources.RESOURCES)
MOST_BYTES = 8 * 2**20


def fake_round(count, here=()):
    """A round that knows so many users, heavier and heavier."""
    ownership = types.SimpleNamespace(
        users=[f'{number:032x}' for number in range(count)],
        user_index=np.array(here, dtype=np.int64),
    )
    return types.SimpleNamespace(
        shadow=types.SimpleNamespace(
            user_heaviness=dict.fromkeys(ownership.users, 0.123456789)
        ),
        measured=types.SimpleNamespace(
            ownership=ownership,
            user_heaviness=np.arange(count, dtype=float),
            user_usage=np.full((count, WIDTH), 0.123456789),
            quota=np.full((count, WIDTH), 0.987654321),
        ),
    )


def test_all_users_are_told_in_order_where_there_is_room():
    told = status.users_status(fake_round(30, here=[2, 2, 7]))
    assert list(told) == [f'{number:032x}' for number in range(30)]
    assert told[f'{2:032x}']['instances_here_count'] == 2


@pytest.mark.parametrize('count', [status.MOST_USERS, 50_000])
def test_a_status_of_users_fits_into_a_message(count):
    told = status.users_status(fake_round(count, here=[3, 3, 5]))
    assert len(told) == status.MOST_USERS
    assert list(told) == sorted(told)
    assert len(msgpack.packb(told)) < MOST_BYTES / 2
    wanted = [3, 5, count - 1, count - status.MOST_USERS + 2]
    assert all(f'{number:032x}' in told for number in wanted)


def test_a_status_of_peers_fits_into_a_message():
    hosts = [
        f'compute-{number:04d}.cell1.example.org' for number in range(2000)
    ]
    view = report.View(
        {},
        dict.fromkeys(hosts[::2], 3.123456),
        dict.fromkeys(hosts[1::2], 'refused: ' + 'x' * 300),
    )
    told = status.peers_status(view, 'me')
    assert len(told) == 2000
    assert len(msgpack.packb(told)) < MOST_BYTES / 8
