# SPDX-License-Identifier: Apache-2.0

"""What holds for every test."""

import json
import os
import pathlib
import signal

import hypothesis
from oslo_service import backend
import pytest

from tests.fixtures import effort

# oslo.privsep loads eventlet wherever it is installed, and eventlet a resolver
# that takes longer to load than a helper does; programs that tests start, too.
os.environ['EVENTLET_NO_GREENDNS'] = 'yes'

# As the programs do, before anything else of oslo chooses another one.
backend.init_backend(backend.BackendType.THREADING)

# A shell that starts tests in the background has Ctrl-C ignored, and whatever
# they start would ignore it, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A full run begins at random, and prints how to repeat what it finds.
hypothesis.settings.register_profile(
    'effort',
    derandomize=not effort.FULL,
    print_blob=effort.FULL,
    deadline=None,
    max_examples=effort.count_to_try(100),
)
hypothesis.settings.load_profile('effort')


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a test that is tried again, and why."""
    path = os.environ.get(effort.RERUNS)
    # Processes of xdist report to the one that started them.
    if (
        report.outcome != 'rerun'
        or not path
        or 'PYTEST_XDIST_WORKER' in os.environ
    ):
        return
    line = json.dumps({'test': report.nodeid, 'why': report.longreprtext})
    with pathlib.Path(path).open('a') as file:
        file.write(f'{line}\n')


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Take part of what repeats; say at once what real guests need."""
    spared = frozenset(effort.select_omitted(items))
    config.hook.pytest_deselected(items=[*spared])
    items[:] = [item for item in items if item not in spared]
    real = [item for item in items if item.get_closest_marker('real')]
    if real and os.geteuid() != 0:
        raise pytest.UsageError(
            f'{len(real)} tests need root (real guests), for example'
            f' {real[0].nodeid}; leave them out with -m "not real"'
        )
