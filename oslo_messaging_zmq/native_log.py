# SPDX-License-Identifier: Apache-2.0

"""Logging from native threads, also where eventlet has patched logging.

Patched, the locks of :mod:`logging` are green: a native thread that finds one
taken waits for a wake-up which never comes. So native threads hand what they
have to say to a green thread there, and say it themselves elsewhere.
"""

import logging
import os
import sys
from typing import Any

from oslo_messaging_zmq import threads

_CAPACITY = 1000

_Line = tuple[logging.Logger, int, str, tuple[Any, ...]]


class _Desk:
    """The green thread of one process that writes what others hand in."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lines: threads.Mailbox[_Line] = threads.Mailbox(_CAPACITY)
        sys.modules['eventlet'].spawn_n(self._write)

    def _write(self) -> None:
        while self.pid == os.getpid():
            for logger, level, message, arguments in self.lines.take(
                _CAPACITY, None
            ):
                logger.log(level, message, *arguments)


_DESKS: list[_Desk] = []


def prepare() -> None:
    """Make logging from native threads possible; call it in a green one.

    Without eventlet nothing is needed. After a fork it is called again.
    """
    if not threads.is_green():
        return
    if not _DESKS or _DESKS[-1].pid != os.getpid():
        _DESKS[:] = [_Desk()]


class Log:
    """A logger that any thread may use.

    :param name: of the logger, usually ``__name__``.
    """

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def log(self, level: int, message: str, *arguments: Any) -> None:
        """Say something; arguments are formatted later, so give plain ones.

        :param level: as in :mod:`logging`.
        """
        desks = _DESKS[-1:]
        if threads.is_patched() and not threads.is_green() and desks:
            desks[0].lines.put((self._logger, level, message, arguments))
        else:
            self._logger.log(level, message, *arguments)

    def warning(self, message: str, *arguments: Any) -> None:
        """Say that somebody may have to do something."""
        self.log(logging.WARNING, message, *arguments)

    def error(self, message: str, *arguments: Any) -> None:
        """Say that somebody has to do something."""
        self.log(logging.ERROR, message, *arguments)
