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
        'max_peers',
        default=2_000,
        min=1,
        max=100_000,
        advanced=True,
        help="""
Largest number of nodes that are remembered. It bounds the memory if a peer
invents nodes, and the number of users in the newest reports of all nodes
together: 500 for each, where a user on ten nodes counts ten times, at about
300 bytes each. Raise it for a domain with more nodes, or if the log says that
there is no room for a report.
""",
    ),
    cfg.StrOpt(
        'peer_capacity_file',
        default='',
        advanced=True,
        help="""
JSON file with the largest capacity that is believed of nodes, by host name or
pattern: ``{"gpu-*": {"memory": 4e12}, "*": {"cpu_time": 200000, "memory":
5e11}}``. A node that claims more is left out whole. The unit of ``cpu_time``
is weighted seconds per second (CPUs times speed factor), of disk and network
bytes per second, of memory bytes; all are above 0. The first pattern that
matches counts; resources that it does not name have a bound above any machine
built so far. ``*``, ``?`` and ``[...]`` match as in a shell, and case matters.
The agent reads it when it starts. Empty: no file. Use it where nodes are not
trusted: one that claims too much makes everybody's quota grow.
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
]
