# SPDX-License-Identifier: Apache-2.0

"""Reasons of waits and ends of requests, and of evictions: an ordered set.

Each field of a reason has an audience: :data:`AUDIENCES`. Only
:func:`readable_reason` renders a reason for readers who are not operators.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import enum

from nova_fairness import exception
from nova_fairness.model import wording


class Reason(enum.Enum):
    """Tokens of reasons in their order.

    If several reasons apply, the first is shown. Reasons that the user can
    change come first, then reasons that the project can change, then reasons
    that only time changes. The tokens are an interface: a new one is inserted
    at its place in this order, and none is renamed.
    """

    NOT_PLANNED = 'not_planned'
    HELD_BY_OPERATOR = 'held_by_operator'
    HELD_BY_OWNER = 'held_by_owner'
    NO_HOST_MATCHES = 'no_host_matches'
    TOO_LARGE = 'too_large'
    GROUP_TOO_LARGE = 'group_too_large'
    OVER_CEILING = 'over_ceiling'
    OVER_ACCOUNT_CEILING = 'over_account_ceiling'
    OVER_BORROWING_LIMIT = 'over_borrowing_limit'
    BUDGET_SPENT = 'budget_spent'
    ACCOUNT_SET_ASIDE = 'account_set_aside'
    WINDOW_CLOSED = 'window_closed'
    OVER_SHARED_PART = 'over_shared_part'
    LEFT_TO_NOVA = 'left_to_nova'
    NOMINAL_IS_LENT = 'nominal_is_lent'
    SHARED_PART_TAKEN = 'shared_part_taken'
    NO_ROOM = 'no_room'
    GROUP_HAS_NO_ROOM = 'group_has_no_room'
    GROUP_IS_FULL = 'group_is_full'
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
    QUARANTINED = 'quarantined'
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
    Reason.NOT_PLANNED: 'the next cycle of the queue decides on it',
    Reason.HELD_BY_OPERATOR: (
        'an operator holds it ({subject}), and only an operator ends the hold'
    ),
    Reason.HELD_BY_OWNER: (
        'a member of its project holds it ({subject}), and it starts only'
        ' after they end the hold'
    ),
    Reason.NO_HOST_MATCHES: (
        'none of {hosts:host|hosts} has the zone, aggregates and traits asked'
        ' for'
    ),
    Reason.TOO_LARGE: (
        'a server needs {asked:g} {subject}, and no host gives one server'
        ' more than {most:g}, even when it is empty'
    ),
    Reason.GROUP_TOO_LARGE: (
        '{asked:server is|servers are} to start together {subject}, the hosts'
        ' that match take {most:g} when they are empty'
    ),
    Reason.OVER_CEILING: (
        'the project may have {ceiling:g} {subject} and has {used:g};'
        ' it asks for {asked:g} more'
    ),
    Reason.OVER_ACCOUNT_CEILING: (
        'it asks for {asked:g} {subject}, which has {used:g} and may have'
        ' {ceiling:g}'
    ),
    Reason.OVER_BORROWING_LIMIT: (
        'with it {asked:g} {subject} would be borrowed beyond what it owns,'
        ' {limit:g} may be'
    ),
    Reason.BUDGET_SPENT: (
        'it may use up to {asked:unit-hour|unit-hours}, and the budget of'
        ' {subject} has {left:g} left'
    ),
    Reason.ACCOUNT_SET_ASIDE: (
        'a limit of {subject} cannot be used, so nothing below it starts;'
        ' limit list says why, limit set mends it'
    ),
    Reason.WINDOW_CLOSED: (
        'requests of {subject} start at certain times, next in {opens_h:g} h'
    ),
    Reason.OVER_SHARED_PART: (
        'it needs {asked:g} {subject}, more than the {shared:g} that all'
        ' projects may use'
    ),
    Reason.LEFT_TO_NOVA: 'no host has {subject}; Nova judges it',
    Reason.NOMINAL_IS_LENT: (
        'it asks for {asked:g} {subject}, which owns them while others use'
        ' them; {free:g} can be had now, and it comes before those who borrow'
    ),
    Reason.SHARED_PART_TAKEN: (
        'it needs {asked:g} {subject}: {free:g} of the {shared:g} that all'
        ' projects may use are free'
    ),
    Reason.NO_ROOM: (
        'a server needs {asked:g} {subject}, the host that comes closest has'
        ' {free:g} left'
    ),
    Reason.GROUP_HAS_NO_ROOM: (
        '{asked:server starts|servers start} together, room now is for {fit:g}'
    ),
    Reason.GROUP_IS_FULL: (
        '{asked:server of the group waits|servers of the group wait}, the'
        ' hosts that match take {most:g} beside those of the group that run'
    ),
    Reason.ROOM_IN_VAIN: (
        'servers left for requests of the project that did not use their room;'
        ' none leave for it for {again_h:g} h'
    ),
    Reason.LEAVING_IS_LIMITED: (
        '{servers:server|servers} would leave for it, {left:g} more may now,'
        ' and {limit:g} in an hour'
    ),
    Reason.ROOM_IS_MADE: (
        'room is reserved for it: it starts after {servers:server|servers}'
        ' made room'
    ),
    Reason.BEHIND_OTHERS: (
        'what is left is kept for the first of {before:request|requests}'
        ' before it'
    ),
    Reason.BEYOND_DEPTH: (
        '{before:request is|requests are} before it, and {depth:g} are tried'
        ' at once'
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
    Reason.QUARANTINED: (
        'the service failed on it and set it aside, it is tried again after'
        ' {again_s:.0f} s'
    ),
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
        'its owner uses {times:.1f} times their share, and'
        ' {waiting:request waits|requests wait} for room'
    ),
    Reason.RETIRES: (
        'it is done, its owner uses {times:.1f} times their share, and'
        ' {waiting:request waits|requests wait} for room'
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
    Reason.GROUP_IS_FULL: ('asked', 'most'),
    Reason.ROOM_IN_VAIN: ('again_h',),
    Reason.LEAVING_IS_LIMITED: ('servers', 'left', 'limit'),
    Reason.ROOM_IS_MADE: ('servers',),
    Reason.BEHIND_OTHERS: ('before',),
    Reason.BEYOND_DEPTH: ('before', 'depth'),
    Reason.IN_DOUBT: ('since_s',),
    Reason.QUARANTINED: ('again_s',),
    Reason.WAITED_TOO_LONG: ('waited_s',),
    Reason.TIME_IS_UP: ('limit_s',),
    Reason.MAKES_ROOM: ('ran_s',),
    Reason.AT_RISK: ('times', 'waiting'),
    Reason.RETIRES: ('times', 'waiting'),
    Reason.KEEPS_FREE: ('kept', 'free'),
    Reason.IDLE: ('idle_h',),
}
"""Names of the numbers of each reason; reasons without an entry have none."""


class Audience(enum.IntEnum):
    """Readers of a reason; each audience also reads the fields of those before
    it.
    """

    OWNER = 1
    """The owner of a request or server, and the guest inside of it: server
    metadata and the file that the guest agent writes."""

    MEMBER = 2
    """Readers who may see the request: members of its project."""

    MANAGER = 3
    """Managers of its project."""

    OPERATOR = 4
    """Operators of the cloud, who may see all projects and hosts."""


@dataclasses.dataclass(frozen=True, slots=True)
class FieldAudience:
    """The least audience that may read a field.

    :ivar own: audience if the reason is about the reader's project, or one of
        its users.
    :ivar others: audience if it is about another project, or an account above.
    """

    own: Audience
    others: Audience


_A = Audience
_ALL = FieldAudience(_A.OWNER, _A.OWNER)
"""Fields of the request itself, and those that ``capacity`` shows to every
project."""

_PROJECT = FieldAudience(_A.MEMBER, _A.MEMBER)
"""Fields with the use and the limits of a project."""

_NAME = FieldAudience(_A.MEMBER, _A.MANAGER)
"""Name of an account above the request."""

_AMOUNT = FieldAudience(_A.MEMBER, _A.OPERATOR)
"""Fields with the use and the limits of an account. Above a project these are
sums over several projects."""

_FOREIGN = FieldAudience(_A.OWNER, _A.OPERATOR)
"""Name of a project for which something is done."""

_HOST = FieldAudience(_A.OPERATOR, _A.OPERATOR)
"""Name of a host."""

_UNUSED = FieldAudience(_A.OPERATOR, _A.OPERATOR)
"""Subject of a reason that has none."""

_SUBJECT = 'subject'
_OF_CLASS: Mapping[str, FieldAudience] = {_SUBJECT: _ALL, 'asked': _ALL}

AUDIENCES: dict[Reason, Mapping[str, FieldAudience]] = {
    Reason.NOT_PLANNED: {_SUBJECT: _UNUSED},
    Reason.QUARANTINED: {_SUBJECT: _UNUSED, 'again_s': _ALL},
    Reason.HELD_BY_OPERATOR: {_SUBJECT: _ALL},
    Reason.HELD_BY_OWNER: {_SUBJECT: _ALL},
    Reason.NO_HOST_MATCHES: {_SUBJECT: _UNUSED, 'hosts': _ALL},
    Reason.TOO_LARGE: {**_OF_CLASS, 'most': _ALL},
    Reason.GROUP_TOO_LARGE: {**_OF_CLASS, 'most': _ALL},
    Reason.OVER_CEILING: {**_OF_CLASS, 'used': _PROJECT, 'ceiling': _PROJECT},
    Reason.OVER_ACCOUNT_CEILING: {
        _SUBJECT: _NAME,
        'asked': _ALL,
        'used': _AMOUNT,
        'ceiling': _AMOUNT,
    },
    Reason.OVER_BORROWING_LIMIT: {
        _SUBJECT: _NAME,
        'asked': _AMOUNT,
        'limit': _AMOUNT,
    },
    Reason.BUDGET_SPENT: {_SUBJECT: _NAME, 'asked': _ALL, 'left': _AMOUNT},
    Reason.ACCOUNT_SET_ASIDE: {_SUBJECT: _NAME},
    Reason.WINDOW_CLOSED: {_SUBJECT: _NAME, 'opens_h': _ALL},
    Reason.OVER_SHARED_PART: {**_OF_CLASS, 'shared': _ALL},
    Reason.LEFT_TO_NOVA: {_SUBJECT: _ALL},
    Reason.NOMINAL_IS_LENT: {_SUBJECT: _NAME, 'asked': _ALL, 'free': _AMOUNT},
    Reason.SHARED_PART_TAKEN: {**_OF_CLASS, 'free': _ALL, 'shared': _ALL},
    Reason.NO_ROOM: {**_OF_CLASS, 'free': _ALL},
    Reason.GROUP_HAS_NO_ROOM: {
        _SUBJECT: _UNUSED,
        'asked': _ALL,
        'fit': _ALL,
    },
    Reason.GROUP_IS_FULL: {_SUBJECT: _UNUSED, 'asked': _ALL, 'most': _ALL},
    Reason.ROOM_IN_VAIN: {_SUBJECT: _UNUSED, 'again_h': _ALL},
    Reason.LEAVING_IS_LIMITED: {
        _SUBJECT: _UNUSED,
        'servers': _ALL,
        'left': _ALL,
        'limit': _ALL,
    },
    Reason.ROOM_IS_MADE: {_SUBJECT: _UNUSED, 'servers': _ALL},
    Reason.BEHIND_OTHERS: {_SUBJECT: _UNUSED, 'before': _ALL},
    Reason.BEYOND_DEPTH: {_SUBJECT: _UNUSED, 'before': _ALL, 'depth': _ALL},
    Reason.KEEPS_FREE: {_SUBJECT: _ALL, 'kept': _ALL, 'free': _ALL},
    Reason.ROOM_KEPT: {_SUBJECT: _UNUSED},
    Reason.ROOM_LOST: {_SUBJECT: _UNUSED},
    Reason.SENT: {_SUBJECT: _UNUSED},
    Reason.IN_DOUBT: {_SUBJECT: _UNUSED, 'since_s': _ALL},
    Reason.STARTED: {_SUBJECT: _UNUSED},
    Reason.NO_VALID_HOST: {_SUBJECT: _UNUSED},
    Reason.START_FAILED: {_SUBJECT: _UNUSED},
    Reason.TOKEN_REFUSED: {_SUBJECT: _UNUSED},
    Reason.UNREADABLE: {_SUBJECT: _UNUSED},
    Reason.WAITED_TOO_LONG: {_SUBJECT: _UNUSED, 'waited_s': _ALL},
    Reason.TAKEN_BACK: {_SUBJECT: _UNUSED},
    Reason.CANCELLED_BY_OPERATOR: {_SUBJECT: _UNUSED},
    Reason.SERVER_DELETED: {_SUBJECT: _UNUSED},
    Reason.TIME_IS_UP: {_SUBJECT: _UNUSED, 'limit_s': _ALL},
    Reason.MAKES_ROOM: {_SUBJECT: _FOREIGN, 'ran_s': _ALL},
    Reason.AT_RISK: {_SUBJECT: _UNUSED, 'times': _ALL, 'waiting': _ALL},
    Reason.RETIRES: {_SUBJECT: _UNUSED, 'times': _ALL, 'waiting': _ALL},
    Reason.HOST_LEAVES: {_SUBJECT: _HOST},
    Reason.IDLE: {_SUBJECT: _UNUSED, 'idle_h': _ALL},
}
"""The audience of each field of each reason. If a reason is missing here, only
operators read it; others read its token.
"""

_WITHHELD: dict[Reason, str] = {
    Reason.OVER_CEILING: (
        'it asks for {asked:g} {subject}, more than its project may still have'
    ),
    Reason.OVER_ACCOUNT_CEILING: (
        'it asks for {asked:g} {resource}, more than {account} may still have'
    ),
    Reason.OVER_BORROWING_LIMIT: (
        'with it more {resource} would be borrowed than {account} may'
    ),
    Reason.BUDGET_SPENT: (
        'it may use up to {asked:unit-hour|unit-hours}, more than is left of'
        ' the budget of {account}'
    ),
    Reason.ACCOUNT_SET_ASIDE: (
        'a limit of {account} cannot be used, so nothing below it starts;'
        ' limit list says why, limit set mends it'
    ),
    Reason.WINDOW_CLOSED: (
        'requests of {account} start at certain times, next in {opens_h:g} h'
    ),
    Reason.NOMINAL_IS_LENT: (
        'it asks for {asked:g} {resource}, which {account} owns and others use'
        ', and it comes before those who borrow'
    ),
    Reason.MAKES_ROOM: (
        'it makes room for a request of another project, and has run for'
        ' {ran_s:.0f} s'
    ),
    Reason.HOST_LEAVES: 'its host goes to the batch system',
}
"""Sentences for readers who may not read all fields. They have only fields
that every audience may read, and the account if the reader may read its
name."""

_ABOVE = 'an account that it belongs to'

_CLASS_AND_ACCOUNT = frozenset(
    {
        Reason.OVER_ACCOUNT_CEILING,
        Reason.OVER_BORROWING_LIMIT,
        Reason.NOMINAL_IS_LENT,
    }
)
"""Reasons whose subject is ``CLASS of ACCOUNT``."""

HOLDS = frozenset({Reason.HELD_BY_OPERATOR, Reason.HELD_BY_OWNER})
"""Reasons that end only if a person ends the hold."""

LIMITED = HOLDS | {
    Reason.NO_HOST_MATCHES,
    Reason.TOO_LARGE,
    Reason.GROUP_TOO_LARGE,
    Reason.OVER_CEILING,
    Reason.OVER_ACCOUNT_CEILING,
    Reason.OVER_BORROWING_LIMIT,
    Reason.BUDGET_SPENT,
    Reason.ACCOUNT_SET_ASIDE,
    Reason.WINDOW_CLOSED,
    Reason.OVER_SHARED_PART,
}
"""Reasons that more free room on hosts does not end."""

LACKS_ROOM = frozenset(
    {
        Reason.NO_ROOM,
        Reason.GROUP_HAS_NO_ROOM,
        Reason.ROOM_IN_VAIN,
        Reason.LEAVING_IS_LIMITED,
    }
)
"""Reasons of waits that may end when servers are evicted or moved."""

ROOM_HELPS = LACKS_ROOM | {
    Reason.NO_HOST_MATCHES,
    Reason.TOO_LARGE,
    Reason.GROUP_TOO_LARGE,
    Reason.GROUP_IS_FULL,
    Reason.OVER_SHARED_PART,
    Reason.NOMINAL_IS_LENT,
    Reason.SHARED_PART_TAKEN,
    Reason.BEHIND_OTHERS,
    Reason.BEYOND_DEPTH,
}
"""Reasons of waits that may end when the cloud has more hosts."""


@dataclasses.dataclass(frozen=True, slots=True)
class Why:
    """A reason with its numbers.

    :ivar reason: the token.
    :ivar subject: resource class, account, or text about the hosts of servers;
        '' without one.
    :ivar numbers: names and values, in the order of :data:`NUMBERS`.
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
        """The complete sentence, without a capital and a full stop.

        It is for operators and their log; other readers get the result of
        :func:`readable_reason`.
        """
        return wording.fill_in(
            _SENTENCES[self.reason],
            {'subject': self.subject, **dict(self.numbers)},
        )


