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

_FIRST_WITH_THREADS = 34
"""First release in which Nova can select threads without a warning."""

_UNPATCHED = 'OS_NOVA_DISABLE_EVENTLET_PATCHING'
"""Environment variable that disables eventlet in all these releases."""


def release() -> str:
    """Return the version of the installed Nova; empty without one."""
    try:
        return importlib.metadata.version('nova')
    except importlib.metadata.PackageNotFoundError:
        return ''


def release_number(version: str) -> int:
    """Return the release of a version, such as 34 of 34.0.1; 0 if empty."""
    return int(version.partition('.')[0] or 0)


def unsupported_release() -> str:
    """Return why the installed Nova is unsupported.

    :returns: empty if it is supported, or Nova is not installed.
    """
    found = release()
    if not found or release_number(found) >= OLDEST:
        return ''
    return (
        f'Nova {found} is not supported; expected Nova {OLDEST} or later, or '
        'an environment of its own for nova-fairness'
    )


def use_native_threads() -> None:
    """Make this process, and Nova in it, use native threads.

    Call it before any module of oslo is imported.
    """
    os.environ[_UNPATCHED] = 'true'
    if (
        release_number(release()) >= _FIRST_WITH_THREADS
        and 'eventlet' not in sys.modules
    ):
        nova: Any = importlib.import_module('nova.monkey_patch')
        nova.patch(backend='threading')
        return
    backend: Any = importlib.import_module('oslo_service.backend')
    backend.init_backend(backend.BackendType.THREADING)
