# SPDX-License-Identifier: Apache-2.0

"""Messages that are large or odd, through a real broker, relay and service."""

import random

import pytest

from nova_fairness.model import request
from tests.fixtures import kill_runs


@pytest.fixture(scope='module')
def cloud():
    with kill_runs.cloud('sqlite', seed=4) as made:
        yield made


def times_built(cloud, asked):
    return {cloud.conductor.built[each] for each in asked.servers}


def nothing_is_left(cloud):
    assert cloud.settle() == cloud.lost() == []
    assert cloud.conductor.doubles == cloud.conductor.refused == []


def test_a_thousand_servers_of_one_request_are_held_and_start_once_and_whole(
    cloud,
):
    asked = cloud.ask(1000, 1)
    other = cloud.ask(1, 1)
    assert cloud.wait([other]) == []
    record = cloud.store.request(asked.servers[0])
    assert record.request.state is request.State.WAITING
    assert len(record.request.servers) == 1000
    assert cloud.store.read_message(record.cast_uuid) is not None
    assert times_built(cloud, asked) == {0}
    assert cloud.cloud.holds() == []
    with cloud.cloud.lock:
        # One too few beside what is free elsewhere.
        cloud.cloud.add_host('large', 983, 10**6)
    last = cloud.ask(1, 8)
    assert cloud.wait([last]) == []
    assert times_built(cloud, asked) == {0}
    with cloud.cloud.lock:
        cloud.cloud.add_host('larger', 64, 10**6)
    assert cloud.wait([asked]) == []
    assert times_built(cloud, asked) == {1}
    nothing_is_left(cloud)


def of_ten_megabytes(message):
    # Half of it cannot be compressed.
    message['args']['files'] = random.Random(0).randbytes(5_000_000).hex()


def of_an_unknown_version(message):
    message['version'] = '9.0'


@pytest.mark.parametrize('change', [of_ten_megabytes, of_an_unknown_version])
def test_a_large_or_unknown_message_starts_its_servers_once(cloud, change):
    asked = [cloud.ask(2, 1, change), cloud.ask(1, 1)]
    assert cloud.wait(asked) == []
    assert [times_built(cloud, each) for each in asked] == [{1}, {1}]
    nothing_is_left(cloud)
