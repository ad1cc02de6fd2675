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
    help='How nova-api asks the agents. These options stand in nova.conf.',
)

OPTS = [
    cfg.FloatOpt(
        'rpc_timeout',
        default=5.0,
        min=0.1,
        max=60.0,
        help="""
Seconds in which an agent must answer; after that it counts as not reached.
All agents are asked at once, up to ``parallel_calls``. Keep it below the
patience of whoever stands before nova-api.
""",
    ),
    cfg.IntOpt(
        'parallel_calls',
        default=64,
        min=1,
        max=1024,
        help="""
Most agents that one request asks at a time. Where there are more, a list takes
``rpc_timeout`` for each such group in the worst case; raise it for a domain of
hundreds of hosts.
""",
    ),
    cfg.IntOpt(
        'max_limit',
        default=1000,
        min=1,
        max=100_000,
        help='Most items of one page of a list, whatever ``limit`` says.',
    ),
    cfg.FloatOpt(
        'answers_kept',
        default=1.0,
        min=0.0,
        max=60.0,
        help="""
Seconds for which a process of nova-api uses again what the agents said about
hosts, users and projects. It bounds how often users can make it ask all
agents. Agents measure every ``[fairness] interval`` seconds, so less than that
shows no older numbers. 0: ask for every request.
""",
    ),
    cfg.FloatOpt(
        'silence_kept',
        default=10.0,
        min=0.0,
        max=600.0,
        help="""
Seconds for which lists do without a host that did not answer, and say that it
does not, instead of waiting ``rpc_timeout`` for it again. Actions, and whoever
wants to see that host alone, are not kept from it. 0: wait each time.
""",
    ),
    cfg.IntOpt(
        'max_broker_hosts',
        default=50,
        min=1,
        max=1000,
        help="""
Hosts of a domain that may be asked through a broker (``rabbit://``), which is
Nova's own and has its own work. A larger domain is refused: give it
``zmq+redis://``, from host to host.
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
How nova-api reaches the agents: their ``transport_url``, such as
``zmq+redis://:password@controller:6379/0``. Empty: Nova's own
``[DEFAULT] transport_url``. With keys, the key of this host needs the role
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
    transport.register_what_watches(conf)


def list_opts() -> Sequence[tuple[cfg.OptGroup, Sequence[cfg.Opt]]]:
    """List every option for the generator of the sample file."""
    return copy.deepcopy(_GROUPS)
