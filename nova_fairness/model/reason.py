# SPDX-License-Identifier: Apache-2.0

"""Why a request waits or ended, why a server leaves: a closed, ordered set."""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
import enum

from nova_fairness import exception


class Reason(enum.Enum):
    """Tokens in the order in which they are told.

    Where several are true, the first is told: what the user alone can change
    comes before what the project, and that before what only time can change.
    The tokens are an interface; a new one is put where it belongs, none is
    renamed.
    """

    NOT_PLANNED = 'not_planned'
    NO_HOST_MATCHES = 'no_host_matches'
    TOO_LARGE = 'too_large'
    GROUP_TOO_LARGE = 'group_too_large'
    OVER_CEILING = 'over_ceiling'
    OVER_ACCOUNT_CEILING = 'over_account_ceiling'
    OVER_BORROWING_LIMIT = 'over_borrowing_limit'
    BUDGET_SPENT = 'budget_spent'
    WINDOW_CLOSED = 'window_closed'
    OVER_SHARED_PART = 'over_shared_part'
    LEFT_TO_NOVA = 'left_to_nova'
    NOMINAL_IS_LENT = 'nominal_is_lent'
    SHARED_PART_TAKEN = 'shared_part_taken'
    NO_ROOM = 'no_room'
    GROUP_HAS_NO_ROOM = 'group_has_no_room'
    ROOM_IN_VAIN = 'room_in_vain'
    LEAVING_IS_LIMITED = 'leaving_is_limited'
    ROOM_IS_MADE = 'room_is_made'
    BEHIND_OTHERS = 'behind_others'
    BEYOND_DEPTH = 'beyond_depth'
    KEEPS_FREE = 'keeps_free'
    ROOM_KEPT = 'room_kept'
    ROOM_LOST = 'room_lost'
    SENT = 'sent'
    IN_DOUBT = 'in_doubt'
    STARTED = 'started'
    NO_VALID_HOST = 'no_valid_host'
    START_FAILED = 'start_failed'
    TOKEN_REFUSED = 'token_refused'  # noqa: S105 - says why, opens nothing
    UNREADABLE = 'unreadable'
    WAITED_TOO_LONG = 'waited_too_long'
    TAKEN_BACK = 'taken_back'
    CANCELLED_BY_OPERATOR = 'cancelled_by_operator'
    SERVER_DELETED = 'server_deleted'
    TIME_IS_UP = 'time_is_up'
    MAKES_ROOM = 'makes_room'
    AT_RISK = 'at_risk'
    RETIRES = 'retires'
    HOST_LEAVES = 'host_leaves'
    IDLE = 'idle'


