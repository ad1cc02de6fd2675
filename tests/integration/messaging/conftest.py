# SPDX-License-Identifier: Apache-2.0

"""What the tests of the driver share."""

import pytest

from tests.fixtures import redis_server
from tests.fixtures import zmq_cloud


@pytest.fixture
def cloud():
    with zmq_cloud.running() as made:
        yield made


@pytest.fixture
def redis():
    with redis_server.running() as server:
        yield server
