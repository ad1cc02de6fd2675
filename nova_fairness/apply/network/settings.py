# SPDX-License-Identifier: Apache-2.0

"""Configuration of the network, as frozen values."""

import dataclasses
import enum


class SteeringKind(enum.Enum):
    """The kind of interface at which VMs are steered."""

    AUTO = 'auto'
    UPLINK = 'uplink'
    TAP = 'tap'
    OFF = 'off'


@dataclasses.dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Network settings of a node.

    :ivar layout: where VMs are steered; AUTO chooses by the host's interfaces.
    :ivar uplink: interface through which VMs reach the network; empty detects
        it.
    :ivar bandwidth: of the uplink, bytes per second in one direction, > 0;
        ``None`` if unknown. Then no VM is steered, because a guess that is too
        low would waste bandwidth.
    :ivar link_part: part of the bandwidth that is divided, above 0 to 1; below
        1 so that queues form here and not in the switch.
    :ivar host_rate: guaranteed rate of the host itself, bytes per second;
        ``None`` for :data:`HOST_PART` of the link where its traffic is seen.
    """

    layout: SteeringKind = SteeringKind.AUTO
    uplink: str = ''
    bandwidth: float | None = None
    link_part: float = 0.98
    host_rate: float | None = None

    @property
    def rate(self) -> int:
        """The divided bandwidth per direction, bytes per second; 0 if
        unknown.
        """
        return int((self.bandwidth or 0.0) * self.link_part)

    def reserved_rate(self, *, host_is_seen: bool) -> int:
        """Return the rate that is reserved for the host, bytes per second.

        :param host_is_seen: whether the host's own traffic passes the same
            tree. If not, VMs cannot borrow the reserved rate, so the default
            is 0.
        """
        if self.host_rate is not None:
            return min(int(self.host_rate), self.rate // 2)
        return int(self.rate * HOST_PART) if host_is_seen else 0


HOST_PART = 0.05
"""Part of the link that is guaranteed to the host unless configured."""
