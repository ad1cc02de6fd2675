# SPDX-License-Identifier: Apache-2.0

"""Options of the driver: ``[oslo_messaging_zmq]``.

Each may also stand in the query of the transport URL, where it holds for that
transport only: ``zmq+redis://controller:6379/?insecure=true``.
"""

from collections.abc import Sequence
import copy
import dataclasses
import socket
from typing import Any

from oslo_config import cfg
import oslo_messaging

GROUP = cfg.OptGroup(
    'oslo_messaging_zmq',
    title='Messaging over ZeroMQ',
    help='Driver of oslo.messaging for transports such as zmq+redis://.',
)

OPTS = [
    cfg.StrOpt(
        'keys_path',
        default='',
        help="""
Directory with the key pair (CURVE) of this host and the list of allowed keys.
``nova-fairness-keys`` makes both. All connections are encrypted and
authenticated with them. Set it on every host; empty means no keys, which only
``insecure`` permits.
""",
    ),
    cfg.BoolOpt(
        'insecure',
        default=False,
        advanced=True,
        help="""
Whether to talk without keys. Then everybody who reaches the ports of this
host, or Redis, can read and send messages. Use it for tests only. Without keys
the driver starts only if this is set.
""",
    ),
    cfg.HostAddressOpt(
        'bind_address',
        default='0.0.0.0',  # noqa: S104 - guarded by keys; an operator narrows it
        help="""
Address on which this host listens for messages. Set it to the host's address
on the management network.
""",
    ),
    cfg.StrOpt(
        'host',
        sample_default='<the host name>',
        advanced=True,
        help="""
Name or address under which the other hosts reach this one. Not set:
``bind_address`` if that is the address of an interface, else the host name.
Set it if the other hosts cannot resolve the host name.
""",
    ),
    cfg.IntOpt(
        'max_message_size',
        default=8 * 1024**2,
        min=1024,
        max=1024**3,
        advanced=True,
        help="""
Size of the largest message that is sent or read, in bytes, from 1 KiB to 1
GiB. Raise it if the log says that a message is too large.
""",
    ),
    cfg.IntOpt(
        'queue_length',
        default=1000,
        min=1,
        max=10**6,
        advanced=True,
        help="""
Number of calls and casts that wait for each peer, and of each peer. Further
ones are dropped and counted, or sent again if the caller asked for that. Raise
it if calls are dropped in bursts; each takes memory while it waits.
""",
    ),
    cfg.IntOpt(
        'fanout_queue_length',
        default=100,
        min=1,
        max=10**6,
        advanced=True,
        help="""
Number of fanout messages that wait for each peer, and of each peer. Further
ones are dropped and counted, so that a peer that does not read delays no other
peer. Raise it if fanouts are dropped in bursts.
""",
    ),
    cfg.IntOpt(
        'requests_in_work',
        default=200,
        min=1,
        max=10**6,
        advanced=True,
        help="""
Number of calls and casts that one listener has in work at a time; further ones
wait in the queues above. Lower it to take less memory, raise it for an
executor with more threads.
""",
    ),
    cfg.IntOpt(
        'peer_requests_in_work',
        default=4,
        min=1,
        max=10**6,
        advanced=True,
        help="""
Number of calls and casts of one peer that one listener has in work at a time.
An answer of 16 KiB or more counts until its peer has read it. ``queue_length``
further ones wait, up to twice ``max_message_size``; beyond that they are
dropped and counted. So no peer waits long behind one that asks without end.
Raise it for a service whose clients ask much at the same time; half of the
threads of its executor are a good value.
""",
    ),
    cfg.IntOpt(
        'peer_connections',
        default=200,
        min=1,
        max=10**6,
        advanced=True,
        help="""
Number of connections that one key may have to each socket of a listener;
further ones are refused, counted and logged. Each takes a descriptor, so a
peer cannot use up all of them. A process that talks to the listener has one.
Raise it if a host has more such processes, as nova-api with very many workers.
""",
    ),
    cfg.IntOpt(
        'fanouts_in_work',
        default=16,
        min=1,
        max=10**6,
        advanced=True,
        help="""
Number of fanout messages that one listener has in work at a time. No call
waits behind more of them. Lower it if calls are answered late.
""",
    ),
    cfg.FloatOpt(
        'request_rate',
        default=2000.0,
        min=0.0,
        advanced=True,
        help="""
Calls and casts per second, on average, that one listener takes from one peer,
and twenty times the fanout messages; 0: any number. Ten seconds' worth may
come at once, and each 64 KiB of a message count as one more. Messages beyond
this are read slowly, dropped before they are decoded, counted, and logged with
the peer's name; so a peer that sends without end costs little and delays no
other peer. For ten seconds after that its key makes no further connections.
Raise it for a service that one client asks more often.
""",
    ),
    cfg.FloatOpt(
        'fanout_pause',
        default=0.5,
        min=0.0,
        max=60.0,
        advanced=True,
        help="""
Seconds for which a listener lets fanout messages gather after it has read all
that were there; 0: it does not wait. Reading many at a time costs less than
half of reading them one by one. A message after a quiet time is read at once,
so this is the longest delay. In this time at most ``fanout_queue_length``
messages of one peer may come. Lower it if fanouts that follow each other
closely must arrive sooner.
""",
    ),
    cfg.FloatOpt(
        'undeliverable_after',
        default=5.0,
        min=0.0,
        advanced=True,
        help="""
Seconds for which a cast waits until a server listens to its topic, unless its
sender says how often to try again. After that it is dropped, counted and
logged. Raise it if listeners are away for longer when they restart.
""",
    ),
    cfg.FloatOpt(
        'address_ttl',
        default=30.0,
        min=1.0,
        advanced=True,
        help="""
Seconds for which Redis keeps the address of a listener that no longer
refreshes it; at least 1. A listener does so three times in that time. Lower it
to forget dead listeners sooner; each refresh is a command to Redis.
""",
    ),
    cfg.FloatOpt(
        'poll_interval',
        default=1.0,
        min=0.05,
        advanced=True,
        help="""
Seconds between two questions to Redis whether addresses changed; at least
0.05. Raise it if Redis has too much to do in a domain of thousands of hosts.
""",
    ),
    cfg.FloatOpt(
        'redis_timeout',
        default=2.0,
        min=0.1,
        advanced=True,
        help="""
Seconds to wait for an answer of Redis; at least 0.1. Raise it if Redis is far
away.
""",
    ),
    cfg.StrOpt(
        'redis_prefix',
        default='oslo_messaging_zmq',
        advanced=True,
        help="""
First part of the name of every key in Redis. Transports with different
prefixes never see each other. Set one for each of several clouds that share a
Redis.
""",
    ),
    cfg.IntOpt(
        'notifications_kept',
        default=10000,
        min=1,
        max=10**8,
        advanced=True,
        help="""
Number of notifications of one topic and priority that Redis keeps until all
their listeners are done with them. When there are more, the oldest are lost,
counted and logged. Raise it to ride out longer absences of listeners, if Redis
has memory for them.
""",
    ),
]

