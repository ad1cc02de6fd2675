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

import os

import pytest

from fairness_lab.testbed import cleanup
from nova_fairness import exception


def test_other_runs_are_those_whose_owner_lives(tmp_path):
    mine = cleanup.begin(os.getpid(), tmp_path)
    other = cleanup.begin(os.getppid(), tmp_path)
    (tmp_path / 'rdead').mkdir()
    assert cleanup.other_runs(mine) == [other.name]
    assert cleanup.other_runs(other) == [mine.name]


def test_a_run_needs_an_owner_that_lives(tmp_path):
    with pytest.raises(exception.LabError, match='it is gone'):
        cleanup.begin(2**22 - 1, tmp_path)
