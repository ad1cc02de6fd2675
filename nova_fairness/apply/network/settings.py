# SPDX-License-Identifier: Apache-2.0

"""Configuration of the network, as frozen values."""

import dataclasses
import enum


class SteeringKind(enum.Enum):
    """Where VMs are steered."""

    AUTO = 'auto'
    UPLINK = 'uplink'
    TAP = 'tap'
    OFF = 'off'


@dataclasses.dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Network settings of a node's operator.

    :ivar layout: where VMs are steered; AUTO lets the host decide.
    :ivar uplink: interface through which VMs reach the network; empty lets
        the host say.
    :ivar bandwidth: of the uplink, bytes per second in one direction, > 0;
        ``None`` if not known. Then no VM is steered, since a guess that is too
        low would leave bandwidth unused.
    :ivar link_part: part of the bandwidth that is divided, above 0 to 1; it
        is below 1 so that queues build up here and not in the switch.
    :ivar host_rate: bytes per second that the host itself gets in any case;
        ``None`` for :data:`HOST_PART` of the link where its traffic is seen.
    """

    layout: SteeringKind = SteeringKind.AUTO
    uplink: str = ''
    bandwidth: float | None = None
    link_part: float = 0.98
    host_rate: float | None = None

    @property
    def rate(self) -> int:
        """Divided bandwidth per direction, bytes per second; 0: unknown."""
        return int((self.bandwidth or 0.0) * self.link_part)

    def kept(self, *, host_is_seen: bool) -> int:
        """Rate that is kept from VMs, bytes per second.

        :param host_is_seen: whether the host's own traffic passes the same
            tree. If not, what is kept is not lent to VMs either, so nothing
            is unless an operator says so.
        """
        if self.host_rate is not None:
            return min(int(self.host_rate), self.rate // 2)
        return int(self.rate * HOST_PART) if host_is_seen else 0


HOST_PART = 0.05
"""Part of the link that the host gets in any case unless configured."""
