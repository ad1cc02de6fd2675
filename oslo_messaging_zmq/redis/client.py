# SPDX-License-Identifier: Apache-2.0

"""Connections to Redis, and log messages about outages.

No command is repeated here: the sender of a command knows whether it may be
sent twice.
"""

import logging
import random
import re
from typing import Any
import urllib.parse

import redis
import redis.backoff
import redis.exceptions
import redis.retry
import redis.sentinel

from oslo_messaging_zmq.redis import url

FAILURES = (redis.RedisError, OSError)
"""All errors that a command can raise."""

# Of commands that came too early, and of what Sentinels told by the way.
_PASSWORD_MARKS = ('NOAUTH', 'WRONGPASS', 'AuthenticationError')

_KEY_CODES = frozenset(
    ('WRONGTYPE', 'NOGROUP', 'BUSYGROUP', 'BUSYKEY', 'UNBLOCKED')
)
"""Codes of Redis' errors that concern one key and its value."""

_OF_KEY = re.compile(
    'no such key|requires the key to exist|exhausted the last possible ID'
    '|equal or smaller than the target stream|invalid stream id'
    '|not an integer|not a (valid )?float|increment or decrement|overflow'
    '|exceeds maximum allowed size|user_script:',
    re.IGNORECASE,
)
"""Texts of Redis' errors without a code that concern one key, and of
scripts that fail on its value."""

# Redis since 7 appends to the error of any command which script ran it.
_WHERE = re.compile(r' script: [0-9a-f]{40}, on @user_script:[0-9]+\.?$')

# Redis before 7 puts the error of a command within that of its script.
_IN_SCRIPT = re.compile(
    r'user_script: ?[0-9]+: (?:@user_script: ?[0-9]+: )?-?([A-Z]{2,})(?: |$)'
)
_AT_HEAD = re.compile(r'-?([A-Z]{2,})(?: |$)')
_UNSPECIFIC = ('', 'ERR')


def connect(
    settings: url.RedisSettings,
    *,
    timeout_s: float,
    connections: int = 1,
) -> Any:
    """Create a client, which connects with its first command.

    :param settings: of the connection to Redis.
    :param timeout_s: longest wait to connect and for an answer, in seconds.
    :param connections: largest number of connections; a thread waits for a
        free one at most ``timeout_s``.
    :returns: a ``redis.Redis``; with Sentinel, of the present master.
    """
    common = _common(settings, timeout_s)
    if settings.service:
        return _master_client(settings, common)
    host, port = settings.hosts[0]
    kind: Any = redis.SSLConnection if settings.tls else redis.Connection
    make_pool: Any = redis.BlockingConnectionPool
    pool = make_pool(
        connection_class=kind,
        max_connections=connections,
        timeout=timeout_s,
        host=host,
        port=port,
        **_redis_only(settings),
        **common,
    )
    client = redis.Redis(connection_pool=pool)
    client.auto_close_connection_pool = True
    return client


def _common(settings: url.RedisSettings, timeout_s: float) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        'socket_timeout': timeout_s,
        'socket_connect_timeout': timeout_s,
        'retry': redis.retry.Retry(redis.backoff.NoBackoff(), 0),
        'protocol': 2,
    }
    if settings.tls:
        arguments |= {
            'ssl_ca_certs': settings.ca or None,
            'ssl_certfile': settings.certificate or None,
            'ssl_keyfile': settings.key or None,
            'ssl_check_hostname': settings.check_hostname,
        }
    return arguments


def _redis_only(settings: url.RedisSettings) -> dict[str, Any]:
    return {
        'db': settings.database,
        'username': settings.username or None,
        'password': settings.password or None,
    }


def _master_client(settings: url.RedisSettings, common: dict[str, Any]) -> Any:
    if settings.tls:
        common = common | {'ssl': True}
    make: Any = redis.sentinel.Sentinel
    sentinels = make(
        list(settings.hosts),
        sentinel_kwargs=common
        | {
            'username': settings.sentinel_username or None,
            'password': settings.sentinel_password or None,
        },
    )
    return sentinels.master_for(
        settings.service, **_redis_only(settings), **common
    )


def quoted(*words: str) -> str:
    """Return words as a unique part of a key."""
    return ':'.join(urllib.parse.quote(word, safe='') for word in words)


def _error_code(error: Exception) -> str:
    """Return Redis' code of an error; empty if it has none."""
    words = str(error)
    inner = _IN_SCRIPT.search(words)
    if inner and inner[1] not in _UNSPECIFIC:
        return inner[1]
    # Where redis-py has a class for a code, it takes the code away.
    told = getattr(error, 'status_code', None)
    found = _AT_HEAD.match(words)
    return told or (found[1] if found else '')


def is_wrong_type(error: Exception) -> bool:
    """Check whether a key has a value of another type than a command needs."""
    return isinstance(error, redis.ResponseError) and (
        _error_code(error) == 'WRONGTYPE'
    )


