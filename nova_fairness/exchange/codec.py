# SPDX-License-Identifier: Apache-2.0

"""A report as a message of JSON primitives, and back.

The names of the resources are sent once, so that a node with another order
understands them, and one with other resources refuses them by name. Repeated
contents of a host's messages are checked once.
"""

import dataclasses
import itertools
import operator
from typing import Annotated
from typing import Any
from typing import NamedTuple

import msgspec
import numpy as np

from nova_fairness import exception
from nova_fairness.exchange import desired as desired_module
from nova_fairness.exchange import limits as bounds
from nova_fairness.exchange import tables
from nova_fairness.model import node
from nova_fairness.model import report
from nova_fairness.model import resources

VERSION = 3
"""Changes when an older node would misread a message. A field that an older
node can do without is added without a change; it ignores it."""

LARGEST_SEQUENCE = 2**53 - 1
"""Every number up to it is exact in JSON."""

_SHORTEST_INTERVAL_S = 0.01

_WHAT = 'the report'

Message = dict[str, Any]


class _Named(msgspec.Struct, frozen=True):
    """The sender that a message is attributed to.

    :ivar host: as which it was sent.
    """

    host: bounds.Name

    def __post_init__(self) -> None:
        bounds.check_printable(host=self.host)


class Head(_Named, frozen=True):
    """Fields that are new in every message, but for the numbers of its users.

    :ivar version: of the form of the message.
    :ivar boot_id: of the sender's run.
    :ivar sequence: of the round in that run.
    :ivar interval_s: of the amounts.
    """

    version: int
    boot_id: bounds.Name
    sequence: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_SEQUENCE)]
    interval_s: Annotated[
        float,
        msgspec.Meta(ge=_SHORTEST_INTERVAL_S, le=bounds.LONGEST_INTERVAL_S),
    ]

    def __post_init__(self) -> None:
        bounds.check_printable(host=self.host, boot_id=self.boot_id)


class _Whole(Head, frozen=True):
    """A message, see :func:`encode`.

    :ivar cpus: first and last of each run of numbers.
    :ivar table: bytes, or text in base64; see :mod:`.tables`.
    """

    metric: bounds.Name
    speed_factor: Annotated[float, msgspec.Meta(ge=1e-6, le=1e12)]
    cpus: Annotated[list[int], msgspec.Meta(max_length=2 * bounds.MOST_CPUS)]
    resources: Annotated[list[str], msgspec.Meta(max_length=255)]
    capacity: list[float]
    users: list[Annotated[str, msgspec.Meta(max_length=bounds.LONGEST_NAME)]]
    table: Any
    desired: desired_module.DesiredChoice | None

    def __post_init__(self) -> None:
        bounds.check_printable(
            host=self.host,
            boot_id=self.boot_id,
            metric=self.metric,
            users=''.join(self.users),
        )


class StaticContent(NamedTuple):
    """All of a message but its head and the numbers of its users.

    :ivar written: as it stands in the message, see ``_LASTING``.
    :ivar metric: with which the host measures.
    :ivar resources: what the host has.
    :ivar order: where each of our resources stands in the sender's order.
    :ivar ids: of its users.
    :ivar desired: the newest that the sender knows; ``None`` if nothing.
    :ivar most: what the amounts of its users may add up to.
    :ivar size: of the numbers of its users, bytes, where they may be read
        together with those of others; otherwise -1.
    """

    written: tuple[Any, ...]
    metric: str
    resources: node.NodeResources
    order: list[int]
    ids: tuple[str, ...]
    desired: desired_module.DesiredChoice | None
    most: tables.Most
    size: int

    def report_of(
        self, head: Head, users: report.UserTable
    ) -> report.NodeReport:
        """Build the report of a message.

        :param head: head of the message.
        :param users: table of its numbers.
        """
        return report.NodeReport(
            host=head.host,
            boot_id=head.boot_id,
            sequence=head.sequence,
            interval_s=head.interval_s,
            metric=self.metric,
            resources=self.resources,
            users=users,
        )


_LASTING = operator.itemgetter(
    'version',
    'host',
    'boot_id',
    'metric',
    'speed_factor',
    'cpus',
    'resources',
    'capacity',
    'users',
    'desired',
)
"""Almost always what they were in the host's last message. Comparing them
costs far less than checking them."""


class DecodedMessage(NamedTuple):
    """The content of a message.

    :ivar report: of the sender.
    :ivar lasting: makes the next message of the same host cheaper to read.
    """

    report: report.NodeReport
    lasting: StaticContent

    @property
    def desired(self) -> desired_module.DesiredChoice | None:
        """The newest that the sender knows; ``None`` if nothing."""
        return self.lasting.desired