_NAMES = {opt.dest: opt for opt in OPTS}


@dataclasses.dataclass(frozen=True, slots=True)
class DriverSettings:
    """The values of all options; the help of each option explains it."""

    keys_path: str
    insecure: bool
    bind_address: str
    host: str
    max_message_size: int
    queue_length: int
    fanout_queue_length: int
    requests_in_work: int
    peer_requests_in_work: int
    peer_connections: int
    fanouts_in_work: int
    request_rate: float

    fanout_pause: float
    undeliverable_after: float
    address_ttl: float
    poll_interval: float
    redis_timeout: float
    redis_prefix: str
    notifications_kept: int


def list_opts() -> Sequence[tuple[cfg.OptGroup, Sequence[Any]]]:
    """Return all options, for the generator of the sample file."""
    return [(GROUP, copy.deepcopy(OPTS))]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options of the driver on a configuration."""
    # A group remembers what was set in it, and oslo.config copies it flatly.
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP.name)


def read(
    conf: cfg.ConfigOpts, url: oslo_messaging.TransportURL
) -> DriverSettings:
    """Read the options; the URL's query has precedence over the configuration.

    :raises InvalidTransportURL: if a value in the URL is invalid.
    """
    register_opts(conf)
    group = conf[GROUP.name]
    values = {name: getattr(group, name) for name in _NAMES}
    for name, text in url.query.items():
        if name in _NAMES:
            values[name] = _from_query(url, name, text)
    values['host'] = values['host'] or _default_host(values['bind_address'])
    return DriverSettings(**values)


def without_options(
    url: oslo_messaging.TransportURL,
) -> oslo_messaging.TransportURL:
    """Return the URL without options of the driver, for Redis only."""
    place = copy.copy(url)
    place.query = {
        name: text for name, text in url.query.items() if name not in _NAMES
    }
    return place


def _from_query(url: oslo_messaging.TransportURL, name: str, text: str) -> Any:
    try:
        return _NAMES[name].type(text)
    except ValueError as error:
        msg = f'{name}={text} in the query of the transport URL: {error}'
        raise oslo_messaging.InvalidTransportURL(url.transport, msg) from error


def _default_host(bind_address: str) -> str:
    everywhere = bind_address in {'0.0.0.0', '::', '*'}  # noqa: S104
    return socket.gethostname() if everywhere else bind_address
