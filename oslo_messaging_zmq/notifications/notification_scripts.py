# SPDX-License-Identifier: Apache-2.0

"""What Redis does in one go for notifications, in its own Lua."""

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
SEND = (
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
SUBSCRIBE = (
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
FINISH = (
    _DONE
    + """
local open = redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
if open == 1 then delete_if_done(KEYS[1], ARGV[2]) end
return open
"""
)

# KEYS: stream. ARGV: group, id, body. Other groups had their copy, so the new
# entry names the one that it is for.
REQUEUE = (
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
CLAIM = """
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
LEAVE = """
if redis.call('EXISTS', KEYS[1]) == 0 then return end
for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  if flat[2] == ARGV[2] and flat[4] == 0 then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
  end
end
"""
