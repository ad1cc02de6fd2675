# SPDX-License-Identifier: Apache-2.0

"""Options of the queue: what accounts may use, and when servers end."""

from oslo_config import cfg
from oslo_config import types

from nova_fairness.conf import cluster_room

OPTS = [
    cfg.StrOpt(
        'budget_period',
        default='month',
        advanced=True,
        choices=[
            ('day', 'at midnight'),
            ('week', 'on Monday'),
            ('month', 'on the first'),
        ],
        help="""
Period of budgets of accounts, by the calendar of UTC. At its end, each account
has its full budget again; unused budget is lost. Set it to the period for
which budgets are given. All processes of the service must have the same.
""",
    ),
    cfg.Opt(
        'budget_weights',
        type=types.Dict(types.Float()),
        default={'VCPU': 1.0},
        advanced=True,
        help="""
Units in budgets for one of each resource class of Placement, such as
``VCPU:1,MEMORY_MB:0.00025``, by name, at least 0; classes that are not named
do not count. A budget is a number of such units times hours, so by default of
VCPU-hours. Set it if memory or other devices cost something as well.
""",
    ),
    cfg.FloatOpt(
        'lowest_rate',
        default=1.0,
        min=0.001,
        max=1000000.0,
        advanced=True,
        help="""
Spending rate of servers that are in no group with a rate, and of those whose
account has no funds left: currency for a CPU-hour, from 0.001 to 1000000. No
server has less. Raise it if those who spend little get too little beside
others. All processes of the service must have the same value.
""",
    ),
    cfg.ListOpt(
        'end_actions',
        default=['shelve', 'stop'],
        advanced=True,
        item_type=types.String(
            choices=cluster_room.ACTIONS, ignore_case=False
        ),
        help="""
Actions on a server whose time limit is over, or that was idle for
``idle_after``, one after the other until Placement shows that its room is
free: ``stop``, ``suspend``, ``shelve``, ``snapshot_delete``, ``delete``.
Stopping and suspending free no room; shelving fails for some images. Use
``shelve,delete`` if the room must be free, even if work is lost, and ``stop``
if servers are to keep their room. Other servers are not affected.
""",
    ),
    cfg.FloatOpt(
        'end_notice',
        default=600.0,
        min=120.0,
        advanced=True,
        help="""
Seconds before that at which the owner is told, by metadata of the server and
by a notification; at least 120, since Nova keeps the metadata that guests read
for 15 s and guests poll it. Raise it if users need longer to save their work.
""",
    ),
    cfg.FloatOpt(
        'end_patience',
        default=300.0,
        min=10.0,
        advanced=True,
        help="""
Seconds that each of ``end_actions`` may take until the room is free; then the
next one is done. At least 10. Raise it if shelving takes longer: its image is
uploaded.
""",
    ),
    cfg.FloatOpt(
        'idle_after',
        default=0.0,
        min=0.0,
        advanced=True,
        help="""
Seconds for which a server must have done next to nothing before it is told
that it leaves, such as 604800 for a week; 0: none leaves for that. Agents see
who is idle (``[fairness] idle_cpus``, ``idle_rate``), and are asked by
``transport_url``. Owners over their shares are told up to four times sooner.
From then to the first of ``end_actions`` it is a seventh of this, and at least
``end_notice``; a server that is used meanwhile stays. Preemptible servers
stay: they make room as it is. Set it if users forget servers.
""",
    ),
    cfg.ListOpt(
        'idle_spared_projects',
        default=[],
        advanced=True,
        help="""
IDs of projects whose idle servers stay, separated by commas. Set it for
servers that must be there and seldom have work.
""",
    ),
    cfg.FloatOpt(
        'longest_extension',
        default=0.0,
        min=0.0,
        advanced=True,
        help="""
Seconds by which users may extend the time limit of a request, in all; 0: not
at all. Set it if users may decide themselves that their work takes longer.
""",
    ),
]