_SENTENCES = {
    Reason.NOT_PLANNED: 'it was not looked at yet',
    Reason.NO_HOST_MATCHES: (
        'none of {hosts:g} hosts has the zone, aggregates and traits asked for'
    ),
    Reason.TOO_LARGE: (
        'a server needs {asked:g} {subject}, the host that comes closest'
        ' gives {most:g} when it is empty'
    ),
    Reason.GROUP_TOO_LARGE: (
        '{asked:g} servers are to start together {subject}, the hosts that'
        ' match take {most:g} when they are empty'
    ),
    Reason.OVER_CEILING: (
        'the project may have {ceiling:g} {subject} and has {used:g};'
        ' {asked:g} more are asked for'
    ),
    Reason.OVER_ACCOUNT_CEILING: (
        '{asked:g} {subject} are asked for, it has {used:g} and may have'
        ' {ceiling:g}'
    ),
    Reason.OVER_BORROWING_LIMIT: (
        'with it {asked:g} {subject} would be borrowed beyond what it owns,'
        ' {limit:g} may be'
    ),
    Reason.BUDGET_SPENT: (
        'it may use up to {asked:g} unit-hours, {left:g} of the budget of'
        ' {subject} are left'
    ),
    Reason.WINDOW_CLOSED: (
        'requests of {subject} start at certain times, next in {opens_h:g} h'
    ),
    Reason.OVER_SHARED_PART: (
        '{asked:g} {subject} beyond the guaranteed part are asked for, all'
        ' that projects share is {shared:g}'
    ),
    Reason.LEFT_TO_NOVA: 'no host has {subject}; Nova judges it',
    Reason.NOMINAL_IS_LENT: (
        '{asked:g} {subject} are asked for, which it owns and others use;'
        ' {free:g} are left, and it comes before those who borrow'
    ),
    Reason.SHARED_PART_TAKEN: (
        '{asked:g} {subject} beyond the guaranteed part are asked for,'
        ' {free:g} of the shared {shared:g} are left'
    ),
    Reason.NO_ROOM: (
        'a server needs {asked:g} {subject}, the host that comes closest has'
        ' {free:g} left'
    ),
    Reason.GROUP_HAS_NO_ROOM: (
        '{asked:g} servers start together, {fit:g} of them fit now'
    ),
    Reason.ROOM_IN_VAIN: (
        'servers left for requests of the project that did not use their room;'
        ' none leave for it for {again_h:g} h'
    ),
    Reason.LEAVING_IS_LIMITED: (
        '{servers:g} servers would leave for it, {left:g} more may now, and'
        ' {limit:g} in an hour'
    ),
    Reason.ROOM_IS_MADE: (
        'room is promised to it, {servers:g} servers leave for it'
    ),
    Reason.BEHIND_OTHERS: (
        'what is left is kept for the first of {before:g} requests before it'
    ),
    Reason.BEYOND_DEPTH: (
        '{before:g} requests are before it, and {depth:g} are tried at once'
    ),
    Reason.ROOM_KEPT: 'room is kept for it',
    Reason.ROOM_LOST: 'the room that was kept for it is gone',
    Reason.SENT: 'Nova builds it',
    Reason.IN_DOUBT: (
        'it was sent {since_s:.0f} s ago, and Nova shows nothing of it yet'
    ),
    Reason.STARTED: 'it runs',
    Reason.NO_VALID_HOST: 'Nova found no host for it',
    Reason.START_FAILED: 'Nova could not start it',
    Reason.TOKEN_REFUSED: 'Keystone no longer takes the token it came with',
    Reason.UNREADABLE: 'its message cannot be read',
    Reason.WAITED_TOO_LONG: 'it waited {waited_s:.0f} s, the longest it may',
    Reason.TAKEN_BACK: 'its user took it back',
    Reason.CANCELLED_BY_OPERATOR: 'an operator cancelled it',
    Reason.SERVER_DELETED: 'its server was deleted',
    Reason.TIME_IS_UP: 'it may run for {limit_s:.0f} s',
    Reason.MAKES_ROOM: (
        'it makes room for a request of project {subject}, and has run for'
        ' {ran_s:.0f} s'
    ),
    Reason.AT_RISK: (
        'its owner uses {times:.1f} times their share, and {waiting:g}'
        ' requests wait for room'
    ),
    Reason.RETIRES: (
        'it is done, its owner uses {times:.1f} times their share, and'
        ' {waiting:g} requests wait for room'
    ),
    Reason.KEEPS_FREE: (
        '{kept:.1f} % of all {subject} are to be free, {free:.1f} % are'
    ),
    Reason.HOST_LEAVES: 'its host {subject} goes to the batch system',
    Reason.IDLE: 'it did next to nothing for {idle_h:.0f} h',
}

ORDER = {reason: place for place, reason in enumerate(Reason)}

