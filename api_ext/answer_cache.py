# SPDX-License-Identifier: Apache-2.0

"""Uses an answer again for a short while, and asks once for all who wait."""

from collections.abc import Callable
from concurrent import futures
import threading
import time
from typing import Generic
from typing import TypeVar

T = TypeVar('T')


class CachedValue(Generic[T]):
    """One value that is made when it is asked for and too old.

    Those who ask while it is being made wait for it; a failure is told to
    all of them, and is not kept.

    :param for_s: how long a value is used again, in seconds; >= 0.
    :param clock: monotonic, seconds.
    """

    def __init__(
        self, for_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._for_s = for_s
        self._clock = clock
        self._lock = threading.Lock()
        self._future: futures.Future[T] | None = None
        self._made_s = 0.0

    def get(self, make: Callable[[], T], *, fresh: bool = False) -> T:
        """The value.

        :param make: makes it.
        :param fresh: whether one that is there already does not do.
        :raises Exception: what ``make`` raised.
        """
        with self._lock:
            future, is_mine = self._future, False
            if future is None or (
                future.done() and (fresh or self._is_old(future))
            ):
                self._future = future = futures.Future()
                is_mine = True
        if is_mine:
            self._make(future, make)
        return future.result()

    def _is_old(self, future: 'futures.Future[T]') -> bool:
        if future.exception() is not None:
            return True
        return self._clock() - self._made_s >= self._for_s

    def _make(
        self, future: 'futures.Future[T]', make: Callable[[], T]
    ) -> None:
        try:
            value = make()
        except BaseException as error:  # noqa: BLE001 - for those who wait
            future.set_exception(error)
        else:
            self._made_s = self._clock()
            future.set_result(value)
