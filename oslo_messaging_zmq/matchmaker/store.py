# SPDX-License-Identifier: Apache-2.0

"""The commands of a matchmaker to Redis, one round trip per method.

Redis' own clock decides expiry, so that no clock of a node matters.
Generations also grow across a flush and a failover: they follow Redis' clock
in microseconds, and never decrease while Redis has the last one. Anyone may
write into a shared Redis, so everything read is validated: lengths, types, the
form of addresses, and that a record matches its key.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import json
import re
from typing import Any
import uuid

from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.redis import client as redis_client
from oslo_messaging_zmq.redis import own_keys

VERSION = 1
RECORD_LIMIT = 4096
"""Largest size of a record, in bytes."""

TEXT_LIMIT = 255
"""Largest length of an exchange, topic, server or host, in characters."""

_ID = re.compile(r'[0-9a-f]{32}')
_MEMBER = re.compile(r'([0-9]{1,16})@([0-9a-f]{32})')
_ADDRESS = re.compile(r'tcp://[A-Za-z0-9.:_%\[\]-]{1,255}:[0-9]{1,5}')
_KEY = re.compile(r'[!-~]{40}')
_TEXTS = ('id', 'exchange', 'topic', 'server', 'host', 'rpc', 'fanout', 'key')

MEMBER_LIMIT = 64
LONGEST_LIFE_MS = 3_600_000
_BATCH = 200

_NOW_MS = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""

_GENERATION = """
local time = redis.call('TIME')
local least = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('GET', KEYS[1]) or '0') or 0
if last >= least and last < 9007199254740000 then least = last + 1 end
local text = string.format('%.0f', least)
redis.call('SET', KEYS[1], text)
return text
"""

# KEYS: record, index, mark. ARGV: record, member, milliseconds to live, new
# mark. Returns whether anything was missing.
_ANNOUNCE = (
    _NOW_MS
    + """
local had = redis.call('GET', KEYS[1])
local listed = redis.call('ZSCORE', KEYS[2], ARGV[2])
local life = tonumber(ARGV[3])
redis.call('SET', KEYS[1], ARGV[1], 'PX', life)
redis.call('ZADD', KEYS[2], now + life, ARGV[2])
redis.call('PEXPIRE', KEYS[2], 2 * life)
if had == ARGV[1] and listed then
  redis.call('PEXPIRE', KEYS[3], 2 * life)
  return 0
end
redis.call('SET', KEYS[3], ARGV[4], 'PX', 2 * life)
return 1
"""
)

# KEYS: record, index, mark. ARGV: record, member, milliseconds, new mark.
_WITHDRAW = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('SET', KEYS[3], ARGV[4], 'PX', ARGV[3])
"""

# KEYS: index, mark, epoch. ARGV: most members, their longest name, new mark,
# milliseconds that a new mark lives, longest life of a member. Whatever would
# live longer was not written by a program of ours. The first command needs
# memory: a Redis that is full, in which nobody could renew a record, refuses
# it before anybody is struck out.
_MEMBERS = (
    _NOW_MS
    + """
redis.call('SET', KEYS[3], ARGV[3], 'NX')
local ended = redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
            + redis.call('ZREMRANGEBYSCORE', KEYS[1], now + ARGV[5], '+inf')
if ended > 0 then redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4]) end
local all = redis.call('ZREVRANGE', KEYS[1], 0, ARGV[1] - 1)
local dropped = redis.call('ZCARD', KEYS[1]) - #all
local fit = {}
for _, name in ipairs(all) do
  if #name <= tonumber(ARGV[2]) then
    fit[#fit + 1] = name
  else
    dropped = dropped + 1
  end
end
return {redis.call('GETRANGE', KEYS[3], 0, 63),
        redis.call('GETRANGE', KEYS[2], 0, 63), dropped, fit}
"""
)


class BadRecord(Exception):
    """An invalid record; the text names the error and the expectation."""


