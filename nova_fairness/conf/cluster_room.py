# SPDX-License-Identifier: Apache-2.0

"""Options of the queue: placement and preemption."""

from oslo_config import cfg
from oslo_config import types

ACTIONS = ['stop', 'suspend', 'shelve', 'snapshot_delete', 'delete']

OPTS = [
    cfg.StrOpt(
        'placement',
        default='fullest',
        advanced=True,
        choices=[
            ('fullest', 'the fullest host'),
            ('best_fit', 'least left over, by the sum of squares'),
            ('cosine', 'the fuller one, if what is left has its proportions'),
            ('dot_product', 'most left of what it asks for most'),
            ('emptiest', 'the emptiest host: servers are spread'),
            ('random', 'any'),
        ],
        help="""
On which of the hosts with room a request's room is kept. Set it to
``best_fit`` or ``cosine`` if hosts run out of one class while others are left,
to ``emptiest`` if servers should have more room to work rather than large
requests room to start.
""",
    ),
    cfg.BoolOpt(
        'placement_binds',
        default=False,
        advanced=True,
        help="""
Whether servers start exactly on the hosts that ``placement`` found. If not,
Nova chooses among hosts without a reservation for others, and tries another
one if a build fails. Set it to have servers packed as ``placement`` says; a
build that fails then ends in ERROR.
""",
    ),
    cfg.BoolOpt(
        'pinned_fallback',
        default=True,
        advanced=True,
        help="""
Whether servers with ``hw:cpu_policy = dedicated`` may have shared CPUs
(``VCPU``) of hosts that offer no dedicated ones (``PCPU``), as Nova's
scheduler asks for them. Set it to ``false`` exactly if ``nova.conf`` of the
scheduler has ``[workarounds] disable_fallback_pcpu_query = true``.
""",
    ),
    cfg.StrOpt(
        'room_victims',
        default='least',
        advanced=True,
        help="""
Name of the plugin that chooses victims. ``least``: servers of the account
furthest over its share first, then least work lost, then fewest servers. Set
it to ``youngest`` if lost work counts for more than shares; the others are for
comparison.
""",
    ),
    cfg.FloatOpt(
        'room_patience',
        default=60.0,
        min=0.0,
        advanced=True,
        help="""
Seconds a request must wait before it may preempt. Raise it if servers often
end by themselves in that time.
""",
    ),
    cfg.FloatOpt(
        'room_least_run',
        default=600.0,
        min=0.0,
        advanced=True,
        help="""
Seconds that a preemptible server runs before it may have to leave. Raise it if
work shorter than that is lost too often.
""",
    ),
    cfg.IntOpt(
        'room_per_hour',
        default=0,
        min=0,
        advanced=True,
        help="""
Largest number of preemptible servers that leave in an hour for requests that
find no room; 0: none, and such requests wait until servers end. Set it once
users know that their preemptible servers may have to leave: to a small number
if they are to get used to it, to 1000 otherwise. A request that needs more
victims waits until there was no preemption for an hour. Then all its victims
leave at once, and there is no further preemption for as many hours as this
limit would have taken.
""",
    ),
    cfg.FloatOpt(
        'room_in_vain',
        default=300.0,
        min=0.0,
        max=86400.0,
        advanced=True,
        help="""
Seconds. If servers left for a request, and it is withdrawn, expires, fails, or
its servers end within this time of the end of the notice, then for as long no
servers leave for requests of its project. The delay doubles with each such
request in a day, up to a day. Operators who cancel cause none. 0: no delay.
Raise it if users let others leave and do not use the room; lower it if short
servers are usual.
""",
    ),
    cfg.FloatOpt(
        'room_margin',
        default=2.0,
        min=0.0,
        advanced=True,
        help="""
How many times further over its share an account must be than another for which
its preemptible servers leave, if both have preemptible ones. No unit. At 1 any
difference counts, and more work is lost; 0: they leave for normal requests
alone. Raise it if too many leave.
""",
    ),
    cfg.ListOpt(
        'room_actions',
        default=['shelve'],
        advanced=True,
        item_type=types.String(choices=ACTIONS, ignore_case=False),
        help="""
Actions on a victim of preemption, one after the other until Placement shows
that its room is free: ``stop``, ``suspend``, ``shelve``, ``snapshot_delete``
(its owner gets an image of it before), ``delete``. Stopping and suspending
free no room; shelving fails for some images. Shelved servers start again by
themselves. Use ``shelve,delete`` if the room must be free, even if work is
lost. Notice and patience are those of ``end_notice`` and ``end_patience``.
""",
    ),
    cfg.ListOpt(
        'room_owner_actions',
        default=[],
        advanced=True,
        item_type=types.String(choices=ACTIONS, ignore_case=False),
        help="""
Which of these actions owners may choose themselves, by the metadata
``fairness:preemption_action`` of a server. It is read when the request comes,
and done first; then come those of ``room_actions``, until the room is free.
Empty: none. Set it if some users would rather lose a server than wait for its
image, or rather have an image than a server that comes back.
""",
    ),
    cfg.IntOpt(
        'room_at_risk',
        default=20,
        min=0,
        max=10000,
        advanced=True,
        help="""
Largest number of preemptible servers that are told that they are at risk:
while requests wait for room, those of owners over their shares that would make
room next. Metadata ``fairness:at_risk`` and a notification say so, and again
when it is no longer so. 0: none are told, and only who has to leave is. Raise
it if servers need more time than a notice to save their work; each is a call
of Nova.
""",
    ),
    cfg.FloatOpt(
        'room_kept_free',
        default=0.0,
        min=0.0,
        max=1.0,
        advanced=True,
        help="""
Part of the cloud, of each resource class and with no unit, that preemptible
requests leave free when they start. Normal requests use it at once, with no
notice to wait for, and fewer servers have to leave. 0: none. Set it to what
comes in at a time, such as 0.05, if normal requests should not wait, or less
work should be lost; so much of the cloud is idle for it.
""",
    ),
    cfg.FloatOpt(
        'room_freed',
        default=0.0,
        min=0.0,
        max=1.0,
        advanced=True,
        help="""
Part of the cloud, with no unit, below which preemptible servers leave, before
anybody asks, until so much is free again. At most ``room_kept_free``. 0: they
leave for requests alone. Set it if what comes in is larger than what servers
free that end by themselves, and must not wait.
""",
    ),
    cfg.BoolOpt(
        'room_retire',
        default=False,
        advanced=True,
        help="""
Whether preemptible servers that are done make room without being chosen: those
of owners over their shares, while requests wait for room, that shut down, or
say ``fairness:done`` while they are at risk. ``room_actions`` are done to them
at once, and they do not start again by themselves. Set it if servers are made
for one job each.
""",
    ),
]
