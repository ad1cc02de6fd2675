# SPDX-License-Identifier: Apache-2.0

"""Converts a report to a message of JSON primitives, and back.

The names of the resources are sent in each message, so that a node with
another sequence can read it, and one with other resources can refuse it.
Unchanged contents of a host's messages are validated once.
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
"""Version of the message format. It changes when an older node would
misread a message. An optional field is added without a change; older nodes
ignore it."""

LARGEST_SEQUENCE = 2**53 - 1
"""Largest integer that is exact in JSON."""

_SHORTEST_INTERVAL_S = 0.01

_NAME = 'the report'

Message = dict[str, Any]


class _SenderName(msgspec.Struct, frozen=True):
    """The part of a message that names its sender.

    :ivar host: name of the sender.
    """

    host: bounds.Name

    def __post_init__(self) -> None:
        bounds.check_printable(host=self.host)


class Head(_SenderName, frozen=True):
    """Fields that differ in every message, without the numbers of its users.

    :ivar version: of the message format.
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


class _FullMessage(Head, frozen=True):
    """All fields of a message; see :func:`encode`.

    :ivar cpus: first and last number of each range.
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
    """The parts of a message that rarely change between two messages.

    :ivar written: the fields of :data:`_static_fields`, as in the message.
    :ivar metric: of the host.
    :ivar resources: of the host.
    :ivar order: position of each of our resources in the sender's sequence.
    :ivar ids: of its users.
    :ivar desired: newest desired state that the sender knows; ``None`` if
        none.
    :ivar most: upper bounds of the sums of its users' amounts.
    :ivar size: of its users' numbers in bytes, if they can be read together
        with those of other hosts; otherwise -1.
    """

    written: tuple[Any, ...]
    metric: str
    resources: node.NodeResources
    order: list[int]
    ids: tuple[str, ...]
    desired: desired_module.DesiredChoice | None
    most: tables.AmountBounds
    size: int

    def report_of(
        self, head: Head, users: report.UserTable
    ) -> report.NodeReport:
        """Create the report of a message.

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


_static_fields = operator.itemgetter(
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
"""Fields that are nearly always equal in a host's successive messages. A
comparison costs far less than a validation."""


class DecodedMessage(NamedTuple):
    """The content of a message.

    :ivar report: of the sender.
    :ivar lasting: the static content, which speeds up reading the next message
        of the host.
    """

    report: report.NodeReport
    lasting: StaticContent

    @property
    def desired(self) -> desired_module.DesiredChoice | None:
        """The newest desired state that the sender knows; ``None`` if none."""
        return self.lasting.desired


class ShortMessage(NamedTuple):
    """A message that differs from the one before only in its numbers.

    :ivar head: of the message.
    :ivar lasting: the content that both messages share.
    :ivar numbers: of the users, not parsed yet.
    """

    head: Head
    lasting: StaticContent
    numbers: tables.UnparsedTable

    def complete(self, users: report.UserTable) -> report.NodeReport:
        """Return the report with the parsed numbers of its users."""
        return self.lasting.report_of(self.head, users)


def encode(
    node_report: report.NodeReport,
    desired: desired_module.DesiredChoice | None = None,
    *,
    as_bytes: bool = False,
) -> Message:
    """Convert a report to JSON primitives.

    :param as_bytes: write the users' numbers as bytes, for a transport that
        supports more than JSON.
    :raises ExchangeError: if a number is not finite.
    """
    table = report.UserTable.of(node_report.users)
    what = node_report.resources
    numbers = tables.join_columns(table)
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
        'table': numbers.tobytes()
        if as_bytes
        else tables.encode_base64(numbers),
        'desired': _as_message(desired),
    }
    if table.exempt is not None:
        left = table.exempt.astype(tables.NUMBER_TYPE)
        message['exempt'] = (
            left.tobytes() if as_bytes else tables.encode_base64(left)
        )
    return message


def parse_head(message: object) -> Head:
    """Parse the fields that decide whether the message is new.

    :raises ReportRefused: as :func:`decode` does.
    """
    return bounds.convert(_checked_version(message), Head, _NAME)


def shorten(
    message: object, new: Head, before: StaticContent
) -> ShortMessage | None:
    """Return a message's numbers if all other fields are unchanged.

    :param new: result of :func:`parse_head`.
    :param before: static content of the host's last message.
    :returns: ``None`` if :func:`decode` must read the message.
    """
    if not isinstance(message, dict) or not _has_same_content(message, before):
        return None
    table = message.get('table')
    if type(table) is not bytes or len(table) != before.size:
        return None
    if message.get('exempt') is not None:
        return None
    numbers = tables.UnparsedTable(
        table, before.ids, before.most, new.interval_s
    )
    return ShortMessage(new, before, numbers)


