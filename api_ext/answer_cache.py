# SPDX-License-Identifier: Apache-2.0

"""Short-lived cache of one value; concurrent callers share one computation."""

from collections.abc import Callable
from concurrent import futures
import threading
import time
from typing import Generic
from typing import TypeVar

T = TypeVar('T')


class CachedValue(Generic[T]):
    """A value that is computed on demand if it is missing or too old.

    Concurrent callers wait for one computation. All of them get its error,
    which is not cached.

    :param for_s: seconds for which a value is cached; >= 0.
    :param clock: monotonic clock, seconds.
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
        """Return the cached value, or compute it.

        :param make: computes the value.
        :param fresh: whether to compute the value despite a cached one.
        :raises Exception: error of ``make``.
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
