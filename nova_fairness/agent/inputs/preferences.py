# SPDX-License-Identifier: Apache-2.0

"""Preferences of owners among their own VMs, from calls and from a file."""

from collections.abc import Mapping
import json
import logging
import math
import pathlib
import threading

from nova_fairness import exception
from nova_fairness.agent.inputs import json_file
from nova_fairness.decide import preferences
from nova_fairness.runtime import state_file as state

LOG = logging.getLogger(__name__)

VERSION = 1
MAX_VMS = 100_000
"""Largest number of VMs with a preference."""


class Preferences:
    """Stores the preferences; one set by a call overrides the file's.

    Calls run on other threads; the next round reads their result.

    :param path: of the file that stores the preferences set by calls.
    :param operator_file: path of ``[fairness] preferences_file``; empty if
        there is none.
    """

    def __init__(self, path: pathlib.Path, operator_file: str = '') -> None:
        self.state_file = state.StateFile(path)
        nothing: Mapping[str, float] = {}
        self._file = json_file.watch_json(
            '[fairness] preferences_file', operator_file, _parse, nothing
        )
        self._lock = threading.Lock()
        self._by_call = _load_saved(path)
        self._by_file: Mapping[str, float] = {}
        self._all = dict(self._by_call)

    def current(self) -> Mapping[str, float]:
        """Return the preference of each VM that has one, by UUID.

        The operator's file is read again after a change. If it is unusable,
        its last usable content applies.
        """
        by_file = self._file.content()
        if by_file is not self._by_file:
            with self._lock:
                self._by_file = by_file
                self._all = {**by_file, **self._by_call}
        return self._all

    def store(self, changes: Mapping[str, float | None]) -> str:
        """Set or delete the preferences of some VMs.

        :param changes: preference by UUID; ``None`` deletes it.
        :returns: why the change will not survive a restart; empty if it will.
        :raises BadArgument: if a number is unusable; then nothing changes.
        """
        checked = {
            uuid: _checked_preference(uuid, n) for uuid, n in changes.items()
        }
        with self._lock:
            merged = {**self._by_call, **checked}
            kept = {uuid: n for uuid, n in merged.items() if n is not None}
            if len(kept) > MAX_VMS:
                raise exception.BadArgument(
                    f'{len(kept)} VMs with a preference, expected at most '
                    f'{MAX_VMS}'
                )
            self._by_call = kept
            self._all = {**self._by_file, **kept}
            content = {'version': VERSION, 'preferences': kept}
            return self.state_file.write(json.dumps(content))


def _load_saved(path: pathlib.Path) -> dict[str, float]:
    """Read the preferences that calls set before a restart."""
    try:
        content = json.loads(path.read_text('utf-8'))
        if content['version'] == VERSION:
            return _parse(content['preferences'])
        problem = f'its version is {content["version"]}'
    except FileNotFoundError:
        return {}
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        exception.BadArgument,
    ) as error:
        problem = str(error)
    LOG.warning(
        '%s: the file cannot be read: %s; no VM has a preference',
        path,
        problem,
    )
    return {}


def _parse(content: object) -> dict[str, float]:
    """Validate an object of numbers by UUID.

    :raises ValueError: if it is no such object.
    :raises BadArgument: if a number is out of range.
    """
    if not isinstance(content, dict) or len(content) > MAX_VMS:
        raise ValueError(
            'expected an object with a number for each UUID, at most '
            f'{MAX_VMS}'
        )
    found = {
        str(uuid): _checked_preference(uuid, n) for uuid, n in content.items()
    }
    return {uuid: n for uuid, n in found.items() if n is not None}


def _checked_preference(uuid: str, number: object) -> float | None:
    """Return a preference as a float; ``None`` for ``None``.

    :raises BadArgument: if it is out of range.
    """
    if number is None:
        return None
    usable = isinstance(number, int | float) and not isinstance(number, bool)
    if usable and math.isfinite(number):  # type: ignore[arg-type]
        value = float(number)  # type: ignore[arg-type]
        if preferences.SMALLEST <= value <= preferences.LARGEST:
            return value
    raise exception.BadArgument(
        f'preference {number!r} of {uuid}: expected a number from '
        f'{preferences.SMALLEST:g} to {preferences.LARGEST:g}'
    )
