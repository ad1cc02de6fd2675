# SPDX-License-Identifier: Apache-2.0

"""Preferences of owners among their own VMs, from calls and a file."""

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
MOST = 100_000
"""Largest number of VMs with a preference."""


class Preferences:
    """Keeps what was stated; a call comes before the file.

    Calls arrive on other threads; the next round takes what they left.

    :param path: where what calls stated is kept over restarts.
    :param file: an operator's file, ``[fairness] preferences_file``; empty if
        there is none.
    """

    def __init__(self, path: pathlib.Path, file: str = '') -> None:
        self.state_file = state.StateFile(path)
        nothing: Mapping[str, float] = {}
        self._file = json_file.watched(
            '[fairness] preferences_file', file, _read, nothing
        )
        self._lock = threading.Lock()
        self._by_call = _kept(path)
        self._by_file: Mapping[str, float] = {}
        self._all = dict(self._by_call)

    def stated(self) -> Mapping[str, float]:
        """Preference of each VM that has one, by UUID.

        Reads the file again if it changed; one that cannot be used leaves
        what it said before.
        """
        by_file = self._file.content()
        if by_file is not self._by_file:
            with self._lock:
                self._by_file = by_file
                self._all = {**by_file, **self._by_call}
        return self._all

    def state(self, stated: Mapping[str, float | None]) -> str:
        """Take over what is said of some VMs.

        :param stated: by UUID, ``None`` to say nothing of it any more.
        :returns: why it will not outlive this agent; empty if it will.
        :raises BadArgument: if a number is not one that can be used; then
            nothing is taken over.
        """
        checked = {uuid: _checked(uuid, n) for uuid, n in stated.items()}
        with self._lock:
            merged = {**self._by_call, **checked}
            kept = {uuid: n for uuid, n in merged.items() if n is not None}
            if len(kept) > MOST:
                raise exception.BadArgument(
                    f'{len(kept)} VMs with a preference, expected at most '
                    f'{MOST}'
                )
            self._by_call = kept
            self._all = {**self._by_file, **kept}
            content = {'version': VERSION, 'preferences': kept}
            return self.state_file.write(json.dumps(content))


def _kept(path: pathlib.Path) -> dict[str, float]:
    """Read what calls stated before a restart."""
    try:
        content = json.loads(path.read_text('utf-8'))
        if content['version'] == VERSION:
            return _read(content['preferences'])
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
    LOG.warning('%s cannot be read (%s): no preferences', path, problem)
    return {}


def _read(content: object) -> dict[str, float]:
    """Check an object of numbers by UUID.

    :raises ValueError: if it is none.
    :raises BadArgument: if a number is not one that can be used.
    """
    if not isinstance(content, dict) or len(content) > MOST:
        raise ValueError(
            f'expected an object with a number for each UUID, at most {MOST}'
        )
    found = {str(uuid): _checked(uuid, n) for uuid, n in content.items()}
    return {uuid: n for uuid, n in found.items() if n is not None}


def _checked(uuid: str, number: object) -> float | None:
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
