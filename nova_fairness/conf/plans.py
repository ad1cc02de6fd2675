# SPDX-License-Identifier: Apache-2.0

"""Options of migration plans: ``[fairness_plans]``."""

from oslo_config import cfg
from oslo_config import types

from nova_fairness.model import plans

GROUP = cfg.OptGroup(
    'fairness_plans',
    title='Migration plans',
    help="""
Live migrations by the cluster service: to empty hosts, to balance hosts, or to
free room for a request. Nothing is planned unless ``mode`` is set.
""",
)

OPTS = [
    cfg.StrOpt(
        'mode',
        default='off',
        advanced=True,
        choices=[
            ('off', 'nothing is planned'),
            ('recommend', 'plans are shown; approval is disabled'),
            ('approve', 'plans begin when an operator approves them'),
            ('auto', 'plans begin without approval'),
        ],
        help="""
Mode of migration plans: whether the service plans migrations, and whether an
operator must approve them. Set it to ``recommend`` first, and examine the
plans. All processes of the service must have the same mode.
""",
    ),
    cfg.ListOpt(
        'goals',
        default=['rescue'],
        advanced=True,
        item_type=types.String(
            choices=[each.value for each in plans.CHOICES],
            ignore_case=False,
        ),
        help="""
Goals of migration plans, the most important goal first: ``consolidate`` (hosts
become empty), ``repack`` (from time to time, all servers are distributed again
so that hosts become empty), ``balance`` (no host is much fuller than others),
``rescue`` (moves free room for a request that fits on no host), ``help`` (more
CPU time for the owner who gets the smallest part of the entitled CPU time;
agents measure it, which needs ``transport_url``), ``market`` (a spending rate
buys the same amount on every host). ``consolidate`` and ``repack`` cannot be
combined with ``balance``, ``help`` or ``market``, nor ``market`` with
``balance`` or ``help``. Operators can empty a host with any goals. Set it to
the goals of your cloud.
""",
    ),
    cfg.FloatOpt(
        'hold',
        default=300.0,
        min=0.0,
        advanced=True,
        help="""
Seconds for which planned moves must remain useful before they are proposed,
and for which a host must stay empty before it is disabled. Raise it if plans
react to short changes, or hosts are enabled again too often.
""",
    ),
    cfg.FloatOpt(
        'expiry',
        default=21600.0,
        min=60.0,
        advanced=True,
        help="""
Seconds after which a plan that has not ended expires; at least 60, by default
21600 (6 hours). Moves that have begun are completed. Raise it if operators
approve plans on another day.
""",
    ),
    cfg.FloatOpt(
        'rest',
        default=21600.0,
        min=0.0,
        advanced=True,
        help="""
Seconds after a move or a failed move of a server in which the server is not
moved again; by default 21600 (6 hours). An operator's plan to empty a host is
not bound by it. Raise it if servers move back and forth.
""",
    ),
    cfg.FloatOpt(
        'seen_for',
        default=600.0,
        min=0.0,
        advanced=True,
        help="""
Seconds for which an agent must have measured a server before the goal ``help``
may move it, by default 600. Raise it if servers are moved because of short
shortages.
""",
    ),
    cfg.IntOpt(
        'least_emptied',
        default=1,
        min=1,
        advanced=True,
        help="""
Smallest number of hosts that a plan must empty; at least 1. It applies to
``consolidate`` and ``repack``. Raise it if plans empty too few hosts in
comparison with their number of moves.
""",
    ),
    cfg.FloatOpt(
        'spread',
        default=0.2,
        min=0.0,
        max=1.0,
        advanced=True,
        help="""
Difference between the use of a host and the average use of all hosts from
which servers are moved away, as a part of a host, 0 to 1 (no unit). It applies
to ``balance`` only. Raise it if too many servers move.
""",
    ),
    cfg.FloatOpt(
        'margin',
        default=0.05,
        min=0.0,
        max=1.0,
        advanced=True,
        help="""
Smallest improvement that a plan must bring, 0 to 1 (no unit). For ``balance``
it is the smaller difference between hosts, as a part of a host; for ``help``
the gain of an owner, as a part of the entitled CPU time; for ``market`` the
fall of the mean price, as a part of it. Raise it if plans bring too little in
comparison with their number of moves.
""",
    ),
    cfg.FloatOpt(
        'repack_every',
        default=604800.0,
        min=0.0,
        advanced=True,
        help="""
Seconds from one plan of ``repack`` to the next, by default 604800 (a week).
Such a plan distributes all servers again and may move nearly every server.
Raise it if servers move too often.
""",
    ),
    cfg.IntOpt(
        'dearest',
        default=0,
        min=0,
        advanced=True,
        help="""
Largest number of MB of memory that live migrations may send to empty one host,
or to free room for one request; 0: no limit. Set it if live migrations load
the network too much.
""",
    ),
    cfg.IntOpt(
        'packed_anew',
        default=0,
        min=0,
        advanced=True,
        help="""
Largest number of hosts whose servers are distributed again for a request, if a
few moves do not free enough room for it; 0: none. It applies to ``rescue``
only. Raise it if requests wait although all hosts together have enough room,
and many servers may move for one request.
""",
    ),
    cfg.IntOpt(
        'at_once',
        default=4,
        min=1,
        advanced=True,
        help="""
Largest number of live migrations in the whole cloud at the same time,
including migrations by others; at least 1. Raise it if the network can carry
more.
""",
    ),
    cfg.IntOpt(
        'at_once_per_host',
        default=1,
        min=1,
        advanced=True,
        help="""
Largest number of live migrations to and from one host at the same time; at
least 1. Nova's own ``max_concurrent_live_migrations`` applies, too. Raise it
if the network of the hosts is fast enough.
""",
    ),
    cfg.IntOpt(
        'spare',
        default=1,
        min=0,
        advanced=True,
        help="""
Number of empty hosts that stay enabled for new requests; the largest hosts are
chosen. Raise it if requests wait for hosts to be enabled again.
""",
    ),
    cfg.BoolOpt(
        'disable_empty',
        default=False,
        advanced=True,
        help="""
Whether empty hosts beyond ``spare`` are disabled in Nova. They are enabled
again when a request finds no room, or fewer than ``spare`` empty hosts are
enabled. Set it if hosts without servers should use less power.
""",
    ),
    cfg.ListOpt(
        'power_command',
        default=[],
        advanced=True,
        help="""
Program that powers a host down or up, and its arguments, separated by commas,
such as ``/usr/local/bin/host-power,--quiet``. The service appends ``down`` or
``up`` and the name of the host, and uses no shell. The program is killed after
60 seconds; it need not wait for the host. Empty: hosts stay powered. Set it
together with ``disable_empty``.
""",
    ),
]
