# SPDX-License-Identifier: Apache-2.0

"""What differs between releases of Nova; imports nothing of oslo by itself.

How to run by native threads, as this project's programs do:

* Nova 31 patches this process for eventlet when one of its programs, or
  ``nova.monkey_patch``, is imported, unless the environment forbids it. It
  knows nothing of the backends of oslo.service, and allows the version that
  has them.
* Nova 32 and 33 can run by threads, call that experimental and warn of it.
  What they do beyond is to forbid eventlet's patches: nothing of theirs that
  an agent uses makes any.
* Nova 34 runs by threads. It chooses itself, or it could choose something else
  once it is imported, and refuses to where eventlet is imported before.
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
