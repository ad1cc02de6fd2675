# SPDX-License-Identifier: Apache-2.0

"""Options of the queue: budgets of accounts, and the end of servers."""

from oslo_config import cfg
from oslo_config import types

from nova_fairness.conf import cluster_room

OPTS = [
    cfg.StrOpt(
        'budget_period',
        default='month',
        advanced=True,
        choices=[
            ('day', 'a new period begins at midnight'),
            ('week', 'a new period begins on Monday'),
            ('month', 'a new period begins on the first day of a month'),
        ],
        help="""
Period of the budgets of accounts, by the UTC calendar. At the start of each
period an account gets its full budget; unused budget of the last period is
lost. Set it to the period for which you grant budgets. All processes of the
service must have the same period.
""",
    ),
    cfg.Opt(
        'budget_weights',
        type=types.Dict(types.Float()),
        default={'VCPU': 1.0},
        advanced=True,
        help="""
Budget units that one unit of a resource class of Placement costs per hour,
such as ``VCPU:1,MEMORY_MB:0.00025``, by name, at least 0. Other classes cost
nothing. By default budgets are numbers of VCPU-hours. Set it if memory or
devices should cost something, too.
""",
    ),
    cfg.FloatOpt(
        'lowest_rate',
        default=1.0,
        min=0.001,
        max=1000000.0,
        advanced=True,
        help="""
Lowest spending rate of a server: currency for a CPU-hour, from 0.001 to
1000000. It applies to servers outside groups with a rate, and to servers whose
account has spent all its funds. Raise it if users who spend little get too
little CPU time in comparison with others. All processes of the service must
have the same value.
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
``idle_after``: ``stop``, ``suspend``, ``shelve``, ``snapshot_delete``,
``delete``. The service performs them one after the other until Placement shows
that the capacity of the server is free. Stopping and suspending free no
capacity; shelving fails for some images. Use ``shelve,delete`` if the capacity
must become free, even if work is lost, and ``stop`` if servers are to keep
their capacity.
""",
    ),
    cfg.FloatOpt(
        'end_notice',
        default=600.0,
        min=120.0,
        advanced=True,
        help="""
Seconds from the notice to the owner of a server to the first action on it, at
its time limit, a preemption or another eviction. The notice is metadata of the
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
Seconds that each action of ``end_actions`` may take until the capacity of the
server is free; at least 10. After that the next action begins. Raise it if
shelving takes longer because of the upload of an image.
""",
    ),
    cfg.FloatOpt(
        'idle_after',
        default=0.0,
        min=0.0,
        advanced=True,
        help="""
Seconds for which a server must be idle before its owner gets an eviction
notice, such as 604800 for a week; 0: idle servers are not evicted. Agents
measure which servers are idle (``[fairness] idle_cpus``, ``idle_rate``), and
the service queries them through ``transport_url``. Owners above their shares
get the notice up to four times sooner. The first action of ``end_actions``
follows after a seventh of this time, and at least ``end_notice``. A server
that becomes busy before the action is not evicted. Preemptible servers are
exempt, because they can be evicted anyway. Set it if users forget servers.
""",
    ),
    cfg.ListOpt(
        'idle_spared_projects',
        default=[],
        advanced=True,
        help="""
IDs of projects whose idle servers are not evicted, separated by commas. Set it
for servers that must run although they seldom have work.
""",
    ),
    cfg.FloatOpt(
        'longest_extension',
        default=0.0,
        min=0.0,
        advanced=True,
        help="""
Seconds by which users may extend the time limit of a request, in total; 0:
users cannot extend it. Set it if users may extend their work without an
operator.
""",
    ),
]