Lazy = Callable[[], Why]
"""Function that creates a reason. Most reasons of a plan are never shown."""


def why(reason: Reason, subject: str = '', **numbers: float) -> Why:
    """Create a reason with its numbers, given in any order.

    :raises BadReason: if a number is missing or does not belong to the reason.
    """
    order = NUMBERS.get(reason, ())
    named = [(name, numbers.pop(name)) for name in order if name in numbers]
    return Why(reason, subject, (*named, *numbers.items()))


def first_reason(found: Iterable[Why]) -> Why:
    """Return the reason to show, if several apply.

    :raises ValueError: if there are no reasons.
    """
    return min(found, key=lambda each: (ORDER[each.reason], each.subject))


@dataclasses.dataclass(frozen=True, slots=True)
class ReadableReason:
    """A reason as one reader may read it.

    :ivar reason: the token.
    :ivar sentence: sentence without a capital and a full stop.
    :ivar subject: subject; '' if the reader may not read it.
    :ivar numbers: numbers that the reader may read, by name.
    """

    reason: Reason
    sentence: str
    subject: str
    numbers: Mapping[str, float]


def readable_reason(
    why: Why, audience: Audience, project: str
) -> ReadableReason:
    """Render a reason for a reader.

    :param audience: audience of the reader.
    :param project: project of the reader: that of the request or server.
    """
    sees = _readable_fields(why, audience, project)
    numbers = {name: each for name, each in why.numbers if name in sees}
    resource, account = _subject_parts(why)
    subject = why.subject if _SUBJECT in sees else resource
    if len(sees) == 1 + len(why.numbers):
        return ReadableReason(why.reason, why.sentence, subject, numbers)
    text = _WITHHELD.get(why.reason, why.reason.value.replace('_', ' '))
    names = {
        'subject': subject,
        'resource': resource,
        'account': account if _SUBJECT in sees and account else _ABOVE,
    }
    sentence = wording.fill_in(text, {**names, **numbers})
    return ReadableReason(why.reason, sentence, subject, numbers)


def _readable_fields(
    why: Why, audience: Audience, project: str
) -> frozenset[str]:
    """Return the fields of a reason that a reader may read."""
    least = AUDIENCES.get(why.reason, {})
    _, account = _subject_parts(why)
    above, _, _ = account.partition('/')
    is_own = project != '' and above == project
    names = (_SUBJECT, *(name for name, _ in why.numbers))
    return frozenset(
        name
        for name in names
        if audience >= _least_audience(least.get(name, _UNUSED), is_own)
        or (name == _SUBJECT and not why.subject)
    )


def _least_audience(seen: FieldAudience, is_own: bool) -> Audience:
    return seen.own if is_own else seen.others


def _subject_parts(why: Why) -> tuple[str, str]:
    """Return the resource class and the account in a subject; '' for a missing
    one.
    """
    if why.reason in _CLASS_AND_ACCOUNT:
        resource, _, account = why.subject.partition(' of ')
        return resource, account
    return '', why.subject
