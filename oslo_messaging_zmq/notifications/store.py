# SPDX-License-Identifier: Apache-2.0

"""Notifications in Redis Streams: one command or script per method.

A topic of one priority is a stream, a pool is a consumer group of it, and
listeners without a pool are the group ``default``. Every sender creates that
group, so that messages wait for later listeners. An entry is deleted after
every group has processed it, so a stream contains only unprocessed entries,
and losses of a full stream are known.
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
    """An invalid entry of a stream; the text names the error and the
    expectation.
    """


@dataclasses.dataclass(frozen=True, slots=True)
class StreamEntry:
    """One entry of a stream.

    :param stream: its key.
    :param id: in Redis.
    :param fields: its content; empty if it was deleted meanwhile.
    :param deliveries: number of earlier deliveries.
    """

    stream: str
    id: str
    fields: Mapping[bytes, bytes]
    deliveries: int = 0


def encode(ctxt: Mapping[str, Any], message: Mapping[str, Any]) -> bytes:
    """Encode a notification; objects become JSON types."""
    return bytes(
        jsonutils.dump_as_bytes(
            {'version': VERSION, 'ctxt': ctxt, 'message': message}
        )
    )


def checked_body(entry: StreamEntry, most_deliveries: int) -> bytes:
    """Return the body of an entry.

    :raises BadNotification: if it was delivered too often.
    """
    if entry.deliveries >= most_deliveries:
        raise BadNotification(
            f'it was delivered {entry.deliveries} times, and never finished'
        )
    return entry.fields.get(b'body', b'')


def decode(text: bytes, limit: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Decode an untrusted notification.

    :param text: the body of an entry.
    :param limit: largest size in bytes.
    :returns: context and message.
    :raises BadNotification: if it is invalid.
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

    :param client: a ``redis.Redis`` that returns bytes.
    :param prefix: of every key.
    :param on_replaced: called with each key whose value had a wrong type.
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
        """Return the key of the stream of a topic with its priority."""
        return f'{self._prefix}:{redis_client.quoted(exchange, topic)}'

    def send(
        self, stream: str, lane: str, sequence: int, body: bytes, length: int
    ) -> int:
        """Add an entry, once only.

        :param lane: name of a sequence of entries that are added one by one.
        :param sequence: number in the lane; a number is stored once, however
            often it is sent.
        :param length: largest number of entries of the stream.
        :returns: number of oldest entries that the stream lost.
        """
        keys = {
            stream: own_keys.STREAM,
            f'{self._prefix}:lane:{lane}': own_keys.TEXT,
        }
        day_ms = 24 * 3600 * 1000
        arguments = [sequence, day_ms, length, body, DEFAULT_GROUP]
        return int(self._own_keys.run(self._send, keys, arguments))

    def subscribe(self, stream: str, group: str) -> bool:
        """Create a group, which gets all entries from now on, if it is
        missing.

        :returns: whether it is new.
        """
        return bool(
            self._on_stream(self._subscribe, stream, group, DEFAULT_GROUP)
        )

    def read(
        self, streams: Sequence[str], group: str, name: str, count: int,
        block_s: float,
    ) -> list[StreamEntry]:  # fmt: skip
        """Read new entries, waiting for the first.

        :param name: of the consumer.
        :param count: largest number per stream.
        :param block_s: longest wait, in seconds.
        """
        found = self._client.xreadgroup(
            group,
            name,
            dict.fromkeys(streams, '>'),
            count=count,
            block=max(1, int(block_s * 1000)),
        )
        return _parse_entries(found)

    def read_again(
        self, streams: Sequence[str], group: str, name: str
    ) -> list[StreamEntry]:
        """Return a consumer's entries that are not acknowledged yet."""
        return _parse_entries(
            self._client.xreadgroup(group, name, dict.fromkeys(streams, '0'))
        )

    def finish(self, stream: str, group: str, entry_id: str) -> None:
        """Record that a group has processed an entry."""
        self._on_stream(self._finish, stream, group, entry_id)

    def requeue(
        self, stream: str, group: str, entry_id: str, body: bytes
    ) -> None:
        """Append an entry for a group again, after the waiting ones."""
        self._on_stream(self._requeue, stream, group, entry_id, body)

    def claim(
        self, stream: str, group: str, name: str, idle_s: float, count: int
    ) -> list[StreamEntry]:
        """Claim the unacknowledged entries of dead consumers.

        :param name: of the claiming consumer.
        :param idle_s: seconds for which an entry must be untouched.
        :param count: largest number of entries.
        """
        idle_ms = int(idle_s * 1000)
        taken = self._on_stream(
            self._claim,
            stream,
            group,
            name,
            self._lease_key(''),
            idle_ms,
            count,
        )
        return [
            StreamEntry(
                stream, entry_id.decode(), _fields_of(fields), int(deliveries)
            )
            for entry_id, fields, deliveries in taken
        ]

    def keep_alive(self, name: str, lease_s: float) -> None:
        """Renew a consumer's lease for some seconds."""
        self._client.set(self._lease_key(name), b'1', px=int(lease_s * 1000))

    def leave(self, streams: Sequence[str], group: str, name: str) -> None:
        """Delete a consumer; others can claim its entries at once."""
        for stream in streams:
            self._on_stream(self._leave, stream, group, name)
        self._client.delete(self._lease_key(name))

    def client_id(self) -> int:
        """Return Redis' identifier of this connection."""
        return int(self._client.client_id())

    def unblock(self, client_id: int) -> None:
        """End the wait of another connection."""
        self._client.client_unblock(client_id)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _on_stream(self, script: Any, stream: str, *args: Any) -> Any:
        return self._own_keys.run(script, {stream: own_keys.STREAM}, args)

    def _lease_key(self, name: str) -> str:
        return f'{self._prefix}:alive:{name}'


def _parse_entries(found: Any) -> list[StreamEntry]:
    pairs = found.items() if isinstance(found, dict) else found or ()
    return [
        StreamEntry(stream.decode(), entry_id.decode(), fields or {})
        for stream, entries in pairs
        for entry_id, fields in entries
    ]


def _fields_of(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
