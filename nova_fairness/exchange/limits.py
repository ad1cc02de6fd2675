# SPDX-License-Identifier: Apache-2.0

"""Bounds of a peer's claims: the largest sizes that an operator expects."""

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
"""Default bounds of one node's capacity; above any machine built so far."""

MEAN_USERS = 500
"""Mean number of users per peer for which memory is reserved, 300 bytes
each."""

HUGE = 1e300
"""Bound of numbers whose sums stay finite."""

LONGEST_NAME = 255
"""Largest number of characters of a name."""

MOST_CPUS = 16_384
"""Largest number of CPUs of one node."""

MOST_INSTANCES = 100_000
"""Largest number of VMs of one user on one node."""

MOST_VCPUS = MOST_INSTANCES * MOST_CPUS
"""Largest number of vCPUs of one user on one node: no VM has more than
the node has CPUs."""

LONGEST_INTERVAL_S = 86_400.0
"""Longest interval of a report, in seconds."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
"""Name of a host, a run or a metric; see also :func:`check_printable`."""

_Kind = TypeVar('_Kind')

CAPACITY_FILE = 'peer_capacity_file'
"""Option with the path of the file of single hosts' bounds."""


@dataclasses.dataclass(frozen=True, eq=False)
class Bounds:
    """All bounds of peers' claims and of the memory for them.

    :ivar domain: nodes of one domain exchange reports.
    :ivar view_max_age: intervals after which a report is too old.
    :ivar max_users: in one report; more than any node has VMs.
    :ivar max_total_users: rows of all stored reports.
    :ivar max_peers: number of stored hosts.
    :ivar capacity: (r,) largest of one node; per second where time-shared.
    :ivar capacities: exceptions for hosts whose names match a pattern; the
        first match applies.
    :ivar max_heaviness: largest magnitude of a user's heaviness on a node,
        norm units.
    :ivar forget_after_s: silence after which a peer is deleted, seconds; an
        hour is longer than a restart of a node.
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
    def column_bounds(self) -> tuple[resources.Vector, resources.Vector]:
        """The smallest and largest numbers in the row of one user."""
        amounts = [HUGE] * 3 * len(resources.RESOURCES)
        grades = [float(MOST_VCPUS)] * 2 * report.GRADES
        least = [0.0] * (len(amounts) + len(grades))
        return (
            np.array([-self.max_heaviness, 1.0, *least]),
            np.array([self.max_heaviness, MOST_INSTANCES, *amounts, *grades]),
        )

    def capacity_of(self, host: str) -> tuple[resources.Vector, str]:
        """Return the largest capacity that a host may claim.

        :returns: shape (r,), and the option that sets it.
        """
        for pattern, capacity in self.capacities:
            if fnmatch.fnmatchcase(host, pattern):
                return capacity, f'{CAPACITY_FILE}: {pattern}'
        return self.capacity, f'{CAPACITY_FILE} names no other'


def convert(value: object, kind: type[_Kind], what: str) -> _Kind:
    """Convert an untrusted value to a type.

    :param kind: a class whose annotations define the valid values.
    :param what: name of the value in error messages.
    :raises ReportRefused: with the field and the expectation.
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
    """Check that names contain only printable characters, for logs.

    :param names: by the name of the field.
    :raises ValueError: if a name has other characters.
    """
    for field, name in names.items():
        if not name.isprintable():
            raise ValueError(
                f'{field} holds characters that cannot be printed; expected '
                'none'
            )
