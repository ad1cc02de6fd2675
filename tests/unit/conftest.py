# SPDX-License-Identifier: Apache-2.0

"""What holds for every unit test."""

import itertools
import sys
import types

import pytest

from nova_fairness.runtime import heap

_ONE_OF = 50
"""To look through thousands of tests takes seconds; the service has none."""

_ESTIMATES = 'nova_fairness.cluster.admission.start_estimates'


@pytest.fixture(autouse=True, scope='session')
def seldom_collected():
    """Collect the garbage of cycles of the service once in a while."""
    calls = itertools.count(1)

    def collect() -> None:
        if next(calls) % _ONE_OF == 0:
            heap.collect()

    with pytest.MonkeyPatch.context() as patched:
        # Tests of agents alone may have no libraries of the service.
        if _ESTIMATES in sys.modules:
            patched.setattr(
                sys.modules[_ESTIMATES],
                'heap',
                types.SimpleNamespace(collect=collect),
            )
        yield
