# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import stat

import pytest

from fairness_lab.testbed.nodes import keys
from oslo_messaging_zmq import errors
from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.keys import files


def test_every_node_has_its_own_secret_and_the_whole_list(tmp_path):
    owned = keys.give(tmp_path, ('node1', 'node2'))
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
        keys.give(tmp_path, ('-',))


def test_no_nodes_have_no_keys(tmp_path):
    assert keys.give(tmp_path, ()) == {}
