# SPDX-License-Identifier: Apache-2.0

"""Notifications in Redis Streams: one command or script per method.

A topic of one priority is a stream, a pool is a consumer group of it, and
listeners without a pool are the group ``default``, which every sender makes
sure exists: what is sent before anybody listens waits for it. An entry is
deleted when every group is done with it, so a stream holds what is still to
do, and what a full one loses is known.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import json
from typing import Any
import urllib.parse

from oslo_serialization import jsonutils

from oslo_messaging_zmq.notifications import notification_scripts as scripts

VERSION = 1
DEFAULT_GROUP = 'default'


class BadNotification(Exception):
    """What is wrong with an entry of a stream, and what was expected."""


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a stream, as it was read.

    :param stream: its key.
    :param id: Redis' name for it.
    :param fields: what it holds; empty when it was deleted meanwhile.
    :param deliveries: how often it was given to somebody before.
    """

    stream: str
    id: str
    fields: Mapping[bytes, bytes]
    deliveries: int = 0


def encode(ctxt: Mapping[str, Any], message: Mapping[str, Any]) -> bytes:
    """Write a notification; objects become what JSON has."""
    return bytes(
        jsonutils.dump_as_bytes(
            {'version': VERSION, 'ctxt': ctxt, 'message': message}
        )
    )


def checked_body(entry: Entry, most_deliveries: int) -> bytes:
    """What an entry carries.

    :raises BadNotification: too many consumers died of it.
    """
    if entry.deliveries >= most_deliveries:
        raise BadNotification(f'{entry.deliveries} consumers died of it')
    return entry.fields.get(b'body', b'')


def decode(text: bytes, limit: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a notification that anybody may have written.

    :param text: the body of an entry.
    :param limit: longest that is read, in bytes.
    :returns: context and message.
    :raises BadNotification: it is none.
    """
    if len(text) > limit:
        raise BadNotification(f'{len(text)} bytes; expected at most {limit}')
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        raise BadNotification('its body is not JSON') from None
    if not isinstance(body, dict) or body.get('version') != VERSION:
        raise BadNotification(f'its body is no object of version {VERSION}')
    ctxt, message = body.get('ctxt'), body.get('message')
    if not isinstance(ctxt, dict) or not isinstance(message, dict):
        raise BadNotification('its context or message is no object')
    return ctxt, message


class Store:
    """What senders and listeners of notifications say to Redis.

    :param client: a ``redis.Redis`` that gives bytes.
    :param prefix: with which every key begins.
    """

    def __init__(self, client: Any, prefix: str) -> None:
        self._client = client
        self._prefix = f'{prefix}:notifications'
        self._send = client.register_script(scripts.SEND)
        self._subscribe = client.register_script(scripts.SUBSCRIBE)
        self._finish = client.register_script(scripts.FINISH)
        self._requeue = client.register_script(scripts.REQUEUE)
        self._claim = client.register_script(scripts.CLAIM)
        self._leave = client.register_script(scripts.LEAVE)

    def stream(self, exchange: str, topic: str) -> str:
        """Key of the stream of a topic with its priority."""
        words = (
            urllib.parse.quote(word, safe='') for word in (exchange, topic)
        )
        return f'{self._prefix}:{":".join(words)}'

    def send(
        self, stream: str, lane: str, sequence: int, body: bytes, length: int
    ) -> int:
        """Add an entry, once only.

        :param lane: name of a row of entries that are added one by one.
        :param sequence: place in the lane; a place that was taken is not
            taken again, however often it is tried.
        :param length: most entries that the stream may hold.
        :returns: how many of the oldest entries it lost for that.
        """
        keys = [stream, f'{self._prefix}:lane:{lane}']
        day_ms = 24 * 3600 * 1000
        arguments = [sequence, day_ms, length, body, DEFAULT_GROUP]
        return int(self._send(keys=keys, args=arguments))

    def subscribe(self, stream: str, group: str) -> bool:
        """Make sure that a group gets what is sent from now on.

        :returns: whether it is new.
        """
        return bool(
            self._subscribe(keys=[stream], args=[group, DEFAULT_GROUP])
        )

    def read(
        self, streams: Sequence[str], group: str, name: str, count: int,
        block_s: float,
    ) -> list[Entry]:  # fmt: skip
        """Take new entries, waiting for the first.

        :param name: who takes them.
        :param count: most entries of each stream.
        :param block_s: longest wait, in seconds.
        """
        found = self._client.xreadgroup(
            group,
            name,
            dict.fromkeys(streams, '>'),
            count=count,
            block=max(1, int(block_s * 1000)),
        )
        return _entries(found)

    def read_again(
        self, streams: Sequence[str], group: str, name: str
    ) -> list[Entry]:
        """What was given to a consumer, and is open still."""
        return _entries(
            self._client.xreadgroup(group, name, dict.fromkeys(streams, '0'))
        )

    def finish(self, stream: str, group: str, entry_id: str) -> None:
        """Take note that a group is done with an entry."""
        self._finish(keys=[stream], args=[group, entry_id])

    def requeue(
        self, stream: str, group: str, entry_id: str, body: bytes
    ) -> None:
        """Give an entry to a group once more, after what waits already."""
        self._requeue(keys=[stream], args=[group, entry_id, body])

    def claim(
        self, stream: str, group: str, name: str, idle_s: float, count: int
    ) -> list[Entry]:
        """Take over what consumers left that are dead.

        :param name: who takes it.
        :param idle_s: for how long nobody must have touched it, in seconds.
        :param count: most entries.
        """
        taken = self._claim(
            keys=[stream],
            args=[group, name, self._alive(''), int(idle_s * 1000), count],
        )
        return [
            Entry(stream, entry_id.decode(), _pairs(fields), int(deliveries))
            for entry_id, fields, deliveries in taken
        ]

    def keep_alive(self, name: str, lease_s: float) -> None:
        """Say that a consumer lives, for so many seconds."""
        self._client.set(self._alive(name), b'1', px=int(lease_s * 1000))

    def leave(self, streams: Sequence[str], group: str, name: str) -> None:
        """Remove a consumer; what it left open is others' at once."""
        for stream in streams:
            self._leave(keys=[stream], args=[group, name])
        self._client.delete(self._alive(name))

    def client_id(self) -> int:
        """Redis' name of this connection."""
        return int(self._client.client_id())

    def unblock(self, client_id: int) -> None:
        """End the wait of another connection."""
        self._client.client_unblock(client_id)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _alive(self, name: str) -> str:
        return f'{self._prefix}:alive:{name}'


def _entries(found: Any) -> list[Entry]:
    pairs = found.items() if isinstance(found, dict) else found or ()
    return [
        Entry(stream.decode(), entry_id.decode(), fields or {})
        for stream, entries in pairs
        for entry_id, fields in entries
    ]


def _pairs(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
