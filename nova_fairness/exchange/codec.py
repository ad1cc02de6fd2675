# SPDX-License-Identifier: Apache-2.0

"""A report as a message of JSON primitives, and back.

The names of the resources are sent once, so that a node with another order
understands them, and one with other resources refuses them by name.
"""

import dataclasses
import itertools
from typing import Any
from typing import NamedTuple

import numpy as np

from nova_fairness import exception
from nova_fairness.exchange import desired as desired_module
from nova_fairness.exchange import fields
from nova_fairness.exchange import known as known_module
from nova_fairness.exchange import limits as bounds
from nova_fairness.exchange import tables
from nova_fairness.exchange import unread
from nova_fairness.model import report
from nova_fairness.model import resources

VERSION = known_module.VERSION

LARGEST_SEQUENCE = 2**53 - 1
"""Every number up to it is exact in JSON."""

_SHORTEST_INTERVAL_S = 0.01

Message = dict[str, Any]


class Head(NamedTuple):
    """What says whether a message is news.

    :ivar host: as which it was sent.
    :ivar boot_id: of the sender's run.
    :ivar sequence: in that run.
    """

    host: str
    boot_id: str
    sequence: int


class Decoded(NamedTuple):
    """What a message says.

    :ivar report: of the sender.
    :ivar known: makes the next message of the same host cheaper to read.
    """

    report: report.NodeReport
    known: known_module.Known

    @property
    def desired(self) -> desired_module.Desired | None:
        """The newest that the sender knows; ``None`` if nothing."""
        return self.known.desired


class Short(NamedTuple):
    """A message that says what the one before said, but for its numbers.

    :ivar known: what both say.
    :ivar sequence: number of the round.
    :ivar numbers: of the users; nobody has looked at them yet.
    """

    known: known_module.Known
    sequence: int
    numbers: unread.Numbers

    @property
    def host(self) -> str:
        """As which it was sent."""
        return self.known.resources.host

    @property
    def head(self) -> Head:
        """What says whether it is news."""
        _, host, boot_id, *_ = self.known.written
        return Head(host, boot_id, self.sequence)

    def complete(self, users: report.UserTable) -> report.NodeReport:
        """Make the report of it.

        :param users: what the numbers are.
        """
        _, host, boot_id, metric, *_ = self.known.written
        return report.NodeReport(
            host=host,
            boot_id=boot_id,
            sequence=self.sequence,
            interval_s=self.numbers.interval_s,
            metric=metric,
            resources=self.known.resources,
            users=users,
        )


def encode(
    node_report: report.NodeReport,
    desired: desired_module.Desired | None = None,
    *,
    as_bytes: bool = False,
) -> Message:
    """Write a report as JSON primitives.

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
    return {
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


def head(message: object, limits: bounds.Bounds) -> Head:
    """Read what says whether the rest is worth being read.

    :raises ReportRefused: as :func:`decode` does.
    """
    given = fields.Fields(message, 'the report')
    known_module.check_version(given.given('version'))
    return Head(
        given.text('host', limits.max_text),
        given.text('boot_id', limits.max_text),
        given.integer('sequence', 0, LARGEST_SEQUENCE),
    )


def shorten(
    message: object,
    new: Head,
    limits: bounds.Bounds,
    before: known_module.Known,
) -> Short | None:
    """Read a message but for its numbers, if nothing else has changed.

    :param new: what :func:`head` made of it.
    :param before: what the host's last message said.
    :returns: ``None`` if it must be read by :func:`decode`.
    :raises ReportRefused: as :func:`decode` does.
    """
    given = fields.Fields(message, 'the report')
    if not known_module.is_unchanged(given, before):
        return None
    table = given.given('table')
    if type(table) is not bytes or len(table) != before.size:
        return None
    return Short(
        before,
        new.sequence,
        unread.Numbers(
            table, before.ids, before.most, _interval_s(given, limits)
        ),
    )


def decode(
    message: object,
    limits: bounds.Bounds,
    before: known_module.Known | None = None,
) -> Decoded:
    """Read a message of which nothing is believed.

    :param before: what the host's last message said; it changes nothing but
        the time that this takes.
    :raises ReportRefused: naming what was wrong and what was expected. Its
        reason is ``version``, ``malformed``, ``resources`` or ``bounds``.
    """
    given = fields.Fields(message, 'the report')
    known = known_module.read(given, before, limits)
    _, host, boot_id, metric, *_ = known.written
    interval_s = _interval_s(given, limits)
    return Decoded(
        report.NodeReport(
            host=host,
            boot_id=boot_id,
            sequence=given.integer('sequence', 0, LARGEST_SEQUENCE),
            interval_s=interval_s,
            metric=metric,
            resources=known.resources,
            users=tables.read(
                given.given('table'),
                known.ids,
                known.order,
                known.most,
                interval_s,
            ),
        ),
        known,
    )


def claimed_host(message: object, limits: bounds.Bounds) -> str:
    """The name under which a message was sent, empty if it has none."""
    try:
        return fields.Fields(message, '').text('host', limits.max_text)
    except exception.ReportRefused:
        return ''


def _interval_s(given: fields.Fields, limits: bounds.Bounds) -> float:
    return given.number(
        'interval_s', _SHORTEST_INTERVAL_S, limits.max_interval_s
    )


def _ranges(numbers: tuple[int, ...]) -> list[int]:
    """Write ascending numbers as first and last of each run."""
    runs = itertools.groupby(
        enumerate(numbers), key=lambda pair: pair[1] - pair[0]
    )
    members = ([number for _, number in run] for _, run in runs)
    return [end for run in members for end in (run[0], run[-1])]


def _told(desired: desired_module.Desired | None) -> Message | None:
    return None if desired is None else dataclasses.asdict(desired)
