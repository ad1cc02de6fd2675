# SPDX-License-Identifier: Apache-2.0

"""Differences between releases of Nova; oslo is imported only when asked for.

Programs of this project run by native threads:

* Nova 31 patches a process for eventlet when its ``nova.monkey_patch`` is
  imported. A variable of the environment forbids that. It chooses no backend
  of oslo.service.
* Nova 32 and 33 choose threads if they are asked to, and log a warning that
  this is experimental. An agent does not need more than the choice.
* Nova 34 chooses threads without a warning. The choice must be its own. It
  refuses if eventlet is imported.
"""

import importlib
import importlib.metadata
import os
import sys
from typing import Any

OLDEST, NEWEST = 31, 34
"""Releases of Nova with which the tests run."""

_CHOOSES = 34
"""Since this release Nova chooses threads, without a warning."""

_UNPATCHED = 'OS_NOVA_DISABLE_EVENTLET_PATCHING'
"""Variable of the environment that all of them obey."""


def release() -> str:
    """Version of the Nova in this Python environment; empty without one."""
    try:
        return importlib.metadata.version('nova')
    except importlib.metadata.PackageNotFoundError:
        return ''


def number(version: str) -> int:
    """The release of a version, such as 34 of 34.0.1; 0 of none."""
    return int(version.partition('.')[0] or 0)


def fault() -> str:
    """Say why the Nova in this Python environment cannot be used.

    :returns: empty if it can be, and without a Nova.
    """
    found = release()
    if not found or number(found) >= OLDEST:
        return ''
    return (
        f'Nova {found} is not supported; expected Nova {OLDEST} or later, or '
        'an environment of its own for nova-fairness'
    )


def run_by_threads() -> None:
    """Have this process, and the Nova in it, run by native threads.

    Call it before anything of oslo is imported.
    """
    os.environ[_UNPATCHED] = 'true'
    if number(release()) >= _CHOOSES and 'eventlet' not in sys.modules:
        nova: Any = importlib.import_module('nova.monkey_patch')
        nova.patch(backend='threading')
        return
    backend: Any = importlib.import_module('oslo_service.backend')
    backend.init_backend(backend.BackendType.THREADING)
