# SPDX-License-Identifier: Apache-2.0

"""Options of what nodes tell each other: ``[fairness_exchange]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_exchange',
    title='Exchange between nodes',
    help="""
Which agents exchange totals, and what they believe of each other. How they
reach each other is ``[DEFAULT] transport_url``.
""",
)

OPTS = [
    cfg.StrOpt(
        'domain',
        default='nova-fairness',
        regex=r'^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$',
        help="""
Name of the fairness domain. Nodes of one domain compare their users; nodes of
different domains never hear each other, even on one broker. Set a name of its
own for each Nova cell: at most 63 letters, digits and ``._-``.
""",
    ),
    cfg.FloatOpt(
        'view_max_age',
        default=3.0,
        min=1.0,
        max=1000.0,
        advanced=True,
        help="""
Intervals (``[fairness] interval``) after which the last report of a silent
node no longer counts: its users and its capacity are left out. For a node with
a longer interval its own interval counts, up to ten of ours. Raise it to ride
out longer gaps; lower it to notice a dead node sooner.
""",
    ),
    cfg.IntOpt(
        'max_users',
        default=10_000,
        min=1,
        max=1_000_000,
        advanced=True,
        help="""
Largest number of users in one report; a report with more is refused whole.
Lower it to what one node can have at most, if nodes are not trusted.
""",
    ),
    cfg.IntOpt(
        'max_total_users',
        default=1_000_000,
        min=1,
        max=100_000_000,
        advanced=True,
        help="""
Largest number of users in the newest reports of all nodes together; a user on
ten nodes counts ten times. It bounds the memory, at about 300 bytes each.
Raise it if the log says that there is no room for a report.
""",
    ),
    cfg.IntOpt(
        'max_peers',
        default=2_000,
        min=1,
        max=100_000,
        advanced=True,
        help="""
Largest number of nodes that are remembered. It bounds the memory if a peer
invents nodes. Raise it for a domain with more.
""",
    ),
    cfg.DictOpt(
        'max_peer_capacity',
        default={},
        advanced=True,
        help="""
Largest capacity of a node that is believed, by resource, such as
``cpu_time:600000,memory:2e12``; a node that claims more is left out whole.
The unit of ``cpu_time`` is weighted seconds per second (CPUs times speed
factor), of disk and network bytes per second, of memory bytes; all are above
0. Resources that are not named have a bound above any machine built so far.
Set it a little above your largest node, if nodes are not trusted: a node that
claims too much makes everybody's quota grow.
""",
    ),
    cfg.StrOpt(
        'peer_capacity_file',
        default='',
        advanced=True,
        help="""
JSON file with the same for single nodes, by host name or pattern: ``{"gpu-*":
{"memory": 4e12}, "compute-?": {"cpu_time": 200000, "memory": 5e11}}``. The
first pattern that matches counts; resources that it does not name have the
bound of ``max_peer_capacity``. ``*``, ``?`` and ``[...]`` match as in a shell,
and case matters. The agent reads it when it starts. Empty: no file. Use it
where nodes differ and are not trusted, so that none can claim more than it
has.
""",
    ),
    cfg.FloatOpt(
        'max_peer_heaviness',
        default=1e6,
        min=1.0,
        advanced=True,
        help="""
Largest heaviness of a user on one node that is believed, without its sign, in
quotas; at least 1. A report with more is refused whole. A user who alone uses
a whole cloud of N users has about N. Lower it if nodes are not trusted.
""",
    ),
    cfg.FloatOpt(
        'forget_peer_after',
        default=3600.0,
        min=60.0,
        max=604800.0,
        advanced=True,
        help="""
Seconds of silence after which the status no longer lists a node as left out.
Raise it if nodes are often down for longer and should stay visible.
""",
    ),
    cfg.FloatOpt(
        'desired_state_poll',
        default=10.0,
        min=1.0,
        max=3600.0,
        advanced=True,
        help="""
Seconds between two looks into Redis at the metric and policy that were chosen
for the domain. Changes mostly arrive sooner, with the reports of other nodes;
this bounds how long a lost one is missed. Lower it if nodes follow too late.
""",
    ),
]
