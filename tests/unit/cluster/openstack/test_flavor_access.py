# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness import exception
from nova_fairness.cluster.openstack import flavor_access
from nova_fairness.cluster.openstack import nova as nova_module
from tests.unit.cluster import test_service

world = test_service.world


class FakeApi:
    """Nova, which says who may use a flavor and counts how often."""

    def __init__(self):
        self.may, self.asked = {}, []

    def get(self, path):
        flavor = path.split('/')[2]
        self.asked.append(flavor)
        if flavor not in self.may:
            return None
        access = [{'tenant_id': each} for each in self.may[flavor]]
        return {'flavor_access': access}


@pytest.fixture
def api():
    return FakeApi()


@pytest.fixture
def access(api):
    made = flavor_access.FlavorAccess(api, lambda: made.now)
    made.now = 0.0
    return made


def flavor(name, *, public=False):
    return {'id': name, 'os-flavor-access:is_public': public}


def names(access, listed, project):
    return [each['id'] for each in access.usable_flavors(listed, project)]


def test_a_project_sees_public_flavors_and_its_own(api, access):
    api.may = {'a': ['p'], 'b': ['q']}
    listed = [flavor('a'), flavor('b'), flavor('c', public=True), {'id': 'd'}]
    assert names(access, listed, 'p') == ['a', 'c', 'd']
    assert names(access, listed, 'q') == ['b', 'c', 'd']
    assert names(access, listed, '') == ['c', 'd']
    assert names(access, listed, 'None') == ['c', 'd']


def test_flavor_access_is_cached_for_a_while(api, access):
    api.may = {'a': ['p']}
    for _ in range(9):
        assert names(access, [flavor('a')], 'p') == ['a']
    assert names(access, [flavor('a')], 'q') == []
    assert api.asked == ['a']
    api.may = {'a': ['q']}
    access.now = flavor_access.KEPT_S
    assert names(access, [flavor('a')], 'q') == ['a']
    assert names(access, [flavor('a')], 'p') == []


def test_access_of_many_flavors_is_read_a_few_at_a_time(api, access):
    count = 2 * flavor_access.AT_ONCE + 1
    api.may = {f'f{number:03}': ['p'] for number in range(count)}
    listed = [flavor(name) for name in api.may]
    told = [len(names(access, listed, 'p')) for _ in range(4)]
    assert told == [20, 40, 41, 41]
    assert len(api.asked) == count


def test_a_vanished_flavor_belongs_to_no_project(api, access):
    assert names(access, [flavor('a')], 'p') == []


def test_an_answer_that_cannot_be_read_is_an_outage(world, monkeypatch):
    world.cloud.private_flavors = {'nine': ['p']}
    nova = nova_module.Nova(world.cloud.apis.nova)
    assert set(nova.flavor_amounts('p')) == {'nine', 'two'}
    assert set(nova.flavor_amounts('')) == {'two'}
    monkeypatch.setattr(
        nova._flavor_access, '_api', type('Odd', (), {'get': lambda *_: [1]})()
    )
    nova._flavor_access._known.clear()
    with pytest.raises(exception.CloudAway, match='cannot be read'):
        nova.flavor_amounts('p')
