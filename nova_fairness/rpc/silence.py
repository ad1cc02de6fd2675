# SPDX-License-Identifier: Apache-2.0

"""Remembers silent hosts, so that callers do not wait for them again."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import math
import threading
import time


class Silence:
    """Hosts that did not answer a short while ago.

    :param for_s: how long they are not asked again, in seconds; >= 0.
    :param clock: monotonic, seconds.
    """

    def __init__(
        self, for_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._for_s = for_s
        self._clock = clock
        self._lock = threading.Lock()
        self._until: dict[str, tuple[float, str]] = {}

    def among(self, hosts: Iterable[str]) -> dict[str, str]:
        """Name those that are not worth asking now.

        :returns: why they did not answer, by host; empty if no host would be
            left to ask.
        """
        now_s = self._clock()
        named = set(hosts)
        with self._lock:
            silent = {
                host: why
                for host, (until_s, why) in self._until.items()
                if host in named and now_s < until_s
            }
        return silent if len(silent) < len(named) else {}

    def why(self, host: str) -> str | None:
        """Why a host is not worth asking now; ``None`` if it is."""
        with self._lock:
            until_s, why = self._until.get(host, (-math.inf, ''))
        return why if self._clock() < until_s else None

    def note(
        self, answered: Iterable[str], not_reached: Mapping[str, str]
    ) -> None:
        """Take down who answered and who did not."""
        until_s = self._clock() + self._for_s
        with self._lock:
            for host in answered:
                self._until.pop(host, None)
            for host, why in not_reached.items():
                self._until[host] = (until_s, why)
