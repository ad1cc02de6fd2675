# SPDX-License-Identifier: Apache-2.0

"""Asks many hosts at once, but not too many."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import math
import queue
import threading
import time
from typing import Generic
from typing import TypeVar

from nova_fairness import exception

T = TypeVar('T')

_GRACE_S = 1.0
"""For the threads, so that a transport's own message comes first."""


class _Crowd(Generic[T]):
    """Daemon threads, so that an interrupted program can end at once."""

    def __init__(
        self, hosts: Iterable[str], ask: Callable[[str], T], at_once: int
    ) -> None:
        self._waiting = collections.deque(hosts)
        self._ask = ask
        self._answers: queue.SimpleQueue[
            tuple[str, T | None, BaseException | None]
        ] = queue.SimpleQueue()
        self._count = len(self._waiting)
        for _ in range(min(at_once, self._count)):
            threading.Thread(
                target=self._serve, name='asking', daemon=True
            ).start()

    def _serve(self) -> None:
        while True:
            try:
                host = self._waiting.popleft()
            except IndexError:
                return
            try:
                self._answers.put((host, self._ask(host), None))
            except BaseException as error:  # noqa: BLE001 - told by gather
                self._answers.put((host, None, error))

    def gather(
        self, limit_s: float
    ) -> Iterable[tuple[str, T | None, BaseException | None]]:
        """Answers that come back in time."""
        until_s = time.monotonic() + limit_s
        try:
            for _ in range(self._count):
                yield self._answers.get(
                    timeout=max(0.0, until_s - time.monotonic())
                )
        except queue.Empty:
            return
        finally:
            self._waiting.clear()


def ask_all(
    hosts: Iterable[str],
    ask: Callable[[str], T],
    at_once: int,
    timeout_s: float,
) -> tuple[Mapping[str, T], Mapping[str, exception.FairnessError]]:
    """Ask every host.

    :param hosts: asked once each, whatever their order or number.
    :param ask: called on other threads, several at a time.
    :param at_once: most of them at a time, >= 1.
    :param timeout_s: seconds that asking one host takes at most. One that
        takes longer is left behind, because some transports try to connect
        for ever.
    :returns: answers and errors by host, both sorted by host.
    :raises Exception: what ``ask`` raised, if it is no error of ours.
    """
    asked = sorted(set(hosts))
    turns = math.ceil(len(asked) / at_once)
    answers: dict[str, T] = {}
    errors: dict[str, exception.FairnessError] = {}
    for host, answer, error in _Crowd(asked, ask, at_once).gather(
        turns * timeout_s + _GRACE_S
    ):
        if error is None:
            answers[host] = answer  # type: ignore[assignment]  # asked, no error
        elif isinstance(error, exception.FairnessError):
            errors[host] = error
        else:
            raise error
    for host in set(asked) - set(answers) - set(errors):
        errors[host] = exception.HostNotReached(
            f'no connection within {timeout_s:g} s'
        )
    return dict(sorted(answers.items())), dict(sorted(errors.items()))
