# SPDX-License-Identifier: Apache-2.0

"""Options of the queue: where servers start, and who makes room for whom."""

from oslo_config import cfg
from oslo_config import types

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
Whether servers come to lie on the hosts that ``placement`` found. If not, Nova
chooses among hosts whose room is kept for nobody else, and goes on to another
if a build fails. Set it to have servers packed as ``placement`` says; a build
that fails then ends in ERROR.
""",
    ),
    cfg.BoolOpt(
        'make_room',
        default=False,
        advanced=True,
        help="""
Whether preemptible servers leave for requests that find no room. Off, such
requests wait until servers end. Set it once users know that their preemptible
servers may have to leave.
""",
    ),
    cfg.StrOpt(
        'room_victims',
        default='least',
        advanced=True,
        help="""
What chooses who leaves, the name of a plugin. ``least``: whoever is furthest
over their share first, then least work lost, then fewest servers. Set it to
``youngest`` if work that is lost counts for more than shares; the others are
there to compare with.
""",
    ),
    cfg.FloatOpt(
        'room_patience',
        default=60.0,
        min=0.0,
        advanced=True,
        help="""
Seconds that a request waits before others leave for it. Raise it if servers
often end by themselves in that time.
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
        default=1000,
        min=0,
        advanced=True,
        help="""
Largest number of servers that are told to leave in an hour. Lower it if users
are to get used to it.
""",
    ),
    cfg.FloatOpt(
        'room_step',
        default=3600.0,
        min=0.0,
        advanced=True,
        help="""
Seconds of lost work that being twice as far over the share outweighs, when it
is chosen who leaves. 0: lost work alone counts. Lower it if less work should
be lost, whoever did it.
""",
    ),
    cfg.BoolOpt(
        'room_by_shares',
        default=True,
        advanced=True,
        help="""
Whether preemptible servers leave for preemptible requests of those who are
further below their shares. Off, they leave for normal requests alone: set it
so if too many leave.
""",
    ),
    cfg.FloatOpt(
        'room_margin',
        default=2.0,
        min=1.0,
        advanced=True,
        help="""
How many times further over its share an account must be than another for which
its preemptible servers leave, if both have preemptible ones. No unit. At 1 any
difference counts, and more work is lost. Raise it if too many leave.
""",
    ),
    cfg.ListOpt(
        'room_actions',
        default=['shelve'],
        advanced=True,
        item_type=types.String(
            choices=['stop', 'suspend', 'shelve', 'delete'], ignore_case=False
        ),
        help="""
What is done to a server that makes room, one after the other until Placement
shows that its room is free: ``stop``, ``suspend``, ``shelve``, ``delete``.
Stopping and suspending free no room; shelving fails for some images. What was
shelved starts again by itself. Use ``shelve,delete`` if the room must be free,
whatever is lost. They are told and waited for as ``end_notice`` and
``end_patience`` say.
""",
    ),
]
