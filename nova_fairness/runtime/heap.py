# SPDX-License-Identifier: Apache-2.0

"""Memory of this process that nothing uses any more."""

from collections.abc import Iterator
import contextlib
import ctypes
import gc


def give_back() -> None:
    """Return to the kernel what is free.

    What importing modules took and freed again lies between what stays: ten
    megabytes of an agent. Does nothing where the C library cannot do it.
    """
    gc.collect()
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def collect() -> None:
    """Collect garbage now; what is left is left alone until the next call."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Leave what is made here to the next :func:`collect`.

    For what makes many objects that stay: to look through them again and
    again took a tenth of a cycle of the queue.
    """
    gc.disable()
    try:
        yield
        # What a failure leaves is no use to anybody.
        gc.freeze()
    finally:
        gc.enable()
