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
            ('best_fit', 'the host with the smallest squares of free room'),
            ('cosine', 'a full host whose free room has the same proportions'),
            (
                'dot_product',
                'most free room in the classes that it needs most',
            ),
            ('emptiest', 'the emptiest host: servers are spread'),
            ('random', 'a host chosen at random'),
        ],
        help="""
Rule that chooses among the hosts with enough room for a request. Set it to
``best_fit`` or ``cosine`` if hosts become full in one resource class while
other classes remain unused. Set it to ``emptiest`` if spread servers matter
more than large free rooms for large requests.
""",
    ),
    cfg.BoolOpt(
        'placement_binds',
        default=False,
        advanced=True,
        help="""
Whether servers start exactly on the hosts that ``placement`` chose. If not,
Nova chooses among hosts that are not reserved for other requests, and tries
another host if a build fails. Set it if servers must be packed exactly as
``placement`` decides; a build that fails then ends in ERROR.
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
Name of the plugin that chooses victims of preemption. ``least`` prefers
servers of the account that exceeds its share most, then the least lost work,
then the fewest servers. Set it to ``youngest`` if lost work matters more than
shares. The other plugins are for comparison.
""",
    ),
    cfg.FloatOpt(
        'room_patience',
        default=60.0,
        min=0.0,
        advanced=True,
        help="""
Seconds that a request must wait before it may preempt. Raise it if servers
often end without a preemption in that time.
""",
    ),
    cfg.FloatOpt(
        'room_least_run',
        default=600.0,
        min=0.0,
        advanced=True,
        help="""
Seconds that a preemptible server runs before it can become a victim of
preemption. Raise it if short jobs are lost too often.
""",
    ),
    cfg.IntOpt(
        'room_per_hour',
        default=0,
        min=0,
        advanced=True,
        help="""
Largest number of preemptible servers that are evicted per hour for requests
without room; 0: no preemption, requests wait until servers end. Set it after
users know that preemptible servers can be evicted: first to a small number,
later to 1000. A request with more victims waits until an hour passed without a
preemption. Then all its victims are evicted at once, and the next preemption
waits for as many hours as the limit would have needed for these victims.
""",
    ),
    cfg.FloatOpt(
        'room_in_vain',
        default=300.0,
        min=0.0,
        max=86400.0,
        advanced=True,
        help="""
Seconds for which a project may not preempt after it wasted a preemption. A
preemption is wasted if its request was cancelled, expired or failed after
servers were evicted, or if the servers of the request ended within this time
after the eviction notice. The delay doubles with each wasted preemption in a
day, up to a day. A request that an operator cancels causes no delay. 0: no
delay. Raise it if users often do not use the room of evicted servers; lower it
if short servers are usual.
""",
    ),
    cfg.FloatOpt(
        'room_margin',
        default=2.0,
        min=0.0,
        advanced=True,
        help="""
Factor for preemptions by preemptible requests, no unit: the account of a
victim must exceed its share by this factor more than the account of the
request does. At 1 any difference is enough, and more work is lost; 0:
preemptible requests never preempt. Raise it if too many servers are evicted.
""",
    ),
    cfg.ListOpt(
        'room_actions',
        default=['shelve'],
        advanced=True,
        item_type=types.String(choices=ACTIONS, ignore_case=False),
        help="""
Actions on a victim of preemption: ``stop``, ``suspend``, ``shelve``,
``snapshot_delete`` (an image for the owner, then deletion), ``delete``. The
service performs them one after the other until Placement shows that the room
of the victim is free. Stopping and suspending free no room; shelving fails for
some images. Shelved servers are started again automatically. Use
``shelve,delete`` if the room must become free, even if work is lost.
``end_notice`` and ``end_patience`` apply to these actions, too.
""",
    ),
    cfg.ListOpt(
        'room_owner_actions',
        default=[],
        advanced=True,
        item_type=types.String(choices=ACTIONS, ignore_case=False),
        help="""
Actions that owners may choose for the preemption of their servers, by the
metadata ``fairness:preemption_action`` of a server. The metadata is read when
the request arrives. The service performs the action of the owner first, then
``room_actions`` until the room is free. Empty: owners have no choice. Set it
if some users prefer a deleted server to a wait for its image, or an image to a
server that starts again.
""",
    ),
    cfg.IntOpt(
        'room_at_risk',
        default=20,
        min=0,
        max=10000,
        advanced=True,
        help="""
Largest number of preemptible servers with an at-risk notice. While requests
wait for room, the notice goes to the servers that would be evicted next, of
owners above their shares. The metadata ``fairness:at_risk`` and a notification
report when the risk begins; a second notification reports when it ends. 0:
only victims get a notice. Raise it if servers need more time than the eviction
notice to save their work. Each at-risk notice costs one API call to Nova.
""",
    ),
    cfg.FloatOpt(
        'room_kept_free',
        default=0.0,
        min=0.0,
        max=1.0,
        advanced=True,
        help="""
Part of each resource class of the cloud, from 0 to 1, that preemptible
requests may not use. No unit. Normal requests start in this room at once,
without a preemption. 0: none. Set it to the usual size of requests that arrive
together, such as 0.05, if normal requests should not wait or less work should
be lost. This part of the cloud is then often idle.
""",
    ),
    cfg.FloatOpt(
        'room_freed',
        default=0.0,
        min=0.0,
        max=1.0,
        advanced=True,
        help="""
Part of the cloud, from 0 to 1, that must stay free. No unit. If less is free,
preemptible servers are evicted until this part is free again, before a request
needs it. At most ``room_kept_free``. 0: servers are evicted only for requests.
Set it if new requests must not wait, and need more room than ending servers
free.
""",
    ),
    cfg.BoolOpt(
        'room_retire',
        default=False,
        advanced=True,
        help="""
Whether preemptible servers that finished their work are evicted at once while
requests wait for room (retirement). A server has finished if its owner is
above the share, and it shut down or has the metadata ``fairness:done`` while
it is at risk. The service performs ``room_actions`` without a notice, and does
not start the server again. Set it if each server is created for one job.
""",
    ),
]
