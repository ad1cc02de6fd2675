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
Period of the budgets of accounts, by the UTC calendar. When a period ends,
each account has its full budget again, and unused budget is lost. Set it to
the period for which you give budgets. All processes of the service must have
the same period.
""",
    ),
    cfg.Opt(
        'budget_weights',
        type=types.Dict(types.Float()),
        default={'VCPU': 1.0},
        advanced=True,
        help="""
Budget units that one unit of a resource class of Placement costs per hour,
such as ``VCPU:1,MEMORY_MB:0.00025``, by name, at least 0. Classes that are not
named cost nothing. By default budgets are numbers of VCPU-hours. Set it if
memory or other devices should cost something, too.
""",
    ),
    cfg.FloatOpt(
        'lowest_rate',
        default=1.0,
        min=0.001,
        max=1000000.0,
        advanced=True,
        help="""
Spending rate of servers that are in no group with a rate, and of servers whose
account has no funds left: currency for a CPU-hour, from 0.001 to 1000000. No
server has a lower rate. Raise it if users who spend little get too little CPU
beside others. All processes of the service must have the same value.
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
Actions on a server that reached its time limit, or was idle for
``idle_after``. They are done one after the other until Placement shows that
the room of the server is free: ``stop``, ``suspend``, ``shelve``,
``snapshot_delete``, ``delete``. Stopping and suspending free no room; shelving
fails for some images. Use ``shelve,delete`` if the room must become free, even
if work is lost, and ``stop`` if servers are to keep their room. Other servers
are not affected.
""",
    ),
    cfg.FloatOpt(
        'end_notice',
        default=600.0,
        min=120.0,
        advanced=True,
        help="""
Seconds between the notice to the owner of a server and the first action on it:
at its time limit, a preemption or a similar end. The notice is metadata of the
server and a notification. At least 120: Nova caches metadata for 15 s, and
guests poll it. Raise it if users need longer to save their work.
""",
    ),
    cfg.FloatOpt(
        'end_patience',
        default=300.0,
        min=10.0,
        advanced=True,
        help="""
Seconds that each action of ``end_actions`` may take until the room is free; at
least 10. After that the next action is done. Raise it if shelving takes
longer, because an image is uploaded.
""",
    ),
    cfg.FloatOpt(
        'idle_after',
        default=0.0,
        min=0.0,
        advanced=True,
        help="""
Seconds for which a server must be idle before its owner gets a notice that it
leaves, such as 604800 for a week; 0: idle servers stay. Agents measure which
servers are idle (``[fairness] idle_cpus``, ``idle_rate``); the service asks
them through ``transport_url``. Owners over their shares get the notice up to
four times sooner. The first action of ``end_actions`` follows after a seventh
of this time, and at least ``end_notice``. A server that is used meanwhile
stays. Preemptible servers stay, because they make room anyway. Set it if users
forget servers.
""",
    ),
    cfg.ListOpt(
        'idle_spared_projects',
        default=[],
        advanced=True,
        help="""
IDs of projects whose idle servers stay, separated by commas. Set it for
servers that must run although they seldom have work.
""",
    ),
    cfg.FloatOpt(
        'longest_extension',
        default=0.0,
        min=0.0,
        advanced=True,
        help="""
Seconds by which users may extend the time limit of a request, in total; 0:
users cannot extend it. Set it if users may decide themselves that their work
takes longer.
""",
    ),
]
