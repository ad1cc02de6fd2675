# SPDX-License-Identifier: Apache-2.0

"""What holds for every test."""

import os
import pathlib

import hypothesis
from oslo_service import backend
import pytest

# oslo.privsep loads eventlet wherever it is installed, and eventlet a resolver
# that takes longer to load than a helper does; programs that tests start, too.
os.environ['EVENTLET_NO_GREENDNS'] = 'yes'

# As the programs do, before anything else of oslo chooses another one.
backend.init_backend(backend.BackendType.THREADING)

UNIT = pathlib.Path(__file__).parent / 'unit'
COVERING = (
    *('model', 'measure', 'decide', 'shares', 'planners', 'cluster/casts'),
    *('relay', 'collect', 'exchange', 'agent', 'observe'),
)
"""Folders of unit tests that count for the coverage of the pure rooms, which
``pyproject.toml`` names. To trace all others takes half as long again, and
what only they run is not tested where it belongs."""

hypothesis.settings.register_profile(
    'repeatable', derandomize=True, deadline=None
)
hypothesis.settings.load_profile('repeatable')


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Trace no more than counts; say at once what real guests need."""
    covering = tuple(f'{UNIT}/{folder}/' for folder in COVERING)
    for item in items:
        if UNIT in item.path.parents and not str(item.path).startswith(
            covering
        ):
            item.add_marker(pytest.mark.no_cover)
    real = [item for item in items if item.get_closest_marker('real')]
    if real and os.geteuid() != 0:
        raise pytest.UsageError(
            f'{len(real)} tests need root (real guests), for example'
            f' {real[0].nodeid}; leave them out with -m "not real"'
        )