class Short(NamedTuple):
    """A message that says what the one before said, but for its numbers.

    :ivar head: what else is new.
    :ivar lasting: what both say.
    :ivar numbers: of the users, not read yet.
    """

    head: Head
    lasting: StaticContent
    numbers: tables.UnreadNumbers

    def complete(self, users: report.UserTable) -> report.NodeReport:
        """The report, once the numbers of its users were read."""
        return self.lasting.report_of(self.head, users)


def encode(
    node_report: report.NodeReport,
    desired: desired_module.DesiredChoice | None = None,
    *,
    as_bytes: bool = False,
) -> Message:
    """A report as JSON primitives.

    :param as_bytes: write the users' numbers as they are in memory, for a
        transport that carries more than JSON.
    :raises ExchangeError: if a number is not finite.
    """
    table = report.UserTable.of(node_report.users)
    what = node_report.resources
    numbers = tables.numbers(table)
    if not (np.isfinite(numbers).all() and np.isfinite(what.capacity).all()):
        raise exception.ExchangeError(
            f'the report of {node_report.host} holds a number that is not '
            'finite'
        )
    message = {
        'version': VERSION,
        'host': node_report.host,
        'boot_id': node_report.boot_id,
        'sequence': node_report.sequence,
        'interval_s': node_report.interval_s,
        'metric': node_report.metric,
        'cpus': _ranges(what.cpus),
        'speed_factor': what.speed_factor,
        'resources': list(resources.RESOURCES.names),
        'capacity': what.capacity.tolist(),
        'users': list(table.ids),
        'table': numbers.tobytes() if as_bytes else tables.text(numbers),
        'desired': _told(desired),
    }
    if table.exempt is not None:
        left = table.exempt.astype(tables.WRITTEN)
        message['exempt'] = left.tobytes() if as_bytes else tables.text(left)
    return message


def head(message: object) -> Head:
    """The part that says whether the rest is worth being read.

    :raises ReportRefused: as :func:`decode` does.
    """
    return bounds.converted(_opened(message), Head, _WHAT)


def shorten(message: object, new: Head, before: StaticContent) -> Short | None:
    """Take only the numbers of a message if nothing else has changed.

    :param new: what :func:`head` made of it.
    :param before: other fields of the host's last message.
    :returns: ``None`` if it must be read by :func:`decode`.
    """
    if not isinstance(message, dict) or not _says_again(message, before):
        return None
    table = message.get('table')
    if type(table) is not bytes or len(table) != before.size:
        return None
    if message.get('exempt') is not None:
        return None
    numbers = tables.UnreadNumbers(
        table, before.ids, before.most, new.interval_s
    )
    return Short(new, before, numbers)


def decode(
    message: object,
    limits: bounds.Bounds,
    before: StaticContent | None = None,
) -> DecodedMessage:
    """A report, from an untrusted message.

    :param before: what the host's last message said; it changes nothing but
        the time that this takes.
    :raises ReportRefused: naming what was wrong and what was expected. Its
        reason is ``version``, ``malformed``, ``resources`` or ``bounds``.
    """
    new, lasting, table = _parts(message, limits, before)
    users = tables.read(
        table, lasting.ids, lasting.order, lasting.most, new.interval_s
    )
    # Older nodes do not tell it, and do not look at it.
    if isinstance(message, dict) and message.get('exempt') is not None:
        users = tables.with_exempt(users, message['exempt'], new.host)
    return DecodedMessage(lasting.report_of(new, users), lasting)


def claimed_host(message: object) -> str:
    """The name under which a message was sent, empty if it has none."""
    try:
        return bounds.converted(message, _Named, _WHAT).host
    except exception.ReportRefused:
        return ''


def _parts(
    message: object, limits: bounds.Bounds, before: StaticContent | None
) -> tuple[Head, StaticContent, Any]:
    """Head, what lasts, and the numbers as they are written."""
    given = _opened(message)
    if before is not None and _says_again(given, before):
        new = bounds.converted(given, Head, _WHAT)
        return new, before, given.get('table')
    _check_count(given.get('users'), limits)
    whole = bounds.converted(given, _Whole, _WHAT)
    return whole, _lasting(whole, given, before, limits), whole.table


def _says_again(message: Message, before: StaticContent) -> bool:
    try:
        return bool(_LASTING(message) == before.written)
    except KeyError:
        return False


