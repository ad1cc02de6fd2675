# SPDX-License-Identifier: Apache-2.0

"""Control of garbage collection, and of memory that is free again."""

from collections.abc import Iterator
import contextlib
import ctypes
import gc


def release_free_memory() -> None:
    """Return free memory to the kernel.

    Imports leave free memory between objects: ten megabytes of an agent. It
    does nothing where the C library has no such function.
    """
    gc.collect()
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def collect() -> None:
    """Collect garbage now, and exempt all remaining objects until the
    next call.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Exempt the objects created here until the next :func:`collect`.

    It is for code that creates many long-lived objects: repeated collections
    took a tenth of a cycle of the queue.
    """
    gc.disable()
    try:
        yield
        # What a failure leaves is no use to anybody.
        gc.freeze()
    finally:
        gc.enable()
