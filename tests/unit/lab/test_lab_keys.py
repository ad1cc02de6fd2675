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

from nova_fairness import exception
from nova_fairness.lab import keys
from nova_fairness.messaging import key_admin
from nova_fairness.messaging import key_files


def test_every_node_has_its_own_secret_and_the_whole_list(tmp_path):
    owned = keys.give(tmp_path, ('node1', 'node2'))
    assert set(owned) == {'node1', 'node2'}
    for name, path in owned.items():
        secret = key_files.own_secret_path(path)
        assert key_files.read_pair(secret).name == name
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        names = {(e.name, e.role) for e in key_admin.entries(path)}
        assert names == {('node1', 'node'), ('node2', 'node')}
        assert list(key_admin.faults(path)) == []


def test_a_name_that_no_key_can_have_is_refused(tmp_path):
    with pytest.raises(exception.KeysError, match='no name'):
        keys.give(tmp_path, ('-',))


def test_no_nodes_have_no_keys(tmp_path):
    assert keys.give(tmp_path, ()) == {}
