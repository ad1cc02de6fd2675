# SPDX-License-Identifier: Apache-2.0

"""Messages of the cloud's release of Nova are held, and read as requests.

The Nova of the cloud writes them; neither a cloud nor a broker is needed.
"""

import json
import subprocess

import pytest

from nova_fairness.cluster.messages import parser
from nova_fairness.relay import envelope
from nova_fairness.relay import jobs
from tests.fixtures import nova_casts
from tests.fixtures.nova_cloud import environment

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

SERVERS = tuple(nova_casts.UUIDS[:2])


@pytest.fixture(scope='module')
def written():
    """Bodies of messages by method."""
    venv = environment.ensure(environment.default_cache())
    done = subprocess.run(
        [f'{venv}/bin/python', '-m', 'tests.fixtures.nova_cloud.held_casts'],
        cwd=environment.TOP,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told['nova'].startswith(f'{environment.release()}.')
    return told['bodies']


def read(written, method):
    """What the cluster service makes of a message."""
    body = written[method].encode()
    held = envelope.cast_to_hold(body, jobs.HELD_METHODS)
    assert held.method == method
    return parser.parse_message(nova_casts.held(body, method))


def test_a_build_of_two_servers_is_one_request(written):
    found = read(written, 'schedule_and_build_instances')
    assert found.servers == SERVERS
    assert (found.project, found.user) == ('the-project', 'the-user')
    assert found.flavor == 'small'
    assert found.names == ('web', 'web')
    assert dict(found.demand.amounts) == {
        'DISK_GB': 5,
        'MEMORY_MB': 512,
        'VCPU': 2,
    }


def test_a_server_that_is_unshelved_is_a_request(written):
    found = read(written, 'unshelve_instance')
    assert found.servers == SERVERS[:1]
    assert found.project == 'the-project'
    assert dict(found.demand.amounts)['VCPU'] == 2


def test_no_other_messages_are_held(written):
    assert sorted(written) == sorted(jobs.HELD_METHODS)
