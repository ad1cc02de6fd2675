# SPDX-License-Identifier: Apache-2.0

"""The interface of a kernel control: read, write, restore."""

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

    :ivar change: the requested change.
    :ivar error: cause of a failure; empty if the value was written.
    :ivar gone: whether the VM vanished meanwhile, which is not an error.
    """

    change: allocation.Change
    error: str = ''
    gone: bool = False

    @property
    def written(self) -> bool:
        """Whether the kernel has the wanted value."""
        return not self.error and not self.gone


class Control(abc.ABC):
    """One kind of kernel setting for all VMs of the node.

    Implementations isolate failures: an error of one VM never stops the writes
    of others. They do no arithmetic on weights.
    """

    kind: resources.ResourceControl

    @abc.abstractmethod
    def unit_range(self) -> tuple[int, int]:
        """Return the smallest and the largest value that the kernel
        accepts.
        """

    def default(self) -> int | None:
        """Return the value of a VM that was never set; ``None`` if unknown."""
        return None

    def availability(self) -> tuple[bool, str]:
        """Return whether the control works on this host now.

        :returns: whether it works, and the means or the cause.
        """
        return True, ''

    def without_effect(self) -> Mapping[str, str]:
        """Return why the control has no effect on some VMs, by key."""
        return {}

    def problems(self) -> tuple[str, ...]:
        """Return errors of VMs that cannot be steered, each once per VM."""
        return ()

    def observe(self, vms: Sequence[instance.Incarnation]) -> None:
        """Accept the VMs of a round, before its :meth:`read`.

        :param vms: all VMs of the node.
        """

    @abc.abstractmethod
    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read the present values.

        :param keys: of incarnations; a key names the process, so that a
            restoration needs no hypervisor.
        :returns: kernel units by key, without VMs that vanished or cannot be
            steered.
        """

    @abc.abstractmethod
    def write(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[ApplyResult, ...]:
        """Write each change in sequence; return one result each.

        Only incarnations of the last :meth:`read` can be written.
        """

    def settle(self) -> tuple[str, ...]:
        """Update objects that VMs share, after the writes of a round.

        It is called after the writes of each round and of a restoration.

        :returns: error messages.
        """
        return ()

    def release(self) -> tuple[str, ...]:
        """Remove the control's objects that belong to no VM.

        It is called in each round in which nothing is steered.

        :returns: error messages.
        """
        return ()

    def close(self) -> None:
        """Close all file descriptors; the control can still be used."""


def drift(
    expected: allocation.Allocation, present: allocation.Allocation
) -> allocation.Allocation:
    """Return the values that other programs changed since the last write.

    :param expected: values written last, kernel units by knob.
    :param present: present values; missing knobs vanished.
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
"""Errors of a control that occur when the kernel's state changes meanwhile."""


class IsolatedControl:
    """Calls a control; collects the texts of its exceptions.

    :param item: the control.
    """

    def __init__(self, item: Control) -> None:
        self._item = item
        self._troubles: list[str] = []

    @property
    def kind(self) -> resources.ResourceControl:
        """The kind of the control."""
        return self._item.kind

    @property
    def default(self) -> int | None:
        """The value of a VM that was never set; ``None`` if unknown."""
        return self._item.default()

    def availability(self) -> tuple[bool, str]:
        """Return whether the control works now, and the cause."""
        try:
            return self._item.availability()
        except _EXPECTED as error:
            return False, str(error)

    def without_effect(self) -> Mapping[str, str]:
        """Return why the control has no effect on some VMs, by key."""
        return self._call_safely(self._item.without_effect, {})

    def new_errors(self) -> tuple[str, ...]:
        """Return the errors since the last call."""
        told = (
            *self._troubles,
            *self._call_safely(self._item.problems, _NONE),
        )
        self._troubles = []
        return tuple(f'{self.kind.value}: {text}' for text in told)

    def observe(self, vms: Sequence[instance.Incarnation]) -> None:
        """Pass the VMs of a round to the control."""
        self._call_safely(lambda: self._item.observe(vms), None)

    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read the present values; return none after an error."""
        return self._call_safely(lambda: self._item.read(keys), {})

    def write(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[ApplyResult, ...]:
        """Write each change; all results are failures if the control fails."""
        try:
            return self._item.write(changes)
        except _EXPECTED as error:
            return tuple(ApplyResult(change, str(error)) for change in changes)

    def settle(self) -> None:
        """Update objects that VMs share."""
        self._troubles.extend(self._call_safely(self._item.settle, _NONE))

    def release(self) -> None:
        """Remove the control's objects that belong to no VM."""
        self._troubles.extend(self._call_safely(self._item.release, _NONE))

    def _call_safely(self, call: Callable[[], T], otherwise: T) -> T:
        """Call a function; after an expected error, store it and return a
        default.
        """
        try:
            return call()
        except _EXPECTED as error:
            self._troubles.append(str(error))
            return otherwise
