# SPDX-License-Identifier: Apache-2.0

"""Notifications in Redis Streams: one command or script per method.

A topic of one priority is a stream, a pool is a consumer group of it, and
listeners without a pool are the group ``default``, which every sender makes
sure exists: what is sent before anybody listens waits for it. An entry is
deleted when every group is done with it, so a stream holds what is still to
do, and what a full one loses is known.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import json
from typing import Any

from oslo_serialization import jsonutils

from oslo_messaging_zmq.redis import client as redis_client
from oslo_messaging_zmq.redis import own_keys

VERSION = 1
DEFAULT_GROUP = 'default'

_DONE = """
local function number(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end
local function table_of(flat)
  local fields = {}
  for i = 1, #flat, 2 do fields[flat[i]] = flat[i + 1] end
  return fields
end
local function delete_if_done(stream, id)
  local ms, seq = number(id)
  for _, flat in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
    local group = table_of(flat)
    local at_ms, at_seq = number(group['last-delivered-id'])
    if at_ms < ms or (at_ms == ms and at_seq < seq) then return end
    local open = redis.call('XPENDING', stream, group['name'], id, id, 1)
    if #open > 0 then return end
  end
  redis.call('XDEL', stream, id)
end
"""

# KEYS: stream, lane. ARGV: sequence in the lane, milliseconds a lane is
# remembered, longest stream, body, default group. Returns how many of the
# oldest entries the stream lost.
_SEND = (
    _DONE
    + """
local last = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
if last >= tonumber(ARGV[1]) then return 0 end
redis.call('XADD', KEYS[1], '*', 'body', ARGV[4])
local missing = true
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  if table_of(flat)['name'] == ARGV[5] then missing = false end
end
if missing then redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[5], '0') end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return redis.call('XTRIM', KEYS[1], 'MAXLEN', ARGV[3])
"""
)

# KEYS: stream. ARGV: group, default group. A new pool begins with what the
# default group was not given yet.
_SUBSCRIBE = (
    _DONE
    + """
local start = '0'
if redis.call('EXISTS', KEYS[1]) == 1 then
  for _, flat in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    local group = table_of(flat)
    if group['name'] == ARGV[1] then return 0 end
    if group['name'] == ARGV[2] then start = group['last-delivered-id'] end
  end
end
redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[1], start, 'MKSTREAM')
return 1
"""
)

# KEYS: stream. ARGV: group, id. Returns whether it was ours to acknowledge.
_FINISH = (
    _DONE
    + """
local open = redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
if open == 1 then delete_if_done(KEYS[1], ARGV[2]) end
return open
"""
)

# KEYS: stream. ARGV: group, id, body. Other groups had their copy, so the new
# entry names the one that it is for.
_REQUEUE = (
    _DONE
    + """
