# SPDX-License-Identifier: Apache-2.0

"""What holds for every unit test."""

import itertools
import types

import pytest

from nova_fairness.cluster.admission import start_estimates
from nova_fairness.runtime import heap

_ONE_OF = 50
"""To look through thousands of tests takes seconds; the service has none."""


@pytest.fixture(autouse=True, scope='session')
def seldom_collected():
    """Collect the garbage of cycles of the service once in a while."""
    calls = itertools.count(1)

    def collect() -> None:
        if next(calls) % _ONE_OF == 0:
            heap.collect()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            start_estimates, 'heap', types.SimpleNamespace(collect=collect)
        )
        yield
