# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
    undeliverable_after: float
    address_ttl: float
    poll_interval: float
    redis_timeout: float
    redis_prefix: str


def list_opts() -> Sequence[tuple[cfg.OptGroup, Sequence[Any]]]:
    """List every option for the generator of the sample file."""
    return [(GROUP, copy.deepcopy(OPTS))]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option of the driver on a configuration."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


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
    if bind_address in {'0.0.0.0', '::', '*'}:  # noqa: S104
        return socket.gethostname()
    return bind_address