@dataclasses.dataclass(frozen=True, slots=True)
class Keys:
    """Names of keys in Redis.

    :param prefix: of all keys.
    """

    prefix: str

    @property
    def generation(self) -> str:
        """Key of the newest generation, an integer."""
        return f'{self.prefix}:generation'

    @property
    def epoch(self) -> str:
        """Key of a random text that changes after Redis lost all data."""
        return f'{self.prefix}:epoch'

    def peer(self, peer_id: str) -> str:
        """Return the key of a listener's record, which expires."""
        return f'{self.prefix}:peer:{peer_id}'

    def index(self, exchange: str, topic: str) -> str:
        """Return the key of a topic's sorted set of members; the score is
        the expiry.
        """
        return (
            f'{self.prefix}:listeners:{redis_client.quoted(exchange, topic)}'
        )

    def mark(self, exchange: str, topic: str) -> str:
        """Return the key of a random text that changes with a topic."""
        return f'{self.prefix}:changed:{redis_client.quoted(exchange, topic)}'


def member(peer: contract.AnnouncedListener) -> str:
    """Return the unique name of a record in its index."""
    return f'{peer.generation}@{peer.id}'


def parse_member(text: str) -> tuple[int, str]:
    """Split a member's name.

    :returns: generation and id.
    :raises BadRecord: if it has another form.
    """
    found = _MEMBER.fullmatch(text)
    if not found:
        raise BadRecord(f'{text[:64]!r} is no generation@id')
    return int(found[1]), found[2]


def encode(peer: contract.AnnouncedListener) -> bytes:
    """Encode a record.

    :raises ValueError: if the record could not be decoded; the message says
        why.
    """
    record = {'version': VERSION} | dataclasses.asdict(peer)
    text = json.dumps(record, sort_keys=True).encode('ascii')
    try:
        decode(text)
    except BadRecord as error:
        raise ValueError(f'{peer} cannot be announced: {error}') from None
    return text