def _opened(message: object) -> Message:
    """A message of our version, whatever its other fields are."""
    if not isinstance(message, dict):
        raise exception.ReportRefused(
            'malformed',
            f'{_WHAT} must be an object, got {type(message).__name__}',
        )
    version = message.get('version', VERSION)
    if type(version) is int and version != VERSION:
        raise exception.ReportRefused(
            'version', f'{_WHAT} has version {version}; expected {VERSION}'
        )
    return message


def _check_count(users: object, limits: bounds.Bounds) -> None:
    """Let no list of too many users pass, before it is read."""
    if isinstance(users, list | tuple) and len(users) > limits.max_users:
        raise exception.ReportRefused(
            'malformed',
            f'{_WHAT} is of {len(users)} users; expected at most '
            f'{limits.max_users}',
        )


def _lasting(
    whole: _Whole,
    given: Message,
    before: StaticContent | None,
    limits: bounds.Bounds,
) -> StaticContent:
    order = _order_of(whole.resources)
    what = node.NodeResources(
        host=whole.host,
        cpus=_cpus_of(whole.cpus),
        speed_factor=whole.speed_factor,
        capacity=_capacity_of(whole, order, limits),
    )
    ids = tuple(whole.users)
    if not all(map(operator.lt, ids, ids[1:])):
        raise exception.ReportRefused(
            'malformed', 'the report: users must be ascending, each once'
        )
    if before is not None and ids == before.ids:
        ids = before.ids  # kept once
    is_plain = order == tables.OURS and len(ids) > 0
    return StaticContent(
        # Nothing is kept of what we do not read.
        (*_LASTING(given)[:-1], _told(whole.desired)),
        whole.metric,
        what,
        order,
        ids,
        whole.desired,
        tables.Most(what, limits),
        len(ids) * tables.ROW_BYTES if is_plain else -1,
    )


def _cpus_of(ends: list[int]) -> tuple[int, ...]:
    ascending = all(
        low <= high if place % 2 == 0 else low < high
        for place, (low, high) in enumerate(itertools.pairwise(ends))
    )
    if (
        not ends
        or len(ends) % 2
        or not ascending
        or not 0 <= ends[0] <= ends[-1] < bounds.MOST_CPUS
    ):
        raise exception.ReportRefused(
            'malformed',
            'the report: cpus must be first and last of one or more runs, '
            f'ascending, below {bounds.MOST_CPUS}',
        )
    runs = map(range, ends[::2], (last + 1 for last in ends[1::2]))
    return tuple(itertools.chain.from_iterable(runs))


def _order_of(names: list[str]) -> list[int]:
    """Where each of our resources stands in the sender's order."""
    ours = resources.RESOURCES.names
    if len(names) != len(ours) or set(names) != set(ours):
        strange = ', '.join(sorted(set(names) - set(ours)))
        missing = ', '.join(sorted(set(ours) - set(names)))
        raise exception.ReportRefused(
            'resources',
            f'the report counts {len(names)} resources, unknown here: '
            f'{strange[:40]!a}, missing: {missing or "none"}; expected '
            f'{", ".join(ours)}',
        )
    return [names.index(name) for name in ours]


def _capacity_of(
    whole: _Whole, order: list[int], limits: bounds.Bounds
) -> resources.Vector:
    numbers = whole.capacity
    if len(numbers) != len(order):
        raise exception.ReportRefused(
            'malformed',
            f'the report: capacity has {len(numbers)} numbers; expected '
            f'{len(order)}',
        )
    believed, option = limits.capacity_of(whole.host)
    capacity = np.array([numbers[place] for place in order], dtype=np.float64)
    for name, given, largest in zip(
        resources.RESOURCES.names, capacity, believed, strict=True
    ):
        if not 0 <= given <= largest:
            raise exception.ReportRefused(
                'bounds',
                f'{whole.host} says that its capacity of {name} is {given}; '
                f'expected 0 to {largest:g} ([fairness_exchange] {option})',
            )
    return capacity


def _ranges(numbers: tuple[int, ...]) -> list[int]:
    """Ascending numbers as first and last of each run."""
    runs = itertools.groupby(
        enumerate(numbers), key=lambda pair: pair[1] - pair[0]
    )
    members = ([number for _, number in run] for _, run in runs)
    return [end for run in members for end in (run[0], run[-1])]


def _told(desired: desired_module.DesiredChoice | None) -> Message | None:
    return None if desired is None else dataclasses.asdict(desired)
