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
Rule that chooses among the hosts with enough room for a request. Set it to
``best_fit`` or ``cosine`` if hosts run out of one resource class while other
classes stay unused, and to ``emptiest`` if spread servers matter more than
large free rooms for large requests.
""",
    ),
    cfg.BoolOpt(
        'placement_binds',
        default=False,
        advanced=True,
        help="""
Whether servers start exactly on the hosts that ``placement`` chose. If not,
Nova chooses among hosts that are not reserved for other requests, and tries
another host if a build fails. Set it to pack servers exactly as ``placement``
says; a build that fails then ends in ERROR.
""",
    ),
    cfg.BoolOpt(
        'pinned_fallback',
        default=True,
        advanced=True,
        help="""
Whether servers with ``hw:cpu_policy = dedicated`` may have shared CPUs
(``VCPU``) on hosts without dedicated CPUs (``PCPU``), as Nova's scheduler
allows. Set it to ``false`` if and only if ``nova.conf`` of the scheduler has
``[workarounds] disable_fallback_pcpu_query = true``.
""",
    ),
    cfg.StrOpt(
        'room_victims',
        default='least',
        advanced=True,
        help="""
Name of the plugin that chooses victims. ``least`` first takes servers of the
account that is furthest over its share, then the least lost work, then the
fewest servers. Set it to ``youngest`` if lost work matters more than shares.
The other plugins are for comparison.
""",
    ),
    cfg.FloatOpt(
        'room_patience',
        default=60.0,
        min=0.0,
        advanced=True,
        help="""
Seconds that a request must wait before it may preempt. Raise it if servers
often end by themselves in that time.
""",
    ),
    cfg.FloatOpt(
        'room_least_run',
        default=600.0,
        min=0.0,
        advanced=True,
        help="""
Seconds that a preemptible server runs before it can become a victim. Raise it
if short jobs are lost too often.
""",
    ),
    cfg.IntOpt(
        'room_per_hour',
        default=0,
        min=0,
        advanced=True,
        help="""
Largest number of preemptible servers that are evicted in an hour for requests
that find no room; 0: no preemption, requests wait until servers end. Set it
once users know that their preemptible servers can be evicted: first to a small
number, so that users get used to it, otherwise to 1000. A request that needs
more victims waits until there was no preemption for an hour. Then all its
victims leave at once, and the next preemption waits for as many hours as the
limit would have needed for them.
""",
    ),
    cfg.FloatOpt(
        'room_in_vain',
        default=300.0,
        min=0.0,
        max=86400.0,
        advanced=True,
        help="""
Seconds for which requests of a project may not preempt after room was made in
vain: servers left for its request, but the request was cancelled, expired or
failed, or its servers ended within this time after the notice. The delay
doubles with each such request in a day, up to a day. A request that an
operator cancels causes no delay. 0: no delay. Raise it if users often do not
use the room that others leave; lower it if short servers are usual.
""",
    ),
    cfg.FloatOpt(
        'room_margin',
        default=2.0,
        min=0.0,
        advanced=True,
        help="""
Factor by which the account of a victim must be further over its share than the
account of a preemptible request that needs the room. No unit. At 1 any
difference counts, and more work is lost; 0: preemptible servers leave for
normal requests only. Raise it if too many servers are evicted.
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
(an image for the owner, then deletion), ``delete``. Stopping and suspending
free no room; shelving fails for some images. Shelved servers start again by
themselves. Use ``shelve,delete`` if the room must become free, even if work is
lost. ``end_notice`` and ``end_patience`` are the notice and the patience.
""",
    ),
    cfg.ListOpt(
        'room_owner_actions',
        default=[],
        advanced=True,
        item_type=types.String(choices=ACTIONS, ignore_case=False),
        help="""
Actions that owners may choose for their preemptible servers, by the metadata
``fairness:preemption_action`` of a server. The metadata is read when the
request comes. The action of the owner is done first; then ``room_actions``
follow until the room is free. Empty: owners have no choice. Set it if some
users prefer a deleted server to a wait for its image, or an image to a server
that comes back.
""",
    ),
    cfg.IntOpt(
        'room_at_risk',
        default=20,
        min=0,
        max=10000,
        advanced=True,
        help="""
Largest number of preemptible servers with an at-risk notice: while requests
wait for room, the next victims among servers of owners over their shares. The
metadata ``fairness:at_risk`` and a notification say when the risk begins; a
second notification says when it is over. 0: only victims get a notice. Raise
it if servers need more time than a notice to save their work. Each at-risk
notice costs a call of Nova.
""",
    ),
    cfg.FloatOpt(
        'room_kept_free',
        default=0.0,
        min=0.0,
        max=1.0,
        advanced=True,
        help="""
Part of each resource class of the cloud (no unit) that preemptible requests
leave free when they start. Normal requests start in this room at once, without
a preemption. 0: none. Set it to the usual size of requests that come together,
such as 0.05, if normal requests should not wait or less work should be lost.
This part of the cloud is then often idle.
""",
    ),
    cfg.FloatOpt(
        'room_freed',
        default=0.0,
        min=0.0,
        max=1.0,
        advanced=True,
        help="""
Part of the cloud (no unit) that must stay free: if less is free, preemptible
servers are evicted until this part is free again, before a request needs it.
At most ``room_kept_free``. 0: servers are evicted for requests only. Set it if
new requests must not wait and need more room than servers free that end by
themselves.
""",
    ),
    cfg.BoolOpt(
        'room_retire',
        default=False,
        advanced=True,
        help="""
Whether preemptible servers that finished their work are evicted at once while
requests wait for room. This holds for servers of owners over their shares that
shut down, or have the metadata ``fairness:done`` while they are at risk.
``room_actions`` are done to them without a notice, and they do not start again
by themselves. Set it if each server is made for one job.
""",
    ),
]
