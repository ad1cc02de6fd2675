# SPDX-License-Identifier: Apache-2.0

"""A guest that knows of no metadata is told by its agent, and makes room."""

import json
import time

import pytest

from nova_fairness.cluster.eviction import notice_channels
from tests.fixtures.nova_cloud import agent_guest
from tests.fixtures.nova_cloud import environment
from tests.fixtures.nova_cloud import guest_image
from tests.fixtures.nova_cloud import settings
from tests.integration.nova import filling
from tests.integration.nova import rooms
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)

HERE, AGENT = 'cmp2', 'agent'
NOTICE_S = 300
WRITTEN = environment.TOP / 'build/guest-agent.json'


@pytest.fixture(scope='module')
def image(cloud):
    cache = environment.default_cache()
    boot = agent_guest.ensure(cache)
    cloud.images[AGENT] = made = guest_image.upload_guest(
        cloud.admin, AGENT, boot, cache, hw_qemu_guest_agent='yes'
    )
    yield made
    del cloud.images[AGENT]
    cloud.admin.delete('image', f'/v2/images/{made}')


@pytest.fixture
def guest(cloud, queue, image):
    """The only one of its host that may have to go; the host is full."""
    queue.restart(
        **{**rooms.OPTIONS, 'end_notice': str(NOTICE_S)}, room_actions='delete'
    )
    cloud.capacity()
    path = f'/servers?all_tenants=1&host={HERE}'
    used = len(cloud.admin.get('compute', path)['servers'])
    made = [
        cloud.boot(
            rooms.RICH, 'may-go', HERE, AGENT, metadata=rooms.PREEMPTIBLE
        )
    ]
    try:
        made += [
            filling.boot(cloud, rooms.POOR, f'stays-{number}', HERE)
            for number in range(settings.VCPUS - used - 1)
        ]
        for each in made:
            cloud.await_status(each)
        yield made[0]
    finally:
        cloud.delete([each for each in made if cloud.exists(each)])
        queue.restart(lease='1')
        cloud.capacity()
        queue.set()


@pytest.mark.slow
def test_a_guest_with_a_guest_agent_gets_its_notice_and_leaves_early(
    cloud, guest
):
    console = (
        cloud.nodes[HERE].directory
        / settings.STATE.relative_to('/')
        / f'instances/{guest}/console.log'
    )
    watching.eventually(
        lambda: agent_guest.READY in console.read_text(), console.read_text
    )
    began = time.time()
    asked = filling.boot(cloud, rooms.OWNER, 'needs', HERE)
    try:
        filling.await_told(cloud, [asked], 'reason', ['room_is_made'])
        told = f'{agent_guest.SAYS} '
        watching.eventually(
            lambda: told in console.read_text(), console.read_text
        )
        told_s = time.time() - began
        said = console.read_text().partition(told)[2].split()[0]
        assert said == cloud.show(guest)['metadata'][notice_channels.LEAVES_AT]
        cloud.await_status(asked)
        active_s = time.time() - began
        assert began + active_s < rooms.seconds(said) - NOTICE_S / 2
        assert not cloud.exists(guest)
    finally:
        cloud.delete([asked])
    WRITTEN.parent.mkdir(parents=True, exist_ok=True)
    WRITTEN.write_text(
        json.dumps(
            {
                'test': 'tests/integration/nova/test_guest_agent.py',
                'notice_s': NOTICE_S,
                'guest_told_after_s': round(told_s, 1),
                'started_after_s': round(active_s, 1),
            },
            indent=1,
        )
        + '\n'
    )
