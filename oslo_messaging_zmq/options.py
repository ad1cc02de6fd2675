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
    help='The oslo.messaging driver of zmq+redis:// transports.',
)

OPTS = [
    cfg.StrOpt(
        'keys_path',
        default='',
        help="""
Directory with the CURVE key pair of this host and the list of allowed keys,
as ``nova-fairness-keys`` makes it. Every connection is encrypted and
authenticated with them. Empty: no keys, which is only possible with
``insecure``.
""",
    ),
    cfg.BoolOpt(
        'insecure',
        default=False,
        help="""
Talk without keys: everybody who reaches the ports of this host, or Redis, may
read and send messages. Without keys the driver starts only if this is set.
""",
    ),
    cfg.HostAddressOpt(
        'bind_address',
        default='0.0.0.0',  # noqa: S104 - guarded by keys; an operator narrows it
        help='Address on which this host listens for messages.',
    ),
    cfg.StrOpt(
        'host',
        sample_default='<the host name>',
        help="""
Name or address under which others reach the messages' ports of this host.
Default: ``bind_address`` if it is the address of an interface, else the host
name, which the other hosts must then be able to resolve.
""",
    ),
    cfg.IntOpt(
        'max_message_size',
        default=8 * 1024**2,
        min=1024,
        max=1024**3,
        help='Largest message that is sent or read, in bytes.',
    ),
    cfg.IntOpt(
        'queue_length',
        default=1000,
        min=1,
        max=10**6,
        help="""
Calls and casts that wait per peer, on either side. Beyond that they are
dropped and counted, or sent again if the caller asked for that.
""",
    ),
    cfg.IntOpt(
        'fanout_queue_length',
        default=100,
        min=1,
        max=10**6,
        help="""
Fanout messages that wait per peer, on either side. Beyond that they are
dropped and counted: a peer that does not read holds up nobody.
""",
    ),
    cfg.IntOpt(
        'requests_in_work',
        default=200,
        min=1,
        max=10**6,
        help="""
Calls and casts that one listener hands to the executor before the first of
them must have been served; further ones wait in the queues above.
""",
    ),
    cfg.IntOpt(
        'fanouts_in_work',
        default=16,
        min=1,
        max=10**6,
        help="""
The same for fanout messages: a call never waits behind more of them.
""",
    ),
    cfg.FloatOpt(
        'request_rate',
        default=2000.0,
        min=0.0,
        help="""
Calls and casts that one listener takes of one peer, per second on average; 0:
any number. Ten seconds' worth may come at once, and each 64 KiB of a message
count as one message more. What exceeds it is dropped before it is decoded,
counted and logged with the name of the peer, and is read slowly: so a peer
that sends without end costs little and delays nobody. Raise it for a service
that one client asks more often.
""",
    ),
    cfg.FloatOpt(
        'fanout_rate',
        default=100.0,
        min=0.0,
        help="""
The same for fanout messages. Raise it if peers tell everybody something more
often.
""",
    ),
    cfg.FloatOpt(
        'fanout_pause',
        default=0.5,
        min=0.0,
        max=60.0,
        help="""
Seconds for which a listener lets fanout messages gather after it has read all
that were there; 0: not at all. A message that comes after a quiet time is
read at once, so it is delayed by this at most. Reading many at a time costs
less than half of reading them one by one. Lower it if several fanouts shortly
after each other must arrive sooner. In this time no more than
``fanout_queue_length`` of one peer may come.
""",
    ),
    cfg.FloatOpt(
        'undeliverable_after',
        default=5.0,
        min=0.0,
        help="""
Seconds for which a cast waits for somebody who listens to its topic, unless
its sender says how often to try again. Afterwards it is dropped, counted and
logged.
""",
    ),
    cfg.FloatOpt(
        'address_ttl',
        default=30.0,
        min=1.0,
        help="""
Seconds after which the address of a listener that ended without saying so is
forgotten. It is refreshed three times in that time.
""",
    ),
    cfg.FloatOpt(
        'poll_interval',
        default=1.0,
        min=0.05,
        help='Seconds between two questions to Redis about changed addresses.',
    ),
    cfg.FloatOpt(
        'redis_timeout',
        default=2.0,
        min=0.1,
        help='Longest wait for an answer of Redis, in seconds.',
    ),
    cfg.StrOpt(
        'redis_prefix',
        default='oslo_messaging_zmq',
        help="""
What every key in Redis begins with. Transports with different prefixes never
see each other.
""",
    ),
    cfg.IntOpt(
        'notifications_kept',
        default=10000,
        min=1,
        max=10**8,
        help="""
Notifications that Redis holds for one topic and priority until all their
listeners are done with them. A full topic loses its oldest, which is counted
and logged. Redis must have memory for all of them; raise it to ride out
longer absences of listeners.
""",
    ),
    cfg.IntOpt(
        'notifications_in_work',
        default=64,
        min=1,
        max=10**6,
        help="""
Notifications that one listener takes before the first of them must have been
acknowledged, at least twice its batch size. Lower it if each takes long and
several listeners shall share them evenly.
""",
    ),
    cfg.FloatOpt(
        'notifications_lease',
        default=30.0,
        min=1.0,
        help="""
Seconds after which a listener to notifications that Redis has not heard of is
taken for dead, and others get what it had not acknowledged. Raise it if
listeners stand still for longer: else some are given twice.
""",
    ),
]

_NAMES = {opt.dest: opt for opt in OPTS}


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The values of the options, as the documentation of each says."""

    keys_path: str
    insecure: bool
    bind_address: str
    host: str
    max_message_size: int
    queue_length: int
    fanout_queue_length: int
    requests_in_work: int
    fanouts_in_work: int
    request_rate: float
    fanout_rate: float
    fanout_pause: float
    undeliverable_after: float
    address_ttl: float
    poll_interval: float
    redis_timeout: float
    redis_prefix: str
    notifications_kept: int
    notifications_in_work: int
    notifications_lease: float


def list_opts() -> Sequence[tuple[cfg.OptGroup, Sequence[Any]]]:
    """List every option for the generator of the sample file."""
    return [(GROUP, copy.deepcopy(OPTS))]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option of the driver on a configuration."""
    # A group remembers what was set in it, and oslo.config copies it flatly.
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP.name)


def read(conf: cfg.ConfigOpts, url: oslo_messaging.TransportURL) -> Settings:
    """Read the options; the URL's query goes before the configuration.

    :raises InvalidTransportURL: a value in the URL cannot be used.
    """
    register_opts(conf)
    group = conf[GROUP.name]
    values = {name: getattr(group, name) for name in _NAMES}
    for name, text in url.query.items():
        if name in _NAMES:
            values[name] = _from_query(url, name, text)
    values['host'] = values['host'] or _reachable(values['bind_address'])
    return Settings(**values)


def without_options(
    url: oslo_messaging.TransportURL,
) -> oslo_messaging.TransportURL:
    """The URL as the place of Redis only, without options of the driver."""
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


def _reachable(bind_address: str) -> str:
    everywhere = bind_address in {'0.0.0.0', '::', '*'}  # noqa: S104
    return socket.gethostname() if everywhere else bind_address
