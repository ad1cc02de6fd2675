# SPDX-License-Identifier: Apache-2.0

"""Where desired state outlives an agent: a file, and Redis."""

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
"""From the newest that is known to what shall be."""


class SharedStore(abc.ABC):
    """A place that all nodes of a domain can ask."""

    @abc.abstractmethod
    def load(self) -> desired_module.DesiredChoice | None:
        """The state that is kept, ``None`` if none ever was.

        :raises ReportRefused: if it holds garbage.
        :raises ExchangeError: if it cannot be asked.
        """

    @abc.abstractmethod
    def change(self, change: Change) -> desired_module.DesiredChoice:
        """Replace what is kept.

        :param change: called again if another node was faster; it may return
            the state that is kept already.
        :returns: what is kept now.
        :raises ExchangeError: if it cannot be asked.
        """


class FileStore(state_file.StateFile):
    """A JSON file; a power cut leaves the old or the new one.

    :param path: of the file; its directory exists.
    """

    def load(self) -> desired_module.DesiredChoice | None:
        """The state that was saved, ``None`` if none ever was.

        :raises StateError: if the file cannot be read or understood.
        """
        try:
            return _parsed(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, exception.ReportRefused) as error:
            raise exception.StateError(
                f'{self.path} cannot be used: {error}'
            ) from error

    def save(self, desired: desired_module.DesiredChoice) -> bool:
        """Replace the file; tell whether it was."""
        return not self.write(_written(desired).decode())


_WRONG_TYPE = 'WRONGTYPE'
"""How Redis' answer begins about a value that is no text."""

_LONGEST = 4095
"""Most bytes of a kept state; more was not written by this service."""

# A value of another type than text is somebody else's and counts as nothing.
_SWAP = f"""
local kept = redis.pcall('GETRANGE', KEYS[1], 0, {_LONGEST})
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

_TURNS = 10


class RedisStore(SharedStore):
    """One key in Redis, changed by compare-and-set.

    :param client: of redis-py, with timeouts; answers as bytes or text.
    :param domain: part of the key, so that domains never mix.
    :param prefix: of the key.
    """

    def __init__(
        self, client: Any, domain: str, prefix: str = 'nova-fairness'
    ) -> None:
        self._client = client
        self.key = f'{prefix}:desired:{domain}'

    def load(self) -> desired_module.DesiredChoice | None:
        """The state that is kept, ``None`` if none is.

        :raises ReportRefused: if the key holds something else.
        :raises ExchangeError: if Redis cannot be asked.
        """
        raw = self._raw()
        try:
            return _parsed(raw) if raw else None
        except exception.ReportRefused as error:
            raise exception.ReportRefused(
                error.reason,
                f'the key {self.key} in Redis holds no desired state: {error}',
            ) from error

    def change(self, change: Change) -> desired_module.DesiredChoice:
        """Replace what is kept; garbage counts as nothing.

        :raises ExchangeError: if Redis cannot be asked, or others are faster
            again and again.
        """
        for _ in range(_TURNS):
            raw = self._raw()
            kept = _kept(raw)
            wanted = change(kept)
            if wanted == kept:
                return wanted
            if self._swapped(raw, _written(wanted)):
                return wanted
        raise exception.ExchangeError(
            f'the key {self.key} in Redis was changed by others {_TURNS} '
            'times in a row'
        )

    def _raw(self) -> bytes:
        try:
            raw = self._asked()
        except redis.ResponseError as error:
            if not str(error).startswith(_WRONG_TYPE):
                raise self._away(error) from error
            # No JSON, so it is refused or replaced as any other garbage.
            return _WRONG_TYPE.encode()
        except (redis.RedisError, OSError) as error:
            raise self._away(error) from error
        return raw.encode() if isinstance(raw, str) else bytes(raw)

    def _asked(self) -> str | bytes:
        try:
            raw: str | bytes = self._client.getrange(self.key, 0, _LONGEST)
        except redis.ConnectionError:
            # Perhaps it was only the connection that did not survive.
            raw = self._client.getrange(self.key, 0, _LONGEST)
        return raw

    def _swapped(self, before: bytes, after: bytes) -> bool:
        try:
            return bool(self._client.eval(_SWAP, 1, self.key, before, after))
        except (redis.RedisError, OSError) as error:
            raise self._away(error) from error

    def _away(self, error: Exception) -> exception.ExchangeError:
        return exception.ExchangeError(
            f'Redis cannot be asked for the desired state: {error}'
        )


def _kept(raw: bytes) -> desired_module.DesiredChoice | None:
    try:
        return _parsed(raw) if raw else None
    except exception.ReportRefused:
        return None


def _written(desired: desired_module.DesiredChoice) -> bytes:
    return json.dumps(
        {'version': VERSION, **dataclasses.asdict(desired)}, sort_keys=True
    ).encode()


def _parsed(raw: bytes) -> desired_module.DesiredChoice:
    try:
        content = json.loads(raw)
    except exception.UNREADABLE as error:
        raise exception.ReportRefused(
            'malformed', f'it is no JSON: {error!s:.100}'
        ) from error
    if isinstance(content, dict) and content.get('version') != VERSION:
        raise exception.ReportRefused(
            'version', f'its version is not {VERSION}'
        )
    return desired_module.read(content)
