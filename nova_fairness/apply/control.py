# SPDX-License-Identifier: Apache-2.0

"""The contract of a kernel control: read, write, restore."""

import abc
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import TypeVar

from nova_fairness import exception
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import resources


@dataclasses.dataclass(frozen=True, slots=True)
class ApplyResult:
    """The result of one change.

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

    kind: resources.ResourceControl

    @abc.abstractmethod
    def unit_range(self) -> tuple[int, int]:
        """The smallest and largest value that the kernel accepts."""

    def default(self) -> int | None:
        """Value of a VM that was never set; ``None`` if unknown."""
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
    ) -> tuple[ApplyResult, ...]:
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


def drift(
    expected: allocation.Allocation, present: allocation.Allocation
) -> allocation.Allocation:
    """Find what other hands changed since we wrote it.

    :param expected: what was written last, kernel units by knob.
    :param present: what is there now; knobs that it lacks vanished.
    :returns: the present value of each knob that differs.
    """
    return {
        knob: present[knob]
        for knob, value in expected.items()
        if present.get(knob, value) != value
    }


T = TypeVar('T')

_NONE: tuple[str, ...] = ()

_EXPECTED = (exception.FairnessError, OSError, ValueError)
"""Errors of a control when the kernel's state changes meanwhile."""


class IsolatedControl:
    """Calls a control; its exception becomes a text, told once.

    :param item: the control.
    """

    def __init__(self, item: Control) -> None:
        self._item = item
        self._troubles: list[str] = []

    @property
    def kind(self) -> resources.ResourceControl:
        """The control's kind."""
        return self._item.kind

    @property
    def default(self) -> int | None:
        """Value of a VM that was never set; ``None`` if unknown."""
        return self._item.default()

    def availability(self) -> tuple[bool, str]:
        """Tell whether the control works now, and why or why not."""
        try:
            return self._item.availability()
        except _EXPECTED as error:
            return False, str(error)

    def without_effect(self) -> Mapping[str, str]:
        """Say why some VMs are not steered, by key."""
        return self._try(self._item.without_effect, {})

    def troubles(self) -> tuple[str, ...]:
        """Problems since the last call."""
        told = (*self._troubles, *self._try(self._item.problems, _NONE))
        self._troubles = []
        return tuple(f'{self.kind.value}: {text}' for text in told)

    def observe(self, vms: Sequence[instance.Incarnation]) -> None:
        """Show the VMs of a round."""
        self._try(lambda: self._item.observe(vms), None)

    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read what the kernel holds; nothing if that fails."""
        return self._try(lambda: self._item.read(keys), {})

    def write(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[ApplyResult, ...]:
        """Write each change; all have failed if the control fails."""
        try:
            return self._item.write(changes)
        except _EXPECTED as error:
            return tuple(ApplyResult(change, str(error)) for change in changes)

    def settle(self) -> None:
        """Bring in line what the VMs share."""
        self._troubles.extend(self._try(self._item.settle, _NONE))

    def release(self) -> None:
        """Remove what belongs to no VM."""
        self._troubles.extend(self._try(self._item.release, _NONE))

    def _try(self, call: Callable[[], T], otherwise: T) -> T:
        try:
            return call()
        except _EXPECTED as error:
            self._troubles.append(str(error))
            return otherwise