def concerns_one_key(error: Exception) -> bool:
    """Check whether an error concerns only one key and its value.

    All other errors concern the server: it is full, read-only, loading,
    failing over, or changed our rights. New versions have new codes, so the
    codes for keys are listed, and not those for servers.
    """
    if type(error) is not redis.ResponseError:
        # A class of its own stands for a state of the server.
        return False
    code = _error_code(error)
    if code in _UNSPECIFIC:
        return bool(_OF_KEY.search(_WHERE.sub('', str(error))))
    return code in _KEY_CODES


def is_away(error: Exception) -> bool:
    """Check whether an error means that Redis as a whole is unavailable.

    Otherwise it demands another password, or refused one command because of
    one key.
    """
    if isinstance(error, (redis.ConnectionError, OSError)):
        return True
    return (
        isinstance(error, redis.RedisError)
        and not isinstance(error, redis.DataError)
        and not concerns_one_key(error)
        and not is_password(error)
    )


def is_password(error: Exception) -> bool:
    """Check whether Redis demands a password or another one."""
    if isinstance(error, redis.AuthenticationError):
        return True
    words = str(error)
    return any(mark in words for mark in _PASSWORD_MARKS)


def is_forbidden(error: Exception) -> bool:
    """Check whether Redis refused a command because of missing rights."""
    return _error_code(error) == 'NOPERM' or isinstance(
        error, redis.exceptions.NoPermissionError
    )


def is_general(error: Exception) -> bool:
    """Check whether an error concerns the whole server or the password."""
    return is_away(error) or is_password(error)


def explain(error: Exception, settings: url.RedisSettings) -> str:
    """Return a message about an error and the server, without passwords."""
    words = _error_text(error, settings)
    if is_password(error):
        given = 'the password' if settings.password else 'us without password'
        return f'{settings.place} refused {given}: {words}'
    if isinstance(error, redis.exceptions.ReadOnlyError):
        return f'{settings.place} is a replica now: {words}'
    if is_forbidden(error):
        return f'{settings.place} does not permit it: {words}; see its ACL'
    if isinstance(error, redis.ResponseError) and not concerns_one_key(error):
        return f'{settings.place} refuses: {words}'
    return f'{settings.place}: {words}'


def _error_text(error: Exception, settings: url.RedisSettings) -> str:
    if isinstance(error, redis.sentinel.MasterNotFoundError):
        # Its own words describe clients with all they were made of.
        return 'No master found: no Sentinel that answers knows one that is up'
    words = str(error) or type(error).__name__
    code = getattr(error, 'status_code', None)
    if code and code != 'ERR' and code not in words:
        words = f'{code} {words}'
    for secret in (settings.password, settings.sentinel_password):
        if secret:
            words = words.replace(secret, '***')
    return words


def _outage_kind(error: Exception) -> str:
    """Return the kind of an outage, which decides the remedy."""
    if is_password(error):
        return 'password'
    return 'rights' if is_forbidden(error) else 'away'


LONGEST_PAUSE_S = 2.0
"""Longest time between two attempts to connect, in seconds."""


class Outage:
    """Logs the begin and the end of an outage of Redis, once each.

    :param settings: of the connection to Redis.
    :param logger: for the messages.
    :param purpose: what does not work meanwhile, such as ``listeners``.
    :param longest_s: longest time between two attempts, in seconds.
    """

    FIRST_S = 0.1

    def __init__(
        self,
        settings: url.RedisSettings,
        logger: Any,
        purpose: str,
        longest_s: float = LONGEST_PAUSE_S,
    ) -> None:
        self._settings = settings
        self._logger = logger
        self._purpose = purpose
        self._longest_s = longest_s
        self._logged_kind = ''
        self._delay_s = self.FIRST_S
        self.count = 0

    @property
    def lasts(self) -> bool:
        """Whether there is an outage now."""
        return bool(self._logged_kind)

    def failed(self, error: Exception) -> float:
        """Record a failure.

        :returns: seconds until the next attempt; longer with every failure,
            and random so that clients do not retry together.
        """
        kind = _outage_kind(error)
        if not self._logged_kind:
            self.count += 1
        if kind != self._logged_kind:
            self._logged_kind = kind
            level = logging.WARNING if kind == 'away' else logging.ERROR
            self._logger.log(
                level,
                'No %s until Redis serves again: %s',
                self._purpose,
                explain(error, self._settings),
            )
        delay_s = self._delay_s * random.uniform(0.5, 1.0)
        self._delay_s = min(self._delay_s * 2, self._longest_s)
        return delay_s

    def worked(self) -> None:
        """Record a success."""
        if self._logged_kind:
            self._logger.warning(
                '%s serves again: %s continue',
                self._settings.place,
                self._purpose,
            )
        self._logged_kind = ''
        self._delay_s = self.FIRST_S