local open = redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
if open == 0 and redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('XADD', KEYS[1], '*', 'body', ARGV[3], 'group', ARGV[1])
if open == 1 then delete_if_done(KEYS[1], ARGV[2]) end
return 1
"""
)

# KEYS: stream. ARGV: group, our name, beginning of the keys that live as long
# as their consumers, least idle milliseconds, most entries. Returns id,
# fields and number of deliveries of what we took over from the dead.
_CLAIM = """
local taken = {}
for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local name, pending = flat[2], flat[4]
  if name ~= ARGV[2] and redis.call('EXISTS', ARGV[3] .. name) == 0 then
    if pending == 0 then
      redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], name)
    else
      local room = tonumber(ARGV[5]) - #taken
      local open = {}
      if room > 0 then
        open = redis.call(
          'XPENDING', KEYS[1], ARGV[1], '-', '+', room, name)
      end
      for _, entry in ipairs(open) do
        local id, idle, count = entry[1], entry[3], entry[4]
        if idle >= tonumber(ARGV[4]) then
          local got = redis.call(
            'XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, id)
          if got[1] then
            taken[#taken + 1] = {id, got[1][2], count}
          else
            redis.call('XACK', KEYS[1], ARGV[1], id)
          end
        end
      end
    end
  end
end
return taken
"""

# KEYS: stream. ARGV: group, consumer. Keeps one that has work open.
_LEAVE = """
if redis.call('EXISTS', KEYS[1]) == 0 then return end
for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  if flat[2] == ARGV[2] and flat[4] == 0 then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
  end
end
"""


class BadNotification(Exception):
    """Fault of an entry of a stream, and what was expected."""


@dataclasses.dataclass(frozen=True, slots=True)
class StreamEntry:
    """One entry of a stream, as it was read.

    :param stream: its key.
    :param id: Redis' name for it.
    :param fields: what it holds; empty when it was deleted meanwhile.
    :param deliveries: how often it was given to a consumer before.
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


def checked_body(entry: StreamEntry, most_deliveries: int) -> bytes:
    """The body of an entry.

    :raises BadNotification: it was delivered too often.
    """
    if entry.deliveries >= most_deliveries:
        raise BadNotification(
            f'it was delivered {entry.deliveries} times, and never finished'
        )
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


class NotificationStore:
    """Commands of senders and listeners of notifications to Redis.

    :param client: a ``redis.Redis`` that gives bytes.
    :param prefix: with which every key begins.
    :param on_replaced: told each key that had a value of a wrong type.
    """

    def __init__(
        self,
        client: Any,
        prefix: str,
        on_replaced: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._prefix = f'{prefix}:notifications'
        self._send = client.register_script(_SEND)
        self._subscribe = client.register_script(_SUBSCRIBE)
        self._finish = client.register_script(_FINISH)
        self._requeue = client.register_script(_REQUEUE)
        self._claim = client.register_script(_CLAIM)
        self._leave = client.register_script(_LEAVE)
        self._own_keys = own_keys.OwnKeys(client, on_replaced)

    def stream(self, exchange: str, topic: str) -> str:
        """Key of the stream of a topic with its priority."""
        return f'{self._prefix}:{redis_client.quoted(exchange, topic)}'

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
        keys = {
            stream: own_keys.STREAM,
            f'{self._prefix}:lane:{lane}': own_keys.TEXT,
        }
        day_ms = 24 * 3600 * 1000
        arguments = [sequence, day_ms, length, body, DEFAULT_GROUP]
        return int(self._own_keys.run(self._send, keys, arguments))

    def subscribe(self, stream: str, group: str) -> bool:
        """Make sure that a group gets what is sent from now on.

        :returns: whether it is new.
        """
        return bool(
            self._on_stream(self._subscribe, stream, group, DEFAULT_GROUP)
        )

    def read(
        self, streams: Sequence[str], group: str, name: str, count: int,
        block_s: float,
    ) -> list[StreamEntry]:  # fmt: skip
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
    ) -> list[StreamEntry]:
        """Entries that were given to a consumer, and are open still."""
        return _entries(
            self._client.xreadgroup(group, name, dict.fromkeys(streams, '0'))
        )

    def finish(self, stream: str, group: str, entry_id: str) -> None:
        """Take note that a group is done with an entry."""
        self._on_stream(self._finish, stream, group, entry_id)

    def requeue(
        self, stream: str, group: str, entry_id: str, body: bytes
    ) -> None:
        """Put an entry into a group once more, after what waits already."""
        self._on_stream(self._requeue, stream, group, entry_id, body)

    def claim(
        self, stream: str, group: str, name: str, idle_s: float, count: int
    ) -> list[StreamEntry]:
        """Take over the open entries of dead consumers.

        :param name: who takes it.
        :param idle_s: for how long an entry must be untouched, in seconds.
        :param count: most entries.
        """
        idle_ms = int(idle_s * 1000)
        taken = self._on_stream(
            self._claim, stream, group, name, self._alive(''), idle_ms, count
        )
        return [
            StreamEntry(
                stream, entry_id.decode(), _pairs(fields), int(deliveries)
            )
            for entry_id, fields, deliveries in taken
        ]

    def keep_alive(self, name: str, lease_s: float) -> None:
        """Say that a consumer lives, for so many seconds."""
        self._client.set(self._alive(name), b'1', px=int(lease_s * 1000))

    def leave(self, streams: Sequence[str], group: str, name: str) -> None:
        """Remove a consumer; its open entries are free for others at once."""
        for stream in streams:
            self._on_stream(self._leave, stream, group, name)
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

    def _on_stream(self, script: Any, stream: str, *args: Any) -> Any:
        return self._own_keys.run(script, {stream: own_keys.STREAM}, args)

    def _alive(self, name: str) -> str:
        return f'{self._prefix}:alive:{name}'


def _entries(found: Any) -> list[StreamEntry]:
    pairs = found.items() if isinstance(found, dict) else found or ()
    return [
        StreamEntry(stream.decode(), entry_id.decode(), fields or {})
        for stream, entries in pairs
        for entry_id, fields in entries
    ]


def _pairs(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
