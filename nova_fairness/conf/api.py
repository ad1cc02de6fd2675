# SPDX-License-Identifier: Apache-2.0

"""Options of the HTTP interface, read by nova-api: ``[fairness_api]``."""

from collections.abc import Sequence
import copy

from oslo_config import cfg

from nova_fairness.conf import exchange
from nova_fairness.conf import opts
from nova_fairness.conf import transport

GROUP = cfg.OptGroup(
    'fairness_api',
    title='The HTTP interface',
    help='Communication of nova-api with the agents. Write these options into'
    ' nova.conf.',
)

OPTS = [
    cfg.FloatOpt(
        'rpc_timeout',
        default=5.0,
        min=0.1,
        max=60.0,
        advanced=True,
        help="""
Seconds in which an agent must answer a request of nova-api. An agent that
answers later counts as unreachable. nova-api sends requests to up to 64 agents
at once. Raise it for slow hosts, but keep it below the timeout of the proxy in
front of nova-api.
""",
    ),
    cfg.FloatOpt(
        'answers_kept',
        default=1.0,
        min=0.0,
        max=60.0,
        advanced=True,
        help="""
Seconds for which a process of nova-api caches the agents' answers about hosts,
users and projects. The cache limits how often users can cause requests to all
agents. 0: no cache. Raise it if many users read these pages of the API. Agents
measure once per ``[fairness] interval``, so up to that value users see no
difference.
""",
    ),
    cfg.IntOpt(
        'max_broker_hosts',
        default=50,
        min=1,
        max=1000,
        advanced=True,
        help="""
Largest number of hosts in a fairness domain whose agents are reached through a
broker (``rabbit://``). API requests to the agents of a larger domain are
refused, because their messages would overload the broker of Nova. Raise it if
your broker can carry more messages. ``zmq+redis://`` needs no broker: its
messages go from host to host.
""",
    ),
]

TRANSPORT_GROUP = cfg.OptGroup('fairness', title='Fair sharing')

TRANSPORT_OPTS = [
    cfg.StrOpt(
        'transport_url',
        default='',
        secret=True,
        help="""
URL by which nova-api reaches the agents. Set it to the ``transport_url`` of
the agents, such as ``zmq+redis://:password@controller:6379/0``. Empty: Nova's
own ``[DEFAULT] transport_url``. If the agents use keys, the key of this host
needs the role ``controller``.
""",
    ),
]

_GROUPS = (
    (GROUP, OPTS),
    (TRANSPORT_GROUP, TRANSPORT_OPTS),
    (exchange.GROUP, [opt for opt in exchange.OPTS if opt.name == 'domain']),
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of nova-api on Nova's configuration."""
    for group, options in _GROUPS:
        opts.register_group(conf, group, options)
    transport.register_watchers(conf)


def list_opts() -> Sequence[tuple[cfg.OptGroup, Sequence[cfg.Opt]]]:
    """List every option for the generator of the sample file."""
    return copy.deepcopy(_GROUPS)
