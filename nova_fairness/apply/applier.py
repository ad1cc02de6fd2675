# SPDX-License-Identifier: Apache-2.0


"""Writes allocations to the kernel, and takes them back."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import functools

from nova_fairness import exception
from nova_fairness.apply import control
from nova_fairness.apply import found_values
from nova_fairness.apply.cgroup import files
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import resources

_is_running = functools.partial(files.is_running, '/proc')
Kinds = Collection[resources.ResourceControl]


class Applier:
    """All controls of a node, with the record of what they held before.

    :param controls: one per kind that this node can steer.
    :param found: the record, loaded; see :meth:`FoundValues.load`.
    :param is_running: whether an incarnation's process still is the same;
        may raise ``OSError`` if that cannot be known.
    """

    def __init__(
        self,
        controls: Iterable[control.Control],
        found: found_values.FoundValues,
        is_running: Callable[[str], bool] = _is_running,
    ) -> None:
        self._controls = {
            item.kind: control.IsolatedControl(item) for item in controls
        }
        self._found = found
        self._is_running = is_running

    @property
    def kinds(self) -> frozenset[resources.ResourceControl]:
        """Controls of this node, whether they work now or not."""
        return frozenset(self._controls)

    def availability(
        self, kinds: Kinds = resources.CONTROLS
    ) -> Mapping[resources.ResourceControl, tuple[bool, str]]:
        """Tell of some controls whether they work now, and why or why not."""
        return {item.kind: item.availability() for item in self._chosen(kinds)}

    def without_effect(
        self, kinds: Kinds = resources.CONTROLS
    ) -> Mapping[resources.ResourceControl, Mapping[str, str]]:
        """Say why VMs are not steered, by key, of some controls."""
        return {
            item.kind: item.without_effect() for item in self._chosen(kinds)
        }

    def observe(
        self,
        vms: Sequence[instance.Incarnation],
        kinds: Kinds = resources.CONTROLS,
    ) -> None:
        """Show all VMs of the node to some controls, before reading."""
        for item in self._chosen(kinds):
            item.observe(vms)

    def present(
        self, keys: Sequence[str], kinds: Kinds = resources.CONTROLS
    ) -> allocation.Allocation:
        """Read some controls of the given VMs.

        :param keys: of incarnations.
        :returns: kernel units by knob; VMs that vanished and those that
            cannot be steered are absent.
        """
        return {
            allocation.Knob(key, item.kind): value
            for item in self._chosen(kinds)
            for key, value in item.read(keys).items()
        }

    def _chosen(self, kinds: Kinds) -> list[control.IsolatedControl]:
        return [item for kind, item in self._controls.items() if kind in kinds]

    @property
    def recorded(self) -> allocation.Allocation:
        """Found values, by knob that was ever written since."""
        return self._found.values

    def problems(self) -> tuple[str, ...]:
        """Name what went wrong since the last call, apart from writes.

        A VM that cannot be steered is named once while it is seen.
        """
        return tuple(
            text
            for item in self._controls.values()
            for text in item.troubles()
        )

    def apply(
        self,
        changes: Sequence[allocation.Change],
    ) -> tuple[control.ApplyResult, ...]:
        """Write changes; values that they replace are on the disk before.

        :param changes: one VM's failure is no other's.
        :returns: one outcome per change, in order.
        """
        refused = self._record([change.knob for change in changes])
        outcomes = iter(
            self._write([item for item in changes if item.knob not in refused])
        )
        for item in self._controls.values():
            item.settle()
        return tuple(
            self._refuse(change, refused[change.knob])
            if change.knob in refused
            else next(outcomes)
            for change in changes
        )

    def restore(
        self,
        keys: Iterable[str] | None = None,
        kinds: Kinds = resources.CONTROLS,
    ) -> tuple[control.ApplyResult, ...]:
        """Restore the values that controls had, and clear those records.

        A value that cannot be written stays recorded. One whose VM vanished
        does not. With the last VM goes what the controls share.

        :param keys: of incarnations; all that are recorded if ``None``.
        :param kinds: which controls; all unless given.
        :returns: one outcome per recorded knob, sorted by incarnation.
        :raises StateError: if the record cannot be written; the controls
            have their values nevertheless.
        """
        chosen = None if keys is None else set(keys)
        knobs = sorted(
            (
                knob
                for knob in self._found.values
                if (chosen is None or knob.incarnation in chosen)
                and knob.control in kinds
            ),
            key=lambda knob: (knob.incarnation, knob.control.value),
        )
        present = self._read(knobs)
        found = self._found.values
        outcomes = self._write(
            [
                allocation.Change(knob, present.get(knob), found[knob])
                for knob in knobs
            ]
        )
        for item in self._chosen(kinds):
            item.settle()
            if chosen is None:
                item.release()
        self._found.forget(
            item.change.knob for item in outcomes if item.written
        )
        self._found.flush()
        return outcomes

    def _record(
        self,
        knobs: Iterable[allocation.Knob],
    ) -> dict[allocation.Knob, str]:
        """Record what knobs hold that are not recorded yet.

        :returns: why, by knob that must not be written.
        """
        new = [knob for knob in knobs if knob not in self._found.values]
        if not new:
            return {}
        present = self._read(new)
        values: dict[allocation.Knob, int] = {}
        refused: dict[allocation.Knob, str] = {}
        for knob in new:
            value = self._found_value(knob, present)
            if value is None:
                refused[knob] = 'cannot be read, so it could not be restored'
            else:
                values[knob] = value
        self._found.forget(
            knob for knob in self._found.values if self._has_ended(knob)
        )
        try:
            self._found.remember(values)
        except exception.StateError as error:
            refused |= dict.fromkeys(values, str(error))
        return refused

    def _found_value(
        self,
        knob: allocation.Knob,
        present: allocation.Allocation,
    ) -> int | None:
        """The value that a knob is to be restored to, if known.

        Where the record was lost, what a VM holds now may be our own: then
        it is the kernel's default.
        """
        if knob not in present or not self._found.is_unknown(knob.incarnation):
            return present.get(knob)
        return self._controls[knob.control].default

    def _refuse(
        self, change: allocation.Change, error: str
    ) -> control.ApplyResult:
        if self._has_ended(change.knob):
            return control.ApplyResult(change, gone=True)
        knob = change.knob
        return control.ApplyResult(
            change, f'{knob.control.value} of {knob.incarnation}: {error}'
        )

    def _has_ended(self, knob: allocation.Knob) -> bool:
        try:
            return not self._is_running(knob.incarnation)
        except OSError:
            return False

    def _read(self, knobs: Sequence[allocation.Knob]) -> allocation.Allocation:
        """Read just these knobs."""
        values: dict[allocation.Knob, int] = {}
        for kind, item in self._controls.items():
            keys = [knob.incarnation for knob in knobs if knob.control is kind]
            for key, value in (item.read(keys) if keys else {}).items():
                values[allocation.Knob(key, kind)] = value
        return values

    def _write(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[control.ApplyResult, ...]:
        """Hand changes to their controls; forget what vanished."""
        outcomes: dict[int, control.ApplyResult] = {}
        for kind in resources.CONTROLS:
            places = [
                place
                for place, change in enumerate(changes)
                if change.knob.control is kind
            ]
            batch = [changes[place] for place in places]
            written = self._write_kind(kind, batch)
            outcomes.update(zip(places, written, strict=True))
        self._found.forget(
            item.change.knob for item in outcomes.values() if item.gone
        )
        return tuple(outcomes[place] for place in range(len(changes)))

    def _write_kind(
        self,
        kind: resources.ResourceControl,
        changes: Sequence[allocation.Change],
    ) -> tuple[control.ApplyResult, ...]:
        item = self._controls.get(kind)
        if item is not None:
            return item.write(changes) if changes else ()
        return tuple(
            control.ApplyResult(
                change,
                f'{kind.value} of {change.knob.incarnation}: this node has '
                f'no such control',
            )
            for change in changes
        )
