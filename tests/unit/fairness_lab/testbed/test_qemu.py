# SPDX-License-Identifier: Apache-2.0

import os

import pytest

from fairness_lab.testbed import qemu
from nova_fairness import exception


def test_other_runs_are_those_whose_owner_lives(tmp_path):
    mine = qemu.begin_run(os.getpid(), tmp_path)
    other = qemu.begin_run(os.getppid(), tmp_path)
    (tmp_path / 'rdead').mkdir()
    assert qemu.other_runs(mine) == [other.name]
    assert qemu.other_runs(other) == [mine.name]


def test_a_run_needs_an_owner_that_lives(tmp_path):
    with pytest.raises(exception.LabError, match='it is gone'):
        qemu.begin_run(2**22 - 1, tmp_path)
