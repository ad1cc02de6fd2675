# SPDX-License-Identifier: Apache-2.0

"""The registry of resources: names, units and kind of sharing.

Every vector of the package has one entry per registered resource, in the order
of the registry. Code reads positions from the registry, and does not depend on
the number of resources.
"""

from collections.abc import Iterator
import dataclasses
import enum

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
"""A float64 array whose last axis is the resource axis of a registry."""

Mask = npt.NDArray[np.bool_]


class Sharing(enum.Enum):
    """How a resource is divided."""

    TIME = 'time'
    """Consumed at a rate: supply and endowment scale with the interval."""

    SPACE = 'space'
    """Occupied: supply and endowment do not depend on the interval."""


class ResourceControl(enum.Enum):
    """A control of the kernel that divides one or more resources."""

    CPU = 'cpu'
    MEMORY = 'memory'
    DISK = 'blkio'
    NETWORK = 'network'

    # There is one object of each. The hash that enumerations have is Python
    # code, and every round looks up thousands of knobs.
    __hash__ = object.__hash__


CONTROLS: tuple[ResourceControl, ...] = tuple(ResourceControl)
"""Column order of every array of weights."""


@dataclasses.dataclass(frozen=True, slots=True)
class Resource:
    """One kind of resource that VMs consume.

    :ivar name: identifier, also used in reports and Prometheus labels.
    :ivar unit: unit of an amount consumed in one interval (time-shared) or
        occupied at its end (space-shared).
    :ivar sharing: time-shared or space-shared.
    :ivar control: the kernel control that divides it; ``None`` without one.
    """

    name: str
    unit: str
    sharing: Sharing
    control: ResourceControl | None


class ResourceRegistry:
    """An ordered, immutable set of resources.

    :param resources: in the order of the vectors.
    :raises ValueError: if there is no resource or a name occurs twice.
    """

    def __init__(self, resources: tuple[Resource, ...]) -> None:
        names = tuple(resource.name for resource in resources)
        if not names or len(set(names)) != len(names):
            raise ValueError(
                f'resource names must be given and differ, got {names}'
            )
        self._resources = resources
        self._index = {name: place for place, name in enumerate(names)}
        self.names: tuple[str, ...] = names
        self.time_shared: Mask = np.array(
            [item.sharing is Sharing.TIME for item in resources]
        )
        self.time_shared.setflags(write=False)

    def __len__(self) -> int:
        return len(self._resources)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._resources)

    def index(self, name: str) -> int:
        """Return the position of a resource in every vector.

        :raises KeyError: if no resource has that name.
        """
        return self._index[name]

    def vector(self, **amounts: float) -> Vector:
        """Create an (r,) vector from amounts by name; other entries are zero.

        :raises KeyError: if a name is not registered.
        """
        result = np.zeros(len(self), dtype=np.float64)
        for name, amount in amounts.items():
            result[self._index[name]] = amount
        return result

    def steered_by(self, control: ResourceControl) -> Mask:
        """Return the (r,) mask of the resources that ``control`` divides."""
        return np.array([item.control is control for item in self])

    def over(self, rates: Vector, interval_s: float) -> Vector:
        """Scale the time-shared entries of ``rates`` to an interval.

        :param rates: (..., r); per second where time-shared.
        :param interval_s: seconds, > 0.
        :returns: amounts for the interval, same shape.
        """
        return np.where(self.time_shared, rates * interval_s, rates)


RESOURCES = ResourceRegistry(
    (
        Resource(
            'cpu_time', 'weighted seconds', Sharing.TIME, ResourceControl.CPU
        ),
        Resource('disk_read', 'bytes', Sharing.TIME, ResourceControl.DISK),
        Resource('disk_written', 'bytes', Sharing.TIME, ResourceControl.DISK),
        Resource(
            'net_received', 'bytes', Sharing.TIME, ResourceControl.NETWORK
        ),
        Resource('net_sent', 'bytes', Sharing.TIME, ResourceControl.NETWORK),
        Resource('memory', 'bytes', Sharing.SPACE, ResourceControl.MEMORY),
    )
)
"""The six resources of the paper (section 5.1), seen from the VM.

``cpu_time`` is seconds of CPU multiplied by the speed factor of the node
(BogoMIPS unless configured, section 5.1.1).
"""
