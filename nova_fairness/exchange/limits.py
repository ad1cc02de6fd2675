# SPDX-License-Identifier: Apache-2.0

"""Bounds on what a peer claims: the largest sizes that an operator expects."""

from collections.abc import Mapping
import dataclasses
import fnmatch
import functools
from typing import Annotated
from typing import TypeVar

import msgspec
import numpy as np

from nova_fairness import exception
from nova_fairness.model import report
from nova_fairness.model import resources

LARGEST_CAPACITY: Mapping[str, float] = {
    'cpu_time': 1e8,
    'disk_read': 1e12,
    'disk_written': 1e12,
    'net_received': 1e12,
    'net_sent': 1e12,
    'memory': 1e15,
}
"""Of one node, unless configured; above anything built so far."""

MEAN_USERS = 500
"""Users of a peer on average for which there is room, at 300 bytes each."""

HUGE = 1e300
"""Numbers below it can be added up without becoming infinite."""

LONGEST_NAME = 255
"""Characters of any name."""

MOST_CPUS = 16_384
"""Of one node."""

MOST_INSTANCES = 100_000
"""Of one user on one node."""

MOST_VCPUS = MOST_INSTANCES * MOST_CPUS
"""Of one user on one node: no VM has more than the node has CPUs."""

LONGEST_INTERVAL_S = 86_400.0
"""Of what was measured."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
"""Of a host, a run, a metric; see also :func:`check_printable`."""

_Kind = TypeVar('_Kind')

CAPACITY_FILE = 'peer_capacity_file'
"""Option that names the file of what is believed of single hosts."""


@dataclasses.dataclass(frozen=True, eq=False)
class Bounds:
    """Everything that limits what peers can make this node believe or keep.

    :ivar domain: nodes of one domain exchange reports.
    :ivar view_max_age: intervals after which a report is too old.
    :ivar max_users: in one report; more than any node has VMs.
    :ivar max_total_users: rows of all kept reports together.
    :ivar max_peers: hosts that are remembered.
    :ivar capacity: (r,) largest of one node; per second where time-shared.
    :ivar capacities: the same of hosts whose names match a pattern; the
        first that matches counts.
    :ivar max_heaviness: largest magnitude of a user's heaviness on a node,
        norm units.
    :ivar forget_after_s: a peer that was silent that long is not known any
        more; an hour is longer than a node takes to start again.
    """

    domain: str = 'nova-fairness'
    view_max_age: float = 3.0
    max_users: int = 10_000
    max_total_users: int = MEAN_USERS * 2_000
    max_peers: int = 2_000
    capacity: resources.Vector = dataclasses.field(
        default_factory=lambda: resources.RESOURCES.vector(**LARGEST_CAPACITY)
    )
    capacities: tuple[tuple[str, resources.Vector], ...] = ()
    max_heaviness: float = 1e6
    forget_after_s: float = 3600.0

    @functools.cached_property
    def columns(self) -> tuple[resources.Vector, resources.Vector]:
        """Smallest and largest numbers in the row of one user."""
        amounts = [HUGE] * 3 * len(resources.RESOURCES)
        grades = [float(MOST_VCPUS)] * 2 * report.GRADES
        least = [0.0] * (len(amounts) + len(grades))
        return (
            np.array([-self.max_heaviness, 1.0, *least]),
            np.array([self.max_heaviness, MOST_INSTANCES, *amounts, *grades]),
        )

    def capacity_of(self, host: str) -> tuple[resources.Vector, str]:
        """The largest capacity that is believed of a host.

        :returns: shape (r,), and the option that says so.
        """
        for pattern, capacity in self.capacities:
            if fnmatch.fnmatchcase(host, pattern):
                return capacity, f'{CAPACITY_FILE}: {pattern}'
        return self.capacity, f'{CAPACITY_FILE} names no other'


def converted(value: object, kind: type[_Kind], what: str) -> _Kind:
    """Convert an untrusted value from outside to a type.

    :param kind: a class whose annotations say what is allowed.
    :param what: name of the value in error messages.
    :raises ReportRefused: naming the field, and what was expected.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise exception.ReportRefused(
            'malformed', f'{what}: {error}'
        ) from None
    except OverflowError:
        # msgspec before 0.22 says so of an integer where a float is expected.
        raise exception.ReportRefused(
            'malformed', f'{what}: a number is out of range'
        ) from None


def check_printable(**names: str) -> None:
    """Let names pass that can be written into a log as they are.

    :param names: by the name of the field.
    :raises ValueError: for others.
    """
    for field, name in names.items():
        if not name.isprintable():
            raise ValueError(
                f'{field} holds characters that cannot be printed; expected '
                'none'
            )
