# SPDX-License-Identifier: Apache-2.0

"""A message on its way to one listener, and what is heard about it."""

import collections

from oslo_messaging_zmq import threads
from oslo_messaging_zmq import wire
from oslo_messaging_zmq.matchmaker import addressing
from oslo_messaging_zmq.rpc import routes

UNSENT = 0
"""Kind of an answer that this side gives itself: nothing was sent."""

SENT = -1
"""The same for a cast that ZeroMQ has taken."""


class Pending:
    """One attempt to send a call or a cast.

    :param peer: who it is for.
    :param msg_id: what the answer refers to.
    :param payload: the message.
    :param is_call: whether an answer is expected.
    """

    __slots__ = (
        '_answers',
        '_ups',
        '_waiter',
        'is_call',
        'msg_id',
        'payload',
        'peer',
        'route',
    )

    def __init__(
        self,
        peer: addressing.Peer,
        msg_id: str,
        payload: bytes,
        *,
        is_call: bool,
    ) -> None:
        self.peer = peer
        self.msg_id = msg_id
        self.payload = payload
        self.is_call = is_call
        self.route: routes.Route | None = None
        self._ups = -1
        self._answers: collections.deque[wire.Answer] = collections.deque()
        self._waiter = threads.Waiter()

    def queued(self, route: routes.Route) -> None:
        """Note the connection that took the message."""
        self.route = route
        self._ups = -1 if route.up else route.ups

    def was_never_sent(self) -> bool:
        """Whether the connection has not been up since it took this."""
        return self.route is not None and self._ups == self.route.ups

    def tell(self, answer: wire.Answer) -> None:
        """Give an answer to the thread that waits."""
        self._answers.append(answer)
        self._waiter.set()

    def wait(self, timeout_s: float) -> wire.Answer | None:
        """Wait for the next answer.

        :param timeout_s: longest wait in seconds.
        :returns: None if there was none in time.
        """
        if not self._answers:
            self._waiter.wait(max(timeout_s, 0.0))
            self._waiter.clear()
        return self._answers.popleft() if self._answers else None

    def close(self) -> None:
        """Wait no more."""
        self._waiter.close()
