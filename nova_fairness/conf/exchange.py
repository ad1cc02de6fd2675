# SPDX-License-Identifier: Apache-2.0

"""Options of the exchange of totals between nodes: ``[fairness_exchange]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_exchange',
    title='Exchange between nodes',
    help="""
Group of agents that exchange totals of users, and limits of the reports that
an agent accepts. ``[DEFAULT] transport_url`` connects the agents.
""",
)

OPTS = [
    cfg.StrOpt(
        'domain',
        default='nova-fairness',
        regex=r'^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$',
        help="""
Name of the fairness domain. Nodes of one domain compare their users; nodes of
different domains never exchange messages, even on one broker. Set a different
name for each Nova cell: at most 63 letters, digits and ``._-``.
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
node expires: the node's users and capacity no longer count. For a node with a
longer interval, that interval is used, up to ten times the interval of this
node. Raise it to tolerate longer gaps; lower it to notice a dead node sooner.
""",
    ),
    cfg.IntOpt(
        'max_peers',
        default=2_000,
        min=1,
        max=100_000,
        advanced=True,
        help="""
Largest number of nodes whose reports are stored. It limits memory if a peer
reports nodes that do not exist. It also limits the users in the newest reports
of all nodes together, to 500 times this number; a user on ten nodes counts ten
times, and each needs about 300 bytes. Raise it for a domain with more nodes,
or if the log reports that there is no room for a report.
""",
    ),
    cfg.StrOpt(
        'peer_capacity_file',
        default='',
        advanced=True,
        help="""
JSON file with the largest capacity that is accepted from a node, by host name
or pattern: ``{"gpu-*": {"memory": 4e12}, "*": {"cpu_time": 200000, "memory":
5e11}}``. All reports of a node with a larger capacity are ignored. The unit of
``cpu_time`` is weighted seconds per second (CPUs times speed factor), of disk
and network bytes per second, of memory bytes; all values are above 0. The
first pattern that matches applies. Other resources have a limit above any
machine built so far. ``*``, ``?`` and ``[...]`` match as in a shell, and case
matters. The agent reads the file when it starts. Empty: no file. Use it if
nodes are not trusted: a node that reports too much capacity raises the quotas
of all users.
""",
    ),
    cfg.FloatOpt(
        'max_peer_heaviness',
        default=1e6,
        min=1.0,
        advanced=True,
        help="""
Largest absolute heaviness of a user that is accepted in a report of a node, in
quotas; at least 1. A report with a larger value is ignored. A single user who
uses the whole cloud of N users has a heaviness of about N. Lower it if nodes
are not trusted.
""",
    ),
]