def decode(text: bytes) -> contract.AnnouncedListener:
    """Decode an untrusted record.

    :raises BadRecord: if it is invalid.
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
    return contract.AnnouncedListener(
        **_checked_texts(record), generation=generation
    )


def _checked_texts(record: Mapping[str, Any]) -> dict[str, str]:
    texts = {name: record.get(name) for name in _TEXTS}
    for name, text in texts.items():
        if not isinstance(text, str) or len(text) > TEXT_LIMIT + 20:
            raise BadRecord(f'its {name} is no text of bounded length')
    for name in ('exchange', 'topic', 'server', 'host'):
        if len(str(texts[name])) > TEXT_LIMIT:
            raise BadRecord(f'its {name} is above {TEXT_LIMIT} characters')
        if not str(texts[name]).isprintable():
            raise BadRecord(
                f'its {name} holds characters that cannot be printed'
            )
    for name in ('rpc', 'fanout'):
        if not _ADDRESS.fullmatch(str(texts[name])):
            raise BadRecord(f'its {name} is no tcp://host:port')
    if not _ID.fullmatch(str(texts['id'])):
        raise BadRecord('its id is not 32 hexadecimal digits')
    if texts['key'] and not _KEY.fullmatch(str(texts['key'])):
        raise BadRecord('its key is neither empty nor 40 characters of Z85')
    return {name: str(text) for name, text in texts.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class TopicMembers:
    """The members of a topic.

    :param epoch: changes after Redis lost all data.
    :param mark: changes with the topic.
    :param dropped: number of members with too long a name, or beyond the
        limit.
    :param names: of the members.
    """

    epoch: str
    mark: bytes
    dropped: int
    names: tuple[str, ...]


class MatchmakerStore:
    """Commands of one process to Redis.

    :param client: a ``redis.Redis`` that returns bytes, for one thread only.
    :param keys: names of keys.
    :param ttl_s: lifetime of a record that is not refreshed, in seconds.
    :param most_peers: largest number of listeners that are read per topic.
    :param on_replaced: called with each key whose value had a wrong type.
    """

    def __init__(
        self,
        client: Any,
        keys: Keys,
        ttl_s: float,
        most_peers: int,
        on_replaced: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._keys = keys
        self._life_ms = int(ttl_s * 1000)
        self._most_peers = most_peers
        self._generation = client.register_script(_GENERATION)
        self._announce = client.register_script(_ANNOUNCE)
        self._withdraw = client.register_script(_WITHDRAW)
        self._members = client.register_script(_MEMBERS)
        self._own_keys = own_keys.OwnKeys(client, on_replaced)

    def generation(self) -> int:
        """Return the next generation, which was never returned before."""
        keys = {self._keys.generation: own_keys.TEXT}
        return int(self._own_keys.run(self._generation, keys, []))

    def announce(self, peer: contract.AnnouncedListener) -> bool:
        """Write a record, or extend its lifetime.

        :param peer: with its generation.
        :returns: whether the record was missing or different.
        """
        return bool(self._run(self._announce, peer, self._life_ms))

    def withdraw(self, peer: contract.AnnouncedListener) -> None:
        """Delete a record, unless another one replaced it."""
        self._run(self._withdraw, peer, 2 * self._life_ms)

    def members(self, exchange: str, topic: str) -> TopicMembers:
        """Read the members of a topic, and delete expired ones."""
        epoch, mark, dropped, names = self._own_keys.run(
            self._members,
            {
                self._keys.index(exchange, topic): own_keys.SORTED_SET,
                self._keys.mark(exchange, topic): own_keys.TEXT,
                self._keys.epoch: own_keys.TEXT,
            },
            [
                self._most_peers,
                MEMBER_LIMIT,
                uuid.uuid4().hex,
                2 * self._life_ms,
                max(2 * self._life_ms, LONGEST_LIFE_MS),
            ],
        )
        texts = tuple(name.decode('utf-8', 'replace') for name in names)
        return TopicMembers(
            epoch.decode('utf-8', 'replace'), mark, int(dropped), texts
        )

    def records(self, peer_ids: Sequence[str]) -> list[bytes | Exception]:
        """Read records, each truncated above the largest size.

        :returns: one per id: its text, empty if it is missing, or an error.
        """
        found: list[bytes | Exception] = []
        for start in range(0, len(peer_ids), _BATCH):
            pipeline = self._client.pipeline(transaction=False)
            for peer_id in peer_ids[start : start + _BATCH]:
                pipeline.getrange(
                    self._keys.peer(peer_id),
                    0,
                    RECORD_LIMIT,
                )
            found += _execute(pipeline)
        self._replace_records(peer_ids, found)
        return found

    def _replace_records(
        self, peer_ids: Sequence[str], found: Sequence[bytes | Exception]
    ) -> None:
        """Delete records of a wrong type, so that their owners write them
        again.
        """
        wrong = {
            self._keys.peer(peer_id): own_keys.TEXT
            for peer_id, text in zip(peer_ids, found, strict=True)
            if isinstance(text, Exception) and redis_client.is_wrong_type(text)
        }
        if wrong:
            self._own_keys.replace(wrong)

    def changes(
        self, topics: Sequence[tuple[str, str]], own: Iterable[str]
    ) -> tuple[list[bytes], bool]:
        """Query cheaply whether a topic changed or an own record is missing.

        :param topics: exchanges and topics in use.
        :param own: ids of the announced listeners.
        :returns: the mark of every topic, and whether an own record is
            missing.
        """
        pipeline = self._client.pipeline(transaction=False)
        mine = [self._keys.peer(peer_id) for peer_id in own]
        for topic in topics:
            pipeline.getrange(self._keys.mark(*topic), 0, 63)
        if mine:
            pipeline.exists(*mine)
        answers = _execute(pipeline)
        found = answers.pop() if mine else 0
        marks = [b'' if isinstance(one, Exception) else one for one in answers]
        return marks, isinstance(found, int) and found < len(mine)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _run(
        self, script: Any, peer: contract.AnnouncedListener, life_ms: int
    ) -> Any:
        topic = peer.exchange, peer.topic
        return self._own_keys.run(
            script,
            {
                self._keys.peer(peer.id): own_keys.TEXT,
                self._keys.index(*topic): own_keys.SORTED_SET,
                self._keys.mark(*topic): own_keys.TEXT,
            },
            [encode(peer), member(peer), life_ms, uuid.uuid4().hex],
        )


def _execute(pipeline: Any) -> list[Any]:
    """Run a pipeline; return errors that concern one key as answers."""
    answers: list[Any] = pipeline.execute(raise_on_error=False)
    for answer in answers:
        if isinstance(answer, Exception) and redis_client.is_general(answer):
            raise answer
    return answers
