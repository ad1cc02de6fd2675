# SPDX-License-Identifier: Apache-2.0

"""The contract of a kernel control: read, write, restore."""

import abc
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import resources


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one change.

    :ivar change: what was asked for.
    :ivar error: empty if it was written; otherwise why not.
    :ivar gone: the VM vanished meanwhile, which is not an error.
    """

    change: allocation.Change
    error: str = ''
    gone: bool = False

    @property
    def written(self) -> bool:
        """Whether the kernel holds the wanted value."""
        return not self.error and not self.gone


class Control(abc.ABC):
    """One knob of the kernel for all VMs of the node.

    Implementations isolate failures: one VM that cannot be written never
    keeps another from being written. They do no arithmetic on weights.
    """

    kind: resources.Control

    @abc.abstractmethod
    def unit_range(self) -> tuple[int, int]:
        """The smallest and largest value that the kernel accepts."""

    def default(self) -> int | None:
        """Value of a VM that nobody ever set; ``None`` if unknown."""
        return None

    def availability(self) -> tuple[bool, str]:
        """Tell whether the control works on this host now.

        :returns: whether it does, and by what, or why not.
        """
        return True, ''

    def without_effect(self) -> Mapping[str, str]:
        """Say why some VMs are not steered at present, by key."""
        return {}

    def problems(self) -> tuple[str, ...]:
        """Name VMs that cannot be steered, each once while it is seen."""
        return ()

    def observe(self, vms: Sequence[instance.Incarnation]) -> None:
        """See the VMs of a round, before :meth:`read` of it.

        :param vms: all of the node.
        """

    @abc.abstractmethod
    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read what the kernel holds now.

        :param keys: of incarnations; a key says the process, so that no
            hypervisor is needed to restore a control.
        :returns: kernel units by key; VMs that vanished or cannot be
            steered are absent.
        """

    @abc.abstractmethod
    def write(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[Outcome, ...]:
        """Write each change, in order, one outcome each.

        Only incarnations seen by the last :meth:`read` can be written.
        """

    def settle(self) -> tuple[str, ...]:
        """Bring what the VMs share in line with what was written.

        Called after the writes of each round, and of a restoration.

        :returns: what went wrong.
        """
        return ()

    def release(self) -> tuple[str, ...]:
        """Remove from the host what belongs to the control and to no VM.

        Called when nothing shall be steered any more, and in each round as
        long as that holds.

        :returns: what went wrong.
        """
        return ()

    def close(self) -> None:
        """Close all descriptors; the control can still be used."""
