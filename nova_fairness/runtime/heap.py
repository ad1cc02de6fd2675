# SPDX-License-Identifier: Apache-2.0

"""Memory of this process that nothing uses any more."""

from collections.abc import Iterator
import contextlib
import ctypes
import gc


def give_back() -> None:
    """Return free memory to the kernel.

    Imports of modules take and free memory between objects that stay: ten
    megabytes of an agent. Does nothing where the C library cannot do it.
    """
    gc.collect()
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def collect() -> None:
    """Collect garbage now; ignore the other objects until the next call."""
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
