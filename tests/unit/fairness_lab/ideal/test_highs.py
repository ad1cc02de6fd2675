# SPDX-License-Identifier: Apache-2.0

"""Where HiGHS is not installed, it is said what is missing."""

import sys

import numpy as np
import pytest

from fairness_lab.ideal import highs
from nova_fairness import exception


def test_the_extra_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'highspy', None)
    with pytest.raises(exception.SimError, match=r'nova-fairness\[sim\]'):
        highs.LinearProgram(np.ones(1), np.ones(1), None)
