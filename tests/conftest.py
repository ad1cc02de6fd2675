# SPDX-License-Identifier: Apache-2.0

"""What holds for every test."""

import os
import signal

import hypothesis
from oslo_service import backend
import pytest

# oslo.privsep loads eventlet wherever it is installed, and eventlet a resolver
# that takes longer to load than a helper does; programs that tests start, too.
os.environ['EVENTLET_NO_GREENDNS'] = 'yes'

# As the programs do, before anything else of oslo chooses another one.
backend.init_backend(backend.BackendType.THREADING)

# A shell that starts tests in the background has Ctrl-C ignored, and whatever
# they start would ignore it, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile(
    'repeatable', derandomize=True, deadline=None
)
hypothesis.settings.load_profile('repeatable')


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say at once what real guests need."""
    real = [item for item in items if item.get_closest_marker('real')]
    if real and os.geteuid() != 0:
        raise pytest.UsageError(
            f'{len(real)} tests need root (real guests), for example'
            f' {real[0].nodeid}; leave them out with -m "not real"'
        )
