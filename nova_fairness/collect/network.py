# SPDX-License-Identifier: Apache-2.0

"""Bytes that VMs received and sent, from the host's interfaces."""

from collections.abc import Mapping
import dataclasses

from nova_fairness.model import instance

Interfaces = Mapping[str, tuple[int, int]]
"""Bytes that the host received and sent, by interface."""

# The host's end of a macvtap looks from the VM's side already: what the
# device receives goes to the VM. A tap is the far end of a cable.
_SAME_DIRECTION = frozenset(('direct',))


@dataclasses.dataclass(slots=True)
class _Counted:
    """One NIC: what it had counted before its tap was made anew, and last."""

    past: tuple[int, int] = (0, 0)
    last: tuple[int, int] = (0, 0)

    def advance(self, present: tuple[int, int]) -> None:
        if present[0] < self.last[0] or present[1] < self.last[1]:
            self.past = (
                self.past[0] + self.last[0],
                self.past[1] + self.last[1],
            )
        self.last = present


class NetworkTotals:
    """Cumulative traffic of one VM over all its NICs.

    A NIC whose tap has gone keeps its last value, and one whose tap was made
    anew counts on from there: unplugging is no negative traffic.
    """

    __slots__ = ('_nics',)

    def __init__(self) -> None:
        self._nics: dict[str, _Counted] = {}

    def advance(
        self,
        nics: tuple[instance.Nic, ...],
        interfaces: Interfaces,
    ) -> tuple[float, float]:
        """Take the present counters in.

        :param interfaces: bytes the host received and sent, by interface.
        :returns: bytes the VM received and sent; 0 for NICs without a tap.
        """
        for nic in nics:
            seen = interfaces.get(nic.tap) if nic.tap else None
            if seen is None:
                continue
            if nic.kind not in _SAME_DIRECTION:
                seen = seen[1], seen[0]
            counted = self._nics.get(nic.mac)
            if counted is None:
                counted = self._nics[nic.mac] = _Counted()
            counted.advance(seen)
        received = sent = 0
        for counted in self._nics.values():
            received += counted.past[0] + counted.last[0]
            sent += counted.past[1] + counted.last[1]
        return float(received), float(sent)