def decode(
    message: object,
    limits: bounds.Bounds,
    before: StaticContent | None = None,
) -> DecodedMessage:
    """Convert an untrusted message to a report.

    :param before: static content of the host's last message; it only saves
        time.
    :raises ReportRefused: with the error and the expectation; the reason is
        ``version``, ``malformed``, ``resources`` or ``bounds``.
    """
    new, lasting, table = _parse_parts(message, limits, before)
    users = tables.parse_table(
        table, lasting.ids, lasting.order, lasting.most, new.interval_s
    )
    # Older nodes do not tell it, and do not look at it.
    if isinstance(message, dict) and message.get('exempt') is not None:
        users = tables.with_exempt(users, message['exempt'], new.host)
    return DecodedMessage(lasting.report_of(new, users), lasting)


def claimed_host(message: object) -> str:
    """Return the sender's name in a message; empty if it has none."""
    try:
        return bounds.convert(message, _SenderName, _NAME).host
    except exception.ReportRefused:
        return ''


def _parse_parts(
    message: object, limits: bounds.Bounds, before: StaticContent | None
) -> tuple[Head, StaticContent, Any]:
    """Return head, static content, and the unparsed numbers of a message."""
    given = _checked_version(message)
    if before is not None and _has_same_content(given, before):
        new = bounds.convert(given, Head, _NAME)
        return new, before, given.get('table')
    _check_count(given.get('users'), limits)
    whole = bounds.convert(given, _FullMessage, _NAME)
    return whole, _static_content(whole, given, before, limits), whole.table


def _has_same_content(message: Message, before: StaticContent) -> bool:
    try:
        return bool(_static_fields(message) == before.written)
    except KeyError:
        return False


def _checked_version(message: object) -> Message:
    """Return the message if it is an object of our version."""
    if not isinstance(message, dict):
        raise exception.ReportRefused(
            'malformed',
            f'{_NAME} must be an object, got {type(message).__name__}',
        )
    version = message.get('version', VERSION)
    if type(version) is int and version != VERSION:
        raise exception.ReportRefused(
            'version', f'{_NAME} has version {version}; expected {VERSION}'
        )
    return message


def _check_count(users: object, limits: bounds.Bounds) -> None:
    """Refuse a message with too many users before it is parsed."""
    if isinstance(users, list | tuple) and len(users) > limits.max_users:
        raise exception.ReportRefused(
            'malformed',
            f'{_NAME} is of {len(users)} users; expected at most '
            f'{limits.max_users}',
        )


def _static_content(
    whole: _FullMessage,
    given: Message,
    before: StaticContent | None,
    limits: bounds.Bounds,
) -> StaticContent:
    order = _resource_positions(whole.resources)
    what = node.NodeResources(
        host=whole.host,
        cpus=_parse_cpus(whole.cpus),
        speed_factor=whole.speed_factor,
        capacity=_parse_capacity(whole, order, limits),
    )
    ids = tuple(whole.users)
    if not all(map(operator.lt, ids, ids[1:])):
        raise exception.ReportRefused(
            'malformed', 'the report: users must be ascending, each once'
        )
    if before is not None and ids == before.ids:
        ids = before.ids  # kept once
    is_plain = order == tables.OUR_POSITIONS and len(ids) > 0
    return StaticContent(
        # Nothing is kept of what we do not read.
        (*_static_fields(given)[:-1], _as_message(whole.desired)),
        whole.metric,
        what,
        order,
        ids,
        whole.desired,
        tables.AmountBounds(what, limits),
        len(ids) * tables.ROW_BYTES if is_plain else -1,
    )


def _parse_cpus(ends: list[int]) -> tuple[int, ...]:
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


def _resource_positions(names: list[str]) -> list[int]:
    """Return the position of each of our resources in the sender's
    sequence.
    """
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


def _parse_capacity(
    whole: _FullMessage, order: list[int], limits: bounds.Bounds
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
    """Return ascending numbers as first and last number of each range."""
    runs = itertools.groupby(
        enumerate(numbers), key=lambda pair: pair[1] - pair[0]
    )
    members = ([number for _, number in run] for _, run in runs)
    return [end for run in members for end in (run[0], run[-1])]


def _as_message(
    desired: desired_module.DesiredChoice | None,
) -> Message | None:
    return None if desired is None else dataclasses.asdict(desired)
