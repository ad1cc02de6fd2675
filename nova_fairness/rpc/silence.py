# SPDX-License-Identifier: Apache-2.0

"""Remembers silent hosts, so that callers do not wait for them again."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import math
import threading
import time


class Silence:
    """Hosts that did not answer recently.

    :param for_s: seconds for which a silent host is not asked again; >= 0.
    :param clock: returns monotonic seconds.
    """

    def __init__(
        self, for_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._for_s = for_s
        self._clock = clock
        self._lock = threading.Lock()
        self._until: dict[str, tuple[float, str]] = {}

    def among(self, hosts: Iterable[str]) -> dict[str, str]:
        """Hosts that should not be asked now.

        :returns: why they did not answer, by host; empty if no other host
            remains.
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
        """Why a host should not be asked now; ``None`` if it may be asked."""
        with self._lock:
            until_s, why = self._until.get(host, (-math.inf, ''))
        return why if self._clock() < until_s else None

    def note(
        self, answered: Iterable[str], not_reached: Mapping[str, str]
    ) -> None:
        """Record which hosts answered and which did not."""
        until_s = self._clock() + self._for_s
        with self._lock:
            for host in answered:
                self._until.pop(host, None)
            for host, why in not_reached.items():
                self._until[host] = (until_s, why)