NUMBERS: dict[Reason, tuple[str, ...]] = {
    Reason.NO_HOST_MATCHES: ('hosts',),
    Reason.TOO_LARGE: ('asked', 'most'),
    Reason.GROUP_TOO_LARGE: ('asked', 'most'),
    Reason.OVER_CEILING: ('asked', 'used', 'ceiling'),
    Reason.OVER_ACCOUNT_CEILING: ('asked', 'used', 'ceiling'),
    Reason.OVER_BORROWING_LIMIT: ('asked', 'limit'),
    Reason.BUDGET_SPENT: ('asked', 'left'),
    Reason.WINDOW_CLOSED: ('opens_h',),
    Reason.OVER_SHARED_PART: ('asked', 'shared'),
    Reason.NOMINAL_IS_LENT: ('asked', 'free'),
    Reason.SHARED_PART_TAKEN: ('asked', 'free', 'shared'),
    Reason.NO_ROOM: ('asked', 'free'),
    Reason.GROUP_HAS_NO_ROOM: ('asked', 'fit'),
    Reason.ROOM_IN_VAIN: ('again_h',),
    Reason.LEAVING_IS_LIMITED: ('servers', 'left', 'limit'),
    Reason.ROOM_IS_MADE: ('servers',),
    Reason.BEHIND_OTHERS: ('before',),
    Reason.BEYOND_DEPTH: ('before', 'depth'),
    Reason.IN_DOUBT: ('since_s',),
    Reason.WAITED_TOO_LONG: ('waited_s',),
    Reason.TIME_IS_UP: ('limit_s',),
    Reason.MAKES_ROOM: ('ran_s',),
    Reason.AT_RISK: ('times', 'waiting'),
    Reason.RETIRES: ('times', 'waiting'),
    Reason.KEEPS_FREE: ('kept', 'free'),
    Reason.IDLE: ('idle_h',),
}
"""Names of the numbers that belong to a reason; others have none."""


LACKS_ROOM = frozenset(
    {
        Reason.NO_ROOM,
        Reason.GROUP_HAS_NO_ROOM,
        Reason.ROOM_IN_VAIN,
        Reason.LEAVING_IS_LIMITED,
    }
)
"""Reasons of waiting that may end when servers leave or move."""

ROOM_HELPS = LACKS_ROOM | {
    Reason.NO_HOST_MATCHES,
    Reason.TOO_LARGE,
    Reason.GROUP_TOO_LARGE,
    Reason.OVER_SHARED_PART,
    Reason.NOMINAL_IS_LENT,
    Reason.SHARED_PART_TAKEN,
    Reason.BEHIND_OTHERS,
    Reason.BEYOND_DEPTH,
}
"""Those that may end when there are more hosts."""


@dataclasses.dataclass(frozen=True, slots=True)
class Why:
    """A reason with its numbers.

    :ivar reason: the token.
    :ivar subject: resource class, account, or where servers must lie; ''
        without.
    :ivar numbers: name and amount, in the order of :data:`NUMBERS`.
    :raises BadReason: if the numbers are not those of the reason.
    """

    reason: Reason
    subject: str = ''
    numbers: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        wanted = NUMBERS.get(self.reason, ())
        given = tuple([name for name, _ in self.numbers])
        if given != wanted:
            raise exception.BadReason(
                f'{self.reason.value} has the numbers {wanted}, got {given}'
            )

    @property
    def sentence(self) -> str:
        """Say it in words, without a capital and a full stop."""
        return _SENTENCES[self.reason].format(
            subject=self.subject, **dict(self.numbers)
        )


Lazy = Callable[[], Why]
"""Works a reason out: of those of a plan only the last ones are told."""


def why(reason: Reason, subject: str = '', **numbers: float) -> Why:
    """Make a reason with its numbers, given in any order.

    :raises BadReason: if a number is missing or does not belong to it.
    """
    order = NUMBERS.get(reason, ())
    named = [(name, numbers.pop(name)) for name in order if name in numbers]
    return Why(reason, subject, (*named, *numbers.items()))


def first(found: Iterable[Why]) -> Why:
    """The reason that is told of several that are true.

    :raises ValueError: if there is none.
    """
    return min(found, key=lambda each: (ORDER[each.reason], each.subject))
