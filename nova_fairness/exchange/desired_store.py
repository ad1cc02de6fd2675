# SPDX-License-Identifier: Apache-2.0

"""Durable stores of the desired state: a file, and Redis."""

import abc
from collections.abc import Callable
import dataclasses
import json
from typing import Any

import redis

from nova_fairness import exception
from nova_fairness.exchange import desired as desired_module
from nova_fairness.runtime import state_file

VERSION = 1

Change = Callable[
    [desired_module.DesiredChoice | None], desired_module.DesiredChoice
]
"""Function from the newest known choice to the wanted one."""


class SharedStore(abc.ABC):
    """A store that all nodes of a domain can read."""

    @abc.abstractmethod
    def load(self) -> desired_module.DesiredChoice | None:
        """Return the stored choice; ``None`` if there is none.

        :raises ReportRefused: if the content is invalid.
        :raises ExchangeError: if the store is not reachable.
        """

    @abc.abstractmethod
    def change(self, change: Change) -> desired_module.DesiredChoice:
        """Replace the stored choice.

        :param change: called again if another node wrote meanwhile; it may
            return the stored choice.
        :returns: the choice that is stored now.
        :raises ExchangeError: if the store is not reachable.
        """


class FileStore(state_file.StateFile):
    """A JSON file; a power failure leaves the old or the new content.

    :param path: of the file; its directory exists.
    """

    def load(self) -> desired_module.DesiredChoice | None:
        """Return the saved choice; ``None`` if there is none.

        :raises StateError: if the file cannot be read or parsed.
        """
        try:
            return _parse(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, exception.ReportRefused) as error:
            raise exception.StateError(
                f'{self.path}: the file is unusable: {error}'
            ) from error

    def save(self, desired: desired_module.DesiredChoice) -> bool:
        """Replace the file; return whether that succeeded."""
        return not self.write(_serialize(desired).decode())


_WRONG_TYPE = 'WRONGTYPE'
"""Begin of Redis' error for a value that is no text."""

_MAX_BYTES = 4095
"""Largest size of a stored choice; this service writes no larger one."""

# A value of another type than text is somebody else's and counts as nothing.
_SWAP = f"""
local kept = redis.pcall('GETRANGE', KEYS[1], 0, {_MAX_BYTES})
if type(kept) == 'table' then
  if not string.find(kept['err'], '{_WRONG_TYPE}', 1, true) then
    return kept
  end
  kept = '{_WRONG_TYPE}'
end
if kept ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
"""

_MAX_TRIES = 10


class RedisStore(SharedStore):
    """One key in Redis, changed by compare-and-set.

    :param client: of redis-py, with timeouts; answers are bytes or text.
    :param domain: part of the key, to separate domains.
    :param prefix: of the key.
    """

    def __init__(
        self, client: Any, domain: str, prefix: str = 'nova-fairness'
    ) -> None:
        self._client = client
        self.key = f'{prefix}:desired:{domain}'

    def load(self) -> desired_module.DesiredChoice | None:
        """Return the stored choice; ``None`` if there is none.

        :raises ReportRefused: if the key has another content.
        :raises ExchangeError: if Redis is not reachable.
        """
        raw = self._read_raw()
        try:
            return _parse(raw) if raw else None
        except exception.ReportRefused as error:
            raise exception.ReportRefused(
                error.reason,
                f'the key {self.key} in Redis holds no desired state: {error}',
            ) from error

    def change(self, change: Change) -> desired_module.DesiredChoice:
        """Replace the stored choice; invalid content counts as none.

        :raises ExchangeError: if Redis is not reachable, or other nodes wrote
            first too often.
        """
        for _ in range(_MAX_TRIES):
            raw = self._read_raw()
            kept = _parse_or_none(raw)
            wanted = change(kept)
            if wanted == kept:
                return wanted
            if self._compare_and_set(raw, _serialize(wanted)):
                return wanted
        raise exception.ExchangeError(
            f'the key {self.key} in Redis was changed by others {_MAX_TRIES} '
            'times in a row'
        )

    def _read_raw(self) -> bytes:
        try:
            raw = self._read_once_more()
        except redis.ResponseError as error:
            if not str(error).startswith(_WRONG_TYPE):
                raise self._unreachable(error) from error
            # No JSON, so it is refused or replaced as any other garbage.
            return _WRONG_TYPE.encode()
        except (redis.RedisError, OSError) as error:
            raise self._unreachable(error) from error
        return raw.encode() if isinstance(raw, str) else bytes(raw)

    def _read_once_more(self) -> str | bytes:
        try:
            raw: str | bytes = self._client.getrange(self.key, 0, _MAX_BYTES)
        except redis.ConnectionError:
            # Perhaps it was only the connection that did not survive.
            raw = self._client.getrange(self.key, 0, _MAX_BYTES)
        return raw

    def _compare_and_set(self, before: bytes, after: bytes) -> bool:
        try:
            return bool(self._client.eval(_SWAP, 1, self.key, before, after))
        except (redis.RedisError, OSError) as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> exception.ExchangeError:
        return exception.ExchangeError(
            f'desired state: Redis cannot be used: {error}'
        )


def _parse_or_none(raw: bytes) -> desired_module.DesiredChoice | None:
    try:
        return _parse(raw) if raw else None
    except exception.ReportRefused:
        return None


def _serialize(desired: desired_module.DesiredChoice) -> bytes:
    return json.dumps(
        {'version': VERSION, **dataclasses.asdict(desired)}, sort_keys=True
    ).encode()


def _parse(raw: bytes) -> desired_module.DesiredChoice:
    try:
        content = json.loads(raw)
    except exception.UNREADABLE as error:
        raise exception.ReportRefused(
            'malformed', f'the choice is not JSON: {error!s:.100}'
        ) from error
    if isinstance(content, dict) and content.get('version') != VERSION:
        raise exception.ReportRefused(
            'version', f'its version is not {VERSION}'
        )
    return desired_module.parse(content)
