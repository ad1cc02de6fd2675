# SPDX-License-Identifier: Apache-2.0

"""One ZeroMQ context per process, shared by all drivers in it.

A context has threads of its own, which a fork does not copy: a child process
makes a new context, and never touches what it inherited.
"""

import os

import zmq

from oslo_messaging_zmq import threads

Context = zmq.Context['zmq.Socket[bytes]']

_MOST_SOCKETS = 65535


class _Shared:
    """The context of one process and how many use it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.users = 0
        self.context: Context = zmq.Context()
        most = self.context.get(zmq.SOCKET_LIMIT)
        self.context.set(zmq.MAX_SOCKETS, min(most, _MOST_SOCKETS))


_LOCK = threads.lock()
_CURRENT: list[_Shared] = []
# What a child inherited: kept, so that nobody cleans it up.
_INHERITED: list[_Shared] = []


def _after_fork() -> None:
    global _LOCK
    _LOCK = threads.lock()
    _INHERITED.extend(_CURRENT)
    _CURRENT.clear()


os.register_at_fork(after_in_child=_after_fork)


def acquire() -> Context:
    """Get the context of this process; to be given back with release()."""
    with _LOCK:
        if not _CURRENT:
            _CURRENT.append(_Shared())
        _CURRENT[0].users += 1
        return _CURRENT[0].context


def release(context: Context) -> None:
    """Give a context back; the last user ends it.

    All sockets of the user must be closed. Waits until what they still had
    to send is gone, or their linger time is over.
    """
    with _LOCK:
        if not _CURRENT or _CURRENT[0].context is not context:
            return
        _CURRENT[0].users -= 1
        if _CURRENT[0].users:
            return
        shared = _CURRENT.pop()
    threads.call('zmq-context-end', shared.context.term)
