# SPDX-License-Identifier: Apache-2.0

"""The share tree of a fake Keystone, and what a file says of it."""

import logging

import pytest

from nova_fairness import exception
from nova_fairness.cluster.openstack import keystone
from nova_fairness.model import cluster
from tests.fixtures import fake_cloud

Account = cluster.Account


class World:
    def __init__(self):
        self.cloud = fake_cloud.FakeCloud()
        self.now = 0.0
        self.file = ()
        self.used = {}
        self.mirror = self.restarted()

    def restarted(self):
        self.mirror = keystone.AccountMirror(
            keystone.Keystone(self.cloud.apis.keystone),
            lambda: self.file,
            lambda: self.used,
            lambda: self.now,
        )
        return self.mirror

    def later(self):
        """The tree once Keystone was asked again."""
        self.now += keystone.EVERY_S
        return self.accounts()

    def accounts(self):
        return {each.name: each for each in self.mirror.accounts()}


@pytest.fixture
def world():
    made = World()
    made.cloud.add_domain('default')
    made.cloud.add_domain('physics')
    made.cloud.add_project('theory', 'physics')
    made.cloud.add_project('strings', 'physics', 'theory')
    made.cloud.add_project('knots', 'physics', 'strings')
    made.cloud.add_project('admin', 'default')
    return made


def test_the_share_tree_has_domains_and_projects_of_any_depth(world):
    assert world.accounts() == {
        'default': Account('default'),
        'physics': Account('physics'),
        'theory': Account('theory', 'physics'),
        'strings': Account('strings', 'theory'),
        'knots': Account('knots', 'strings'),
        'admin': Account('admin', 'default'),
    }


def test_settings_of_the_file_count_where_keystone_has_the_account(world):
    world.file = (
        Account('physics', None, 70.0),
        Account('strings', None, 3.0, nominal=(('VCPU', 4),)),
        Account('strings/ann', 'strings', 2.0),
        Account('thesis', 'theory'),
        Account('knots', 'thesis', 5.0),
    )
    found = world.accounts()
    assert found['physics'] == Account('physics', None, 70.0)
    assert found['strings'].parent == 'theory'
    assert found['strings'].share == 3.0
    assert found['strings'].nominal == (('VCPU', 4),)
    assert found['strings/ann'].parent == 'strings'
    assert found['thesis'].parent == 'theory'
    # Who is put somewhere by the file is there.
    assert found['knots'].parent == 'thesis'


def test_keystone_is_read_once_a_minute_and_changes_are_adopted(world):
    world.accounts()
    world.cloud.add_project('new', 'physics', 'theory')
    world.cloud.add_project('knots', 'physics', 'theory')
    world.now += keystone.EVERY_S - 1
    assert 'new' not in world.accounts()
    assert len(world.cloud.asked) == 2
    world.now += 1
    found = world.accounts()
    assert found['new'].parent == 'theory'
    assert found['knots'].parent == 'theory'
    assert len(world.cloud.asked) == 4


def test_an_unchanged_tree_is_the_same_object(world):
    first = world.mirror.accounts()
    world.now += keystone.EVERY_S
    assert world.mirror.accounts() is first


@pytest.mark.parametrize(
    'broken',
    [
        {'GET /projects': 503},
        {'GET /domains': 403},
        {'GET /domains': 404},
        {'GET /projects': '{"projects": [{"id": "p"}]}'},
        {'GET /projects': '{"projects": [], "truncated": true}'},
    ],
)
def test_the_share_tree_stays_while_keystone_is_away(world, broken, caplog):
    before = world.accounts()
    world.cloud.broken = broken
    with caplog.at_level(logging.ERROR):
        assert world.later() == before
        assert world.later() == before
    assert len(caplog.messages) == 1
    world.cloud.broken = {}
    world.cloud.add_project('new', 'default')
    assert 'new' in world.later()


def test_without_any_answer_of_keystone_there_is_no_share_tree(world):
    world.cloud.broken = {'GET /domains': 503}
    with pytest.raises(exception.CloudAway):
        world.mirror.accounts()
    world.cloud.broken = {}
    assert 'physics' in world.accounts()


def test_a_share_file_with_a_cycle_is_refused(world, caplog):
    before = world.accounts()
    world.file = (Account('physics', 'knots'), Account('admin', None, 9.0))
    with caplog.at_level(logging.ERROR):
        assert world.accounts() == before
        world.later()
    assert len(caplog.messages) == 1
    assert 'circle' in caplog.messages[0]
    world.file = (Account('admin', None, 9.0),)
    assert world.accounts()['admin'].share == 9.0


def test_a_vanished_account_stays_while_the_ledger_has_its_use(world, caplog):
    world.used = {'strings': {}, 'strings/ann': {}, 'thesis': {}, 'physics': 1}
    world.file = (Account('thesis', 'theory'),)
    world.accounts()
    for uuid in ('strings', 'knots'):
        del world.cloud.projects[uuid]
    with caplog.at_level(logging.INFO):
        found = world.later()
        world.later()
    assert found['strings'] == Account('strings', 'theory', vanished=True)
    assert 'knots' not in found
    assert 'strings/ann' not in found
    assert not found['thesis'].vanished
    assert caplog.messages == [keystone.VANISHED % 'strings']
    # Another process does not know where it was.
    world.restarted()
    assert world.accounts()['strings'] == Account('strings', vanished=True)
    world.used = {}
    assert 'strings' not in world.later()


@pytest.mark.parametrize(
    ('account', 'is_known'),
    [
        ('theory', True),
        ('theory/ann', True),
        ('theory/fed', True),
        ('theory/bob', False),
        ('theory/eve', False),
        ('beta', False),
        ('beta/ann', False),
        ('THEORY', False),
        ('physics', False),
        ('..', False),
        ('theory/..', False),
        ('a?b', False),
    ],
)
def test_an_account_is_a_project_or_a_user_with_a_role_in_it(
    world, account, is_known
):
    for user in ('ann', 'bob'):
        world.cloud.users[user] = {'id': user}
    world.cloud.users['fed'] = {'id': 'fed', 'federated': [{'idp_id': 'i'}]}
    world.cloud.roles = {('ann', 'theory'), ('eve', 'theory')}
    api = keystone.Keystone(world.cloud.apis.keystone)
    assert api.account_exists(account) is is_known


@pytest.mark.parametrize(
    'broken',
    [
        {'GET /projects': 503},
        {'GET /users': 403},
        {'GET /role_assignments': 500},
        {'GET /projects': '{"projects": []}'},
    ],
)
def test_an_account_is_not_denied_while_keystone_is_away(world, broken):
    world.cloud.users['ann'] = {'id': 'ann'}
    world.cloud.broken = broken
    api = keystone.Keystone(world.cloud.apis.keystone)
    with pytest.raises(exception.CloudError):
        api.account_exists('theory/ann')
