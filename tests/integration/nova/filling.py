# SPDX-License-Identifier: Apache-2.0

"""A cloud without room, in which requests wait; a plugin of pytest."""

import itertools

import pytest

from tests.fixtures.nova_cloud import guest_image
from tests.fixtures.nova_cloud import places
from tests.fixtures.nova_cloud import settings
from tests.integration.nova import watching

FLAVOR = 'small'


@pytest.fixture
def full(cloud, servers, queue):
    """Servers that leave no room; those that a test deletes are gone."""
    # What another test deleted is seen by the next snapshot.
    room = settings.VCPUS * len(cloud.nodes) - len(servers)
    watching.eventually(
        lambda: cloud.room(FLAVOR) == room, lambda: cloud.room(FLAVOR)
    )
    made = ask_for_servers(cloud, 'fills', room)
    try:
        for server in made:
            cloud.await_status(server)
        watching.eventually(lambda: cloud.room(FLAVOR) == 0)
        yield made
    finally:
        cloud.delete([server for server in made if cloud.exists(server)])


def ask_for_servers(cloud, what, count):
    """Ask for servers, for one project after the other."""
    return [
        boot(cloud, user, f'{user}-{what}-{number}')
        for user, number in zip(
            itertools.cycle(places.USERS), range(count), strict=False
        )
    ]


def boot(cloud, user, name, host=None, flavor=FLAVOR):
    """Ask for an idle server."""
    return cloud.boot(user, name, host, guest_image.IDLE, flavor)


def reported_values(cloud, requests, what):
    """What the queue says of requests."""
    return [cloud.request(uuid).get(what) for uuid in requests]


def await_told(cloud, requests, what, wanted):
    """Wait until the queue says it of all of them."""
    watching.eventually(
        lambda: reported_values(cloud, requests, what) == wanted,
        lambda: ([cloud.request(each) for each in requests], wanted),
    )
