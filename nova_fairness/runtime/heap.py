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


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Let garbage be collected after something, and not meanwhile.

    For what makes many objects at once that stay: to look through them again
    and again took a tenth of a cycle of the queue.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
