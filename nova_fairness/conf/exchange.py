# SPDX-License-Identifier: Apache-2.0

"""Options of what nodes tell each other: ``[fairness_exchange]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_exchange',
    title='Exchange between nodes',
    help="""
How the agents of a cloud exchange their totals. The transport is the option
``transport_url`` of oslo.messaging.
""",
)

OPTS = [
    cfg.StrOpt(
        'domain',
        default='nova-fairness',
        regex=r'^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$',
        help="""
Name of the fairness domain. Nodes of one domain compare their users; nodes of
different domains never hear each other, also on one broker. Give each Nova
cell a name of its own. Letters, digits and ``._-``, 63 at most.
""",
    ),
    cfg.FloatOpt(
        'view_max_age',
        default=3.0,
        min=1.0,
        max=1000.0,
        help="""
Intervals (``[fairness] interval``) after which the last report of a silent
node does not count any more: its users and its capacity are left out. A
larger value rides out longer gaps, a smaller one notices a dead node sooner.
A node that measures less often is given its own interval, up to ten of ours.
""",
    ),
    cfg.IntOpt(
        'max_users',
        default=10_000,
        min=1,
        max=1_000_000,
        help="""
Users in one report; a report with more is refused whole. Lower it to what one
node can have at most, where nodes are not trusted.
""",
    ),
    cfg.IntOpt(
        'max_total_users',
        default=1_000_000,
        min=1,
        max=100_000_000,
        help="""
Users in the newest reports of all nodes together, a user on ten nodes counted
ten times. It bounds the memory, about 300 bytes each. Raise it if the log
says that there is no room for a report.
""",
    ),
    cfg.IntOpt(
        'max_peers',
        default=2_000,
        min=1,
        max=100_000,
        help="""
Nodes that are remembered. It bounds the memory if somebody invents nodes;
raise it for a domain with more.
""",
    ),
    cfg.DictOpt(
        'max_peer_capacity',
        default={},
        help="""
Largest capacity that is believed of a node, by resource, such as
``cpu_time:600000,memory:2e12``; a node that claims more is left out whole.
Weighted seconds per second for ``cpu_time`` (CPUs times speed factor), bytes
per second for disk and network, bytes for memory; above 0. Resources that are
not named have a bound above anything built so far. Set it a little above your
largest node: a node that claims too much makes everybody's quota grow.
""",
    ),
    cfg.StrOpt(
        'peer_capacity_file',
        default='',
        help="""
JSON file with the same for single nodes, by host name or pattern: ``{"gpu-*":
{"memory": 4e12}, "compute-?": {"cpu_time": 200000, "memory": 5e11}}``. The
first pattern that matches counts; resources that it does not name have the
bound of ``max_peer_capacity``. ``*``, ``?`` and ``[...]`` match as in a shell,
and case matters. Use it where nodes differ or are not trusted, so that each
can claim no more than it has. It is read when the agent starts. Empty: none.
""",
    ),
    cfg.FloatOpt(
        'max_peer_heaviness',
        default=1e6,
        min=1.0,
        help="""
Largest magnitude of a user's heaviness that is believed of one node, in
quotas; a report with more is refused whole. A user who alone uses a whole
cloud of N users has about N. Lower it where nodes are not trusted.
""",
    ),
    cfg.FloatOpt(
        'forget_peer_after',
        default=3600.0,
        min=60.0,
        max=604800.0,
        help="""
Seconds of silence after which a node is not listed as left out any more.
Raise it if nodes are often down for longer and should stay visible.
""",
    ),
    cfg.FloatOpt(
        'desired_state_poll',
        default=10.0,
        min=1.0,
        max=3600.0,
        help="""
Seconds between two looks at the metric and policy that are kept in Redis.
Changes arrive sooner by gossip; this bounds how long a lost one is missed.
""",
    ),
]
