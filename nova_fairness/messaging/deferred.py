# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Refusals that are noted under a native lock and logged after it.

Logging may switch green threads, and whoever waits for a native lock then
stops them all.
"""

import collections
from typing import Protocol

from nova_fairness.messaging import native
from nova_fairness.messaging import refusals

_MOST = 10000


class Refusing(Protocol):
    """What hears about refusals."""

    def note(self, kind: str, who: str, why: str) -> None:
        """Count a refusal, and log it unless the same was said just now."""


class Notes:
    """Refusals that wait to be counted and logged.

    :param refused: counts and logs them, for one thread at a time.
    """

    def __init__(self, refused: refusals.Refusals) -> None:
        self._refused = refused
        self._notes: collections.deque[tuple[str, str, str]] = (
            collections.deque(maxlen=_MOST)
        )
        self._busy = native.lock()

    def note(self, kind: str, who: str, why: str) -> None:
        """Keep a refusal for later."""
        self._notes.append((kind, who, why))

    def flush(self) -> None:
        """Count and log what was kept; call it without any lock.

        If another thread is at it, that one goes on with it.
        """
        while self._notes and self._busy.acquire(blocking=False):
            try:
                while self._notes:
                    self._refused.note(*self._notes.popleft())
            finally:
                self._busy.release()
