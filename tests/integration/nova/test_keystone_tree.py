# SPDX-License-Identifier: Apache-2.0

"""The share tree of the real Keystone."""

import json
import types

import pytest

from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import keystone
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)


class Adapter:
    """Asks as an administrator of this cloud."""

    def __init__(self, session):
        self._session = session

    def request(self, path, method, **_):
        answer = self._session.ask(method, 'identity', path)
        return types.SimpleNamespace(
            status_code=answer.status, json=lambda: answer.body
        )


@pytest.fixture
def mirror(cloud):
    used = []
    clock = [0.0]

    def later():
        clock[0] += keystone.EVERY_S
        return {each.name: each for each in made.accounts()}

    made = keystone.AccountMirror(
        keystone.Keystone(clients.keystone_api(Adapter(cloud.admin))),
        tuple,
        lambda: used,
        lambda: clock[0],
    )
    return types.SimpleNamespace(later=later, used=used)


@pytest.mark.slow
def test_projects_of_keystone_appear_below_their_parents_and_vanish(
    cloud, mirror
):
    admin = cloud.admin
    found = mirror.later()
    assert found['default'].parent is None
    for session in cloud.users.values():
        assert found[session.project].parent == 'default'
    made = []
    parent = 'default'
    try:
        for name in ('faculty', 'group', 'thesis'):
            about = {
                'name': name, 'domain_id': 'default', 'parent_id': parent
            }  # fmt: skip
            told = admin.post('identity', '/projects', {'project': about})
            parent = told['project']['id']
            made.append(parent)
        found = mirror.later()
        assert [found[each].parent for each in made] == ['default', *made[:2]]
        mirror.used.append(made[2])
    finally:
        for uuid in reversed(made):
            admin.delete('identity', f'/projects/{uuid}')
    found = mirror.later()
    assert made[1] not in found, json.dumps(sorted(found))
    assert found[made[2]].vanished
