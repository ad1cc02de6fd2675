# SPDX-License-Identifier: Apache-2.0

"""Messages as endpoints' servers get them, and how many are in work."""

import collections
from collections.abc import Callable
from typing import Any

import oslo_messaging
from oslo_messaging._drivers import base
from oslo_messaging._drivers import common

from oslo_messaging_zmq import errors
from oslo_messaging_zmq import wire

Answering = Callable[[bytes, wire.Answer], None]


class Credit:
    """How many messages may be handed over before some are served.

    Once it is used up, half of it must have come back before it is used
    again: a wake per message would cost more than the message.

    :param limit: so many.
    :param wake: called when ``is_awaited`` and half of it is back, perhaps
        more than once.
    """

    __slots__ = ('_in_work', '_limit', '_served', '_wake', 'is_awaited')

    def __init__(self, limit: int, wake: Callable[[], None]) -> None:
        self._limit = limit
        self._in_work = 0
        # Appending needs no lock, which a finaliser must not wait for.
        self._served: collections.deque[None] = collections.deque()
        self._wake = wake
        self.is_awaited = False

    def take(self) -> None:
        """Note a message that is handed over. One thread's."""
        self._in_work += 1

    def served(self) -> None:
        """Note a message that was served. Any thread's."""
        self._served.append(None)
        if self.is_awaited and self.has_half():
            self._wake()

    def left(self) -> int:
        """How many messages may be handed over now. One thread's."""
        while self._served:
            self._served.popleft()
            self._in_work -= 1
        return self._limit - self._in_work

    def has_half(self) -> bool:
        """Whether at least half of it is there."""
        return self.in_work() <= self._limit // 2

    def in_work(self) -> int:
        """How many messages are being served."""
        return self._in_work - len(self._served)


class Incoming(base.RpcIncomingMessage):  # type: ignore[misc]
    """A call, cast or fanout message.

    :param request: what came.
    :param sender: name of the connection it came by.
    :param credit: where it counts as long as it is not served.
    :param answer: sends an answer to a connection.
    """

    _credit: Credit | None = None

    def __init__(
        self,
        request: wire.Request,
        sender: bytes,
        credit: Credit,
        answer: Answering,
    ) -> None:
        # Not the parent's, which would make up an id for every cast.
        self.ctxt: Any = request.ctxt
        self.message: Any = request.message
        self.msg_id = request.msg_id
        self.client_timeout = request.client_timeout
        self._is_call = request.kind == wire.CALL
        self._sender = sender
        self._credit = credit
        self._answer = answer
        credit.take()

    def __del__(self) -> None:
        self._serve()

    def acknowledge(self) -> None:
        """Nothing to do: nobody else would get the message."""

    def requeue(self) -> None:
        """Nothing to do: only notifications can be requeued."""

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        """Answer a call; for other messages just note that they are served.

        :param reply: what the endpoint returned.
        :param failure: what it raised, as ``sys.exc_info()``.
        """
        is_due = self._is_call and self._credit is not None
        self._serve()
        if is_due:
            text = (
                common.serialize_remote_exception(failure) if failure else None
            )
            self._answer(
                self._sender, wire.Answer(wire.REPLY, self.msg_id, reply, text)
            )

    def heartbeat(self) -> None:
        """Tell the caller that the call is still being served.

        :raises MessageDeliveryFailure: it is not: whoever still sends
            heartbeats must end.
        """
        if self._credit is None or not self._is_call:
            msg = f'call {self.msg_id} is not in work'
            raise oslo_messaging.MessageDeliveryFailure(msg)
        self._answer(self._sender, wire.Answer(wire.HEARTBEAT, self.msg_id))

    def refuse(self) -> None:
        """Send a call back unserved: another listener may take it."""
        self._serve()
        if self._is_call:
            self._answer(self._sender, wire.Answer(wire.REFUSED, self.msg_id))

    def _serve(self) -> None:
        credit, self._credit = self._credit, None
        if credit is not None:
            credit.served()


def encoded(answer: wire.Answer, limit: int) -> bytes:
    """Write an answer; one that cannot be sent becomes a failure.

    :param limit: most bytes of a message.
    """
    try:
        return wire.encode_answer(answer, limit)
    except errors.UnsendableMessage as error:
        failure = oslo_messaging.MessageDeliveryFailure(str(error))
        text = common.serialize_remote_exception(
            (type(failure), failure, None)
        )
        return wire.encode_answer(
            wire.Answer(answer.kind, answer.msg_id, None, text), limit
        )
