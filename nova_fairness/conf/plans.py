# SPDX-License-Identifier: Apache-2.0

"""Options of plans of moves: ``[fairness_plans]``."""

from oslo_config import cfg
from oslo_config import types

from nova_fairness.model import plans

GROUP = cfg.OptGroup(
    'fairness_plans',
    title='Plans of moves',
    help="""
How the cluster service moves servers between hosts while they run, so that
hosts become empty, no host is much fuller than others, or a request finds
room. Nothing is planned unless ``mode`` says so.
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
            ('auto', 'plans begin by themselves'),
        ],
        help="""
Mode of the service: how much it does by itself. Set it to ``recommend`` first,
and see what it would do. All processes of the service must have the same.
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
Goals of migration plans, the one that matters most first: ``consolidate``
(hosts become empty), ``repack`` (all servers are packed from scratch for that,
now and then), ``balance`` (no host is much fuller than others), ``rescue`` (a
request that fits on no host finds room), ``help`` (the owner with the smallest
part of its entitlement to CPUs gets more; agents are asked, which needs
``transport_url``), ``market`` (a rate buys the same on every host).
``consolidate`` and ``repack`` go with none of ``balance``, ``help`` and
``market``, and ``market`` with neither ``balance`` nor ``help``. Operators can
empty a host whatever goals are set. Set it to what the cloud is run for.
""",
    ),
    cfg.FloatOpt(
        'hold',
        default=300.0,
        min=0.0,
        advanced=True,
        help="""
Seconds for which moves must have been worth it before they are proposed, and a
host empty before it is disabled. Raise it if plans follow what lasts only a
short time, or hosts come back too often.
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
Seconds for which a server that was moved, or that could not be, is not moved
again, by default 21600 (6 hours). An operator who has a host emptied moves it
nevertheless. Raise it if servers go to and fro.
""",
    ),
    cfg.FloatOpt(
        'seen_for',
        default=600.0,
        min=0.0,
        advanced=True,
        help="""
Seconds for which the agent of its host must have seen a server before it moves
for ``help``, by default 600. Raise it if owners are helped who lack something
for a short while only.
""",
    ),
    cfg.IntOpt(
        'least_emptied',
        default=1,
        min=1,
        advanced=True,
        help="""
Smallest number of hosts that a plan must empty; at least 1. It counts for
``consolidate`` and ``repack``. Raise it if plans are not worth their moves.
""",
    ),
    cfg.FloatOpt(
        'spread',
        default=0.2,
        min=0.0,
        max=1.0,
        advanced=True,
        help="""
Part of a host, 0 to 1 (no unit), by which it must use more than all do on
average to give servers to others. It counts for ``balance`` alone. Raise it if
too much moves.
""",
    ),
    cfg.FloatOpt(
        'margin',
        default=0.05,
        min=0.0,
        max=1.0,
        advanced=True,
        help="""
Part, 0 to 1 (no unit), by which a plan must make something better at least:
of a host by which hosts are more even (``balance``), of what is due by which
an owner gets more (``help``), of the mean price by which it falls
(``market``). Raise it if plans are not worth their moves.
""",
    ),
    cfg.FloatOpt(
        'repack_every',
        default=604800.0,
        min=0.0,
        advanced=True,
        help="""
Seconds from one plan that packs all servers from scratch to the next, by
default 604800 (a week). It counts for ``repack`` alone, which may move nearly
every server. Raise it if that is too much.
""",
    ),
    cfg.IntOpt(
        'dearest',
        default=0,
        min=0,
        advanced=True,
        help="""
Largest number of MB of memory that are sent to empty one host, or for one
request; 0: any. Set it if live migrations load the network too much.
""",
    ),
    cfg.IntOpt(
        'packed_anew',
        default=0,
        min=0,
        advanced=True,
        help="""
Largest number of hosts that are packed from scratch for a request that finds
no room by fewer moves; 0: none. It counts for ``rescue`` alone. Raise it if
requests wait though all hosts together have room, and many servers may move
for one.
""",
    ),
    cfg.IntOpt(
        'at_once',
        default=4,
        min=1,
        advanced=True,
        help="""
Largest number of live migrations in the whole cloud, including those of
others; at least 1. Raise it if the network can carry more.
""",
    ),
    cfg.IntOpt(
        'at_once_per_host',
        default=1,
        min=1,
        advanced=True,
        help="""
Largest number of live migrations that go to or leave one host; at least 1.
Nova's own ``max_concurrent_live_migrations`` counts, too. Raise it if hosts
have the network for it.
""",
    ),
    cfg.FloatOpt(
        'longest_move',
        default=0.0,
        min=0.0,
        advanced=True,
        help="""
Seconds after which a live migration of a plan is ended, and its server stays
where it was; 0: it is left to Nova. Set it if servers write their memory
faster than it is sent, and Nova does not see to that.
""",
    ),
    cfg.IntOpt(
        'spare',
        default=1,
        min=0,
        advanced=True,
        help="""
Number of empty hosts that stay ready for what comes; the largest ones. Raise
it if requests wait for hosts that come back.
""",
    ),
    cfg.BoolOpt(
        'disable_empty',
        default=False,
        advanced=True,
        help="""
Whether empty hosts beyond ``spare`` are disabled in Nova. They are enabled
again when a request lacks room, or fewer than ``spare`` are left. Set it if
hosts without servers are to use less power.
""",
    ),
    cfg.ListOpt(
        'power_command',
        default=[],
        advanced=True,
        help="""
Program and arguments, with commas between them, that power a host down or up,
such as ``/usr/local/bin/host-power,--quiet``. ``down`` or ``up`` and the name
of the host are added; no shell runs it. It is killed after 60 seconds; it need
not wait for the host. Empty: hosts stay powered. Set it together with
``disable_empty``.
""",
    ),
]
