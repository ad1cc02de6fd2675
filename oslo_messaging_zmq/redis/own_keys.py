# SPDX-License-Identifier: Apache-2.0

"""Repairs own keys whose value has a wrong type.

Redis refuses every command on such a key. All keys with the driver's prefix
belong to the driver, so a value that the driver cannot have written is
deleted, and the command is sent once more.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import logging
from typing import Any

import redis

from oslo_messaging_zmq.redis import client as redis_client

LOG = logging.getLogger(__name__)

TEXT, SORTED_SET, STREAM = 'string', 'zset', 'stream'
"""Types of values that we write."""

# KEYS: any. ARGV: the type that each shall have. Returns the keys removed.
# A command for the type asks for it: TYPE would need a further right.
_REPLACE = """
local function ask(key, kind)
  if kind == 'zset' then return redis.pcall('ZCARD', key) end
  if kind == 'stream' then return redis.pcall('XINFO', 'GROUPS', key) end
  return redis.pcall('GETRANGE', key, 0, 0)
end
local removed = {}
for place, key in ipairs(KEYS) do
  local told = ask(key, ARGV[place])
  if type(told) == 'table' and told['err']
     and string.find(told['err'], 'WRONGTYPE', 1, true) then
    redis.call('DEL', key)
    removed[#removed + 1] = key
  end
end
return removed
"""


class OwnKeys:
    """Runs scripts, and deletes values of a wrong type that block them.

    :param client: a ``redis.Redis`` that returns bytes.
    :param on_replaced: called with the name of each deleted key.
    """

    def __init__(
        self,
        client: Any,
        on_replaced: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._replace = client.register_script(_REPLACE)
        self._on_replaced = on_replaced

    def run(
        self, script: Any, keys: Mapping[str, str], args: Sequence[Any]
    ) -> Any:
        """Run a script; once more if a key had a value of a wrong type.

        :param script: registered.
        :param keys: in sequence, each with its expected type.
        :param args: of the script.
        :raises redis.RedisError: as the script does.
        """
        try:
            return script(keys=list(keys), args=args)
        except redis.ResponseError as error:
            if not redis_client.is_wrong_type(error) or not self.replace(keys):
                raise
        return script(keys=list(keys), args=args)

    def replace(self, keys: Mapping[str, str]) -> list[str]:
        """Delete values of a wrong type.

        :param keys: each with its expected type.
        :returns: the deleted keys.
        """
        removed = self._replace(keys=list(keys), args=list(keys.values()))
        names = [name.decode('utf-8', 'replace') for name in removed]
        for name in names:
            LOG.warning(
                'Key %s in Redis: its value was removed: another program had '
                'written one of a wrong type; keep others away from our keys '
                'by an ACL',
                name,
            )
            self._on_replaced(name)
        return names
