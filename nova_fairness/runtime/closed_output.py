# SPDX-License-Identifier: Apache-2.0

"""End of a program whose reader closed standard output, such as ``head``."""

from collections.abc import Iterator
import contextlib
import os
import sys

CLOSED = 1
"""Exit code of a program whose output was not read to its end."""


@contextlib.contextmanager
def exit_if_closed() -> Iterator[None]:
    """Exit without a traceback if the reader of standard output has gone.

    :raises SystemExit: with :data:`CLOSED`.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter writes the rest at its end, and would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(CLOSED) from None
