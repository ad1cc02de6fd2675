# SPDX-License-Identifier: Apache-2.0

"""Servers of a real cloud that may run for a while are told, and leave."""

import datetime as dt
import time

import pytest

from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import notice_channels
from tests.integration.nova import watching

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(watching.TIMEOUT_S),
]
pytest_plugins = (
    'tests.fixtures.nova_cloud.fixtures',
    'tests.integration.nova.faculty',
)

LEFT = {'stop': 'SHUTOFF', 'shelve': 'SHELVED_OFFLOADED', 'delete': ''}
"""Status of a server that left, by what was chosen."""


def metadata(cloud, server):
    return cloud.show(server)['metadata']


def told_by(cloud, server):
    return metadata(cloud, server).get(notice_channels.LEAVES_BY)


def status(cloud, server):
    """Empty of one that is gone."""
    answer = cloud.admin.ask('GET', 'compute', f'/servers/{server}')
    return answer.body['server']['status'] if answer.status == 200 else ''


def leaves_at(cloud, server):
    """Seconds of the epoch."""
    told = metadata(cloud, server)[notice_channels.LEAVES_AT]
    return dt.datetime.fromisoformat(told).timestamp()


def test_servers_with_time_limits_get_notices_and_leave_unless_extended(
    faculty,
):
    cloud, asked, until = faculty.cloud, {}, {}
    for action in LEFT:
        faculty.start(end_actions=action)
        asked[action] = faculty.boot('physics', action, '1m')
        cloud.await_status(asked[action])
        before = time.time()
        watching.eventually(
            lambda action=action: told_by(cloud, asked[action]) == action,
            lambda action=action: cloud.request(asked[action]),
        )
        until[action] = leaves_at(cloud, asked[action])
        assert until[action] - before >= evictor.LEAST_NOTICE_S - 1

    # Its end is moved, and what was told is taken back.
    stays = faculty.boot('physics', 'stays', '1m')
    cloud.await_status(stays)
    watching.eventually(lambda: told_by(cloud, stays) == 'delete')
    shown = faculty.openstack('physics', 'request', 'extend', stays, '2h')
    assert shown['extended'] == 7200
    watching.eventually(lambda: told_by(cloud, stays) is None)

    for action, server in asked.items():
        watching.eventually(
            lambda server=server, action=action: (
                status(cloud, server) == LEFT[action]
            ),
            lambda server=server: cloud.request(server),
        )
        assert time.time() >= until[action]
    leave = cloud.request(asked['stop'])['leaving'][0]
    assert leave['reason'] == 'time_is_up', leave
    assert status(cloud, stays) == 'ACTIVE'
