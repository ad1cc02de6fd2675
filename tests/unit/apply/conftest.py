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


"""A host of files for the tests of this room."""

import pytest

from tests.unit.apply import fake_host


@pytest.fixture
def host(tmp_path, monkeypatch) -> fake_host.FakeHost:
    made = fake_host.FakeHost(tmp_path / 'host')
    made.let_helper_see_it(monkeypatch)
    return made
