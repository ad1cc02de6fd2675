# SPDX-License-Identifier: Apache-2.0

"""The Redis that a transport URL means.

Three forms are understood::

    zmq+redis://[[user][:password]@]host[:port][/database]
    zmq+rediss://[[user]:password@]host[:port][/database][?ca=...]
    zmq+sentinel://[[user]:password@]host[:port],.../[database]?service=name

``rediss`` is Redis over TLS. Its query may name files in PEM: ``ca``
(authorities to trust; those of the system by default), ``cert`` and ``key``
(our own), and ``check_hostname=false`` for certificates that name no host.
With ``sentinel`` the hosts are Sentinels, user and password those of the Redis
behind them; ``sentinel_user`` and ``sentinel_password`` are for the Sentinels
themselves, and ``tls=true`` encrypts all of it as ``rediss`` does.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any
from typing import NoReturn

import oslo_messaging

REDIS_PORT = 6379
SENTINEL_PORT = 26379

_TLS_KEYS = ('ca', 'cert', 'key', 'check_hostname')
_SENTINEL_KEYS = ('service', 'sentinel_user', 'sentinel_password', 'tls')
_QUERY_KEYS: Mapping[str, tuple[str, ...]] = {
    'redis': (),
    'rediss': _TLS_KEYS,
    'sentinel': _SENTINEL_KEYS + _TLS_KEYS,
}
"""Keys of the query, by the part after the plus sign."""

_TRUTH = {
    'true': True,
    'yes': True,
    '1': True,
    'false': False,
    'no': False,
    '0': False,
}


@dataclasses.dataclass(frozen=True, slots=True)
class RedisSettings:
    """Parameters of the connection to Redis; ``repr`` shows no password.

    :param hosts: host and port; several only for Sentinels.
    :param database: number of the database.
    :param username: empty for the default user.
    :param password: empty for none.
    :param service: the master's name in Sentinel; empty if the only host is
        Redis itself.
    :param sentinel_username: as ``username``, for the Sentinels.
    :param sentinel_password: as ``password``, for the Sentinels.
    :param tls: whether all connections are encrypted.
    :param ca: file of the trusted authorities; empty for the system's.
    :param certificate: file of the own certificate; empty for none.
    :param key: file of its key; empty for none.
    :param check_hostname: whether the certificate must name the host.
    """

    hosts: tuple[tuple[str, int], ...]
    database: int = 0
    username: str = ''
    password: str = dataclasses.field(default='', repr=False)
    service: str = ''
    sentinel_username: str = ''
    sentinel_password: str = dataclasses.field(default='', repr=False)
    tls: bool = False
    ca: str = ''
    certificate: str = ''
    key: str = ''
    check_hostname: bool = True

    @property
    def place(self) -> str:
        """The address of Redis for people, without a password."""
        hosts = ', '.join(_host_and_port(*host) for host in self.hosts)
        if self.service:
            return f'Redis {self.service!r} by Sentinel at {hosts}'
        return f'Redis at {hosts}'


def parse(url: oslo_messaging.TransportURL) -> RedisSettings:
    """Parse a transport URL.

    :param url: as oslo.messaging parsed it.
    :returns: the parameters of the connection to Redis.
    :raises oslo_messaging.InvalidTransportURL: if the URL has another form;
        the message names the expectation and shows no password.
    """
    try:
        return _parse(url)
    except _WrongForm as error:
        raise oslo_messaging.InvalidTransportURL(
            _without_secrets(url), f'{_without_secrets(url)}: {error}'
        ) from None


class _WrongForm(Exception):
    """An invalid URL; the text names the error and the expectation."""


def _parse(url: oslo_messaging.TransportURL) -> RedisSettings:
    kind = _url_kind(str(url.transport))
    query = _checked_query(kind, url.query)
    is_sentinel = kind == 'sentinel'
    hosts = _hosts(url.hosts, SENTINEL_PORT if is_sentinel else REDIS_PORT)
    if len(hosts) > 1 and not is_sentinel:
        _fail(
            f'expected one host, not {len(hosts)};'
            ' several are for zmq+sentinel://'
        )
    username, password = _credentials(url.hosts)
    tls = kind == 'rediss' or _boolean(query, 'tls', default=False)
    return RedisSettings(
        hosts=hosts,
        database=_database(url.virtual_host),
        username=username,
        password=password,
        service=_service(query) if is_sentinel else '',
        sentinel_username=_raw_word(query, 'sentinel_user'),
        sentinel_password=_raw_word(query, 'sentinel_password'),
        tls=tls,
        **_tls_files(query, tls),
    )


def _url_kind(transport: str) -> str:
    driver, _, kind = transport.partition('+')
    if driver != 'zmq' or kind not in _QUERY_KEYS:
        _fail('expected zmq+redis://, zmq+rediss:// or zmq+sentinel://')
    return kind


def _checked_query(kind: str, query: Mapping[str, str]) -> Mapping[str, str]:
    for name in sorted(query):
        if name not in _QUERY_KEYS[kind]:
            expected = ', '.join(_QUERY_KEYS[kind]) or 'none'
            _fail(f'unknown query {name!r}; zmq+{kind}:// knows: {expected}')
    return query


def _hosts(
    hosts: Sequence[Any], default_port: int
) -> tuple[tuple[str, int], ...]:
    if not hosts:
        _fail('a host is missing; expected zmq+redis://host:port/database')
    return tuple(
        (_hostname(host.hostname), _port(host.port, default_port))
        for host in hosts
    )


def _hostname(hostname: str | None) -> str:
    if not hostname:
        _fail(
            'a host is missing; expected host:port, and %-codes for special'
            ' characters in a password, such as %23 for # or %2F for /'
        )
    return hostname


def _port(port: int | None, default_port: int) -> int:
    if port is None:
        return default_port
    if not 0 < port < 65536:
        _fail('a port is out of range; expected 1 to 65535')
    return port


def _credentials(hosts: Sequence[Any]) -> tuple[str, str]:
    given = {
        (host.username or '', host.password or '')
        for host in hosts
        if host.username or host.password
    }
    if len(given) > 1:
        _fail('expected the same user and password at every host that has one')
    return given.pop() if given else ('', '')


def _raw_word(query: Mapping[str, str], name: str) -> str:
    """Return a word of the query as it was written.

    oslo.messaging reads a plus sign as a blank, as in web forms. Generated
    passwords contain plus signs; none for Redis contains a blank.
    """
    return query.get(name, '').replace(' ', '+')


def _database(virtual_host: str | None) -> int:
    text = (virtual_host or '').strip('/') or '0'
    if not (text.isascii() and text.isdecimal() and len(text) <= 5):
        _fail(
            f'expected the number of a database after the host, not {text!r}'
        )
    return int(text)


def _service(query: Mapping[str, str]) -> str:
    if not query.get('service'):
        _fail(
            'expected ?service= with the name that Sentinel gives the master'
        )
    return query['service']


def _tls_files(query: Mapping[str, str], tls: bool) -> dict[str, Any]:
    given = [name for name in _TLS_KEYS if query.get(name)]
    if given and not tls:
        _fail(f'{", ".join(given)} is of no use without tls=true')
    if bool(query.get('cert')) != bool(query.get('key')):
        _fail('expected cert and key together, or neither')
    return {
        'ca': query.get('ca', ''),
        'certificate': query.get('cert', ''),
        'key': query.get('key', ''),
        'check_hostname': _boolean(query, 'check_hostname', default=True),
    }


def _boolean(query: Mapping[str, str], name: str, *, default: bool) -> bool:
    if name not in query:
        return default
    word = query[name].lower()
    if word not in _TRUTH:
        _fail(f'{name} is {query[name]!r}; expected true or false')
    return _TRUTH[word]


def _without_secrets(url: oslo_messaging.TransportURL) -> str:
    hosts = ','.join(
        _host_and_port(host.hostname, host.port)
        for host in url.hosts
        if host.hostname
    )
    return f'{url.transport}://{hosts}/...'


def _host_and_port(hostname: str, port: int | None) -> str:
    name = f'[{hostname}]' if ':' in hostname else hostname
    return name if port is None else f'{name}:{port}'


def _fail(message: str) -> NoReturn:
    raise _WrongForm(message)
