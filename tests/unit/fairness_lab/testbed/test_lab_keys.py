# SPDX-License-Identifier: Apache-2.0

import stat

import pytest

from fairness_lab.testbed.nodes import agent
from oslo_messaging_zmq import errors
from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.keys import files


def test_every_node_has_its_own_secret_and_the_whole_list(tmp_path):
    owned = agent.make_keys(tmp_path, ('node1', 'node2'))
    assert set(owned) == {'node1', 'node2'}
    for name, path in owned.items():
        secret = files.own_secret_path(path)
        assert files.read_pair(secret).name == name
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        names = {(e.name, e.role) for e in admin.entries(path)}
        assert names == {('node1', 'node'), ('node2', 'node')}
        assert list(admin.faults(path)) == []


def test_a_name_that_no_key_can_have_is_refused(tmp_path):
    with pytest.raises(errors.KeysError, match='no name'):
        agent.make_keys(tmp_path, ('-',))


def test_no_keys_are_made_without_nodes(tmp_path):
    assert agent.make_keys(tmp_path, ()) == {}
