# SPDX-License-Identifier: Apache-2.0

"""What the matchmaker keeps in Redis: names of keys, and records as text.

Anybody may write into a shared Redis, so what is read is checked in full:
lengths, types, the form of addresses, and that a record says of itself what
its key says.
"""

from collections.abc import Mapping
import dataclasses
import json
import re
from typing import Any
import urllib.parse

from oslo_messaging_zmq.matchmaker import addressing

VERSION = 1
RECORD_LIMIT = 4096
"""Longest record, in bytes."""

TEXT_LIMIT = 255
"""Longest exchange, topic, server or host, in characters."""

_ID = re.compile(r'[0-9a-f]{32}')
_MEMBER = re.compile(r'([0-9]{1,16})@([0-9a-f]{32})')
_ADDRESS = re.compile(r'tcp://[A-Za-z0-9.:_%\[\]-]{1,255}:[0-9]{1,5}')
_KEY = re.compile(r'[!-~]{40}')
_TEXTS = ('id', 'exchange', 'topic', 'server', 'host', 'rpc', 'fanout', 'key')


class BadRecord(Exception):
    """What is wrong with a record, and what was expected."""


@dataclasses.dataclass(frozen=True, slots=True)
class Keys:
    """Names of keys in Redis.

    :param prefix: with which all of them begin.
    """

    prefix: str

    @property
    def generation(self) -> str:
        """The newest generation that was given out; an integer."""
        return f'{self.prefix}:generation'

    @property
    def epoch(self) -> str:
        """Random text, another one after everything was lost."""
        return f'{self.prefix}:epoch'

    def peer(self, peer_id: str) -> str:
        """The record of one listener; expires."""
        return f'{self.prefix}:peer:{peer_id}'

    def index(self, exchange: str, topic: str) -> str:
        """Sorted set of a topic's members; the score says when one ends."""
        return f'{self.prefix}:listeners:{_place(exchange, topic)}'

    def mark(self, exchange: str, topic: str) -> str:
        """Random text, another one after every change of a topic."""
        return f'{self.prefix}:changed:{_place(exchange, topic)}'


def _place(exchange: str, topic: str) -> str:
    return ':'.join(
        urllib.parse.quote(word, safe='') for word in (exchange, topic)
    )


def member(peer: addressing.Peer) -> str:
    """Name a record in its index; one name never means two records."""
    return f'{peer.generation}@{peer.id}'


def parse_member(text: str) -> tuple[int, str]:
    """Take a member apart.

    :returns: generation and id.
    :raises BadRecord: it has another form.
    """
    found = _MEMBER.fullmatch(text)
    if not found:
        raise BadRecord(f'{text[:64]!r} is no generation@id')
    return int(found[1]), found[2]


def encode(peer: addressing.Peer) -> bytes:
    """Write a record.

    :raises ValueError: the peer could not be read again; the message says
        why.
    """
    record = {'version': VERSION} | dataclasses.asdict(peer)
    text = json.dumps(record, sort_keys=True).encode('ascii')
    try:
        decode(text)
    except BadRecord as error:
        raise ValueError(f'{peer} cannot be announced: {error}') from None
    return text


def decode(text: bytes) -> addressing.Peer:
    """Read a record that anybody may have written.

    :raises BadRecord: it is none.
    """
    if len(text) > RECORD_LIMIT:
        raise BadRecord(f'longer than {RECORD_LIMIT} bytes')
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        raise BadRecord('not JSON') from None
    if not isinstance(record, dict) or record.get('version') != VERSION:
        raise BadRecord(f'not an object of version {VERSION}')
    generation = record.get('generation')
    if type(generation) is not int or not 0 <= generation < 10**16:
        raise BadRecord('its generation is no integer from 0 to 10**16')
    return addressing.Peer(**_texts(record), generation=generation)


def _texts(record: Mapping[str, Any]) -> dict[str, str]:
    texts = {name: record.get(name) for name in _TEXTS}
    for name, text in texts.items():
        if not isinstance(text, str) or len(text) > TEXT_LIMIT + 20:
            raise BadRecord(f'its {name} is no text of bounded length')
    for name in ('exchange', 'topic', 'server', 'host'):
        if len(str(texts[name])) > TEXT_LIMIT:
            raise BadRecord(f'its {name} is above {TEXT_LIMIT} characters')
        if not str(texts[name]).isprintable():
            raise BadRecord(f'its {name} holds what cannot be printed')
    for name in ('rpc', 'fanout'):
        if not _ADDRESS.fullmatch(str(texts[name])):
            raise BadRecord(f'its {name} is no tcp://host:port')
    if not _ID.fullmatch(str(texts['id'])):
        raise BadRecord('its id is not 32 hexadecimal digits')
    if texts['key'] and not _KEY.fullmatch(str(texts['key'])):
        raise BadRecord('its key is neither empty nor 40 characters of Z85')
    return {name: str(text) for name, text in texts.items()}
