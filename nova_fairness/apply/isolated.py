# SPDX-License-Identifier: Apache-2.0

"""A control whose failures stay its own."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TypeVar

from nova_fairness import exception
from nova_fairness.apply import control
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import resources

T = TypeVar('T')

_NONE: tuple[str, ...] = ()

_EXPECTED = (exception.FairnessError, OSError, ValueError)
"""What a kernel that changes under a control's feet may lead to."""


class Isolated:
    """Calls a control; what it raises becomes a text, told once.

    :param item: the control.
    """

    def __init__(self, item: control.Control) -> None:
        self._item = item
        self._troubles: list[str] = []

    @property
    def kind(self) -> resources.Control:
        """What it steers."""
        return self._item.kind

    @property
    def default(self) -> int | None:
        """What a VM has that nobody ever set."""
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
    ) -> tuple[control.Outcome, ...]:
        """Write each change; all have failed if the control fails."""
        try:
            return self._item.write(changes)
        except _EXPECTED as error:
            return tuple(
                control.Outcome(change, str(error)) for change in changes
            )

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
