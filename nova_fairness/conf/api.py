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
    help='How nova-api asks the agents. Write these options into nova.conf.',
)

OPTS = [
    cfg.FloatOpt(
        'rpc_timeout',
        default=5.0,
        min=0.1,
        max=60.0,
        advanced=True,
        help="""
Seconds in which an agent must answer. An agent that does not answer in time
counts as not reached. Up to 64 agents are asked at once. Raise it for slow
hosts, but keep it below the timeout of the proxy in front of nova-api.
""",
    ),
    cfg.FloatOpt(
        'answers_kept',
        default=1.0,
        min=0.0,
        max=60.0,
        advanced=True,
        help="""
Seconds for which a process of nova-api reuses the agents' answers about hosts,
users and projects. This limits how often users can make nova-api ask all
agents. 0: each request asks the agents. Raise it if many users ask. Values up
to ``[fairness] interval`` make no difference that users see.
""",
    ),
    cfg.IntOpt(
        'max_broker_hosts',
        default=50,
        min=1,
        max=1000,
        advanced=True,
        help="""
Largest number of hosts in a domain that is reached through a broker
(``rabbit://``). Requests to a larger domain are refused, because the broker is
Nova's own and has other work. Raise it if your broker can carry more messages.
``zmq+redis://`` is better: its messages go from host to host.
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
How nova-api reaches the agents. Set it to their ``transport_url``, such as
``zmq+redis://:password@controller:6379/0``. Empty: Nova's own ``[DEFAULT]
transport_url``. If the agents have keys, the key of this host needs the role
``controller``.
""",
    ),
]

_GROUPS = (
    (GROUP, OPTS),
    (TRANSPORT_GROUP, TRANSPORT_OPTS),
    (exchange.GROUP, [opt for opt in exchange.OPTS if opt.name == 'domain']),
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register what nova-api needs, on Nova's configuration."""
    for group, options in _GROUPS:
        opts.register_group(conf, group, options)
    transport.register_watchers(conf)


def list_opts() -> Sequence[tuple[cfg.OptGroup, Sequence[cfg.Opt]]]:
    """List every option for the generator of the sample file."""
    return copy.deepcopy(_GROUPS)
