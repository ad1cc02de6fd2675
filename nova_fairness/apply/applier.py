# SPDX-License-Identifier: Apache-2.0


"""Writes allocations to the kernel, and restores the found values."""

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
    """Writes all controls of a node, and records the values they had before.

    :param controls: one per kind that this node can steer.
    :param found: the record of found values, loaded; see
        :meth:`FoundValues.load`.
    :param is_running: checks whether an incarnation's process is still the
        same; may raise ``OSError`` if that is unknown.
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
        """The kinds of this node's controls, whether they work now or not."""
        return frozenset(self._controls)

    def availability(
        self, kinds: Kinds = resources.CONTROLS
    ) -> Mapping[resources.ResourceControl, tuple[bool, str]]:
        """Return for each control whether it works now, and the cause."""
        return {
            item.kind: item.availability()
            for item in self._selected_controls(kinds)
        }

    def without_effect(
        self, kinds: Kinds = resources.CONTROLS
    ) -> Mapping[resources.ResourceControl, Mapping[str, str]]:
        """Return for each control why it has no effect on some VMs, by key."""
        return {
            item.kind: item.without_effect()
            for item in self._selected_controls(kinds)
        }

    def observe(
        self,
        vms: Sequence[instance.Incarnation],
        kinds: Kinds = resources.CONTROLS,
    ) -> None:
        """Pass all VMs of the node to the controls, before they are read."""
        for item in self._selected_controls(kinds):
            item.observe(vms)

    def read_values(
        self, keys: Sequence[str], kinds: Kinds = resources.CONTROLS
    ) -> allocation.Allocation:
        """Read the controls of the given VMs.

        :param keys: of incarnations.
        :returns: kernel units by knob, without VMs that vanished or cannot be
            steered.
        """
        return {
            allocation.Knob(key, item.kind): value
            for item in self._selected_controls(kinds)
            for key, value in item.read(keys).items()
        }

    def _selected_controls(
        self, kinds: Kinds
    ) -> list[control.IsolatedControl]:
        return [item for kind, item in self._controls.items() if kind in kinds]

    @property
    def recorded(self) -> allocation.Allocation:
        """The found values of all knobs that were written since."""
        return self._found.values

    def problems(self) -> tuple[str, ...]:
        """Return errors since the last call, except those of writes.

        A VM that cannot be steered is named once while it is present.
        """
        return tuple(
            text
            for item in self._controls.values()
            for text in item.new_errors()
        )

    def apply(
        self,
        changes: Sequence[allocation.Change],
    ) -> tuple[control.ApplyResult, ...]:
        """Write changes, after the values that they replace are on the disk.

        :param changes: a failure of one VM does not affect the others.
        :returns: one result per change, in the same sequence.
        """
        refused = self._record_found_values(
            [change.knob for change in changes]
        )
        outcomes = iter(
            self._write_by_control(
                [item for item in changes if item.knob not in refused]
            )
        )
        for item in self._controls.values():
            item.settle()
        return tuple(
            self._refused_result(change, refused[change.knob])
            if change.knob in refused
            else next(outcomes)
            for change in changes
        )

    def restore(
        self,
        keys: Iterable[str] | None = None,
        kinds: Kinds = resources.CONTROLS,
    ) -> tuple[control.ApplyResult, ...]:
        """Restore the found values of controls, and delete their records.

        A value that cannot be written stays recorded. The record of a vanished
        VM is deleted. With the last VM, objects that the controls share are
        removed.

        :param keys: of incarnations; ``None`` restores all that are recorded.
        :param kinds: of the controls to restore.
        :returns: one result per recorded knob, sorted by incarnation.
        :raises StateError: if the record cannot be written; the controls are
            restored nevertheless.
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
        present = self._read_knobs(knobs)
        found = self._found.values
        outcomes = self._write_by_control(
            [
                allocation.Change(knob, present.get(knob), found[knob])
                for knob in knobs
            ]
        )
        for item in self._selected_controls(kinds):
            item.settle()
            if chosen is None:
                item.release()
        self._found.forget(
            item.change.knob for item in outcomes if item.written
        )
        self._found.flush()
        return outcomes

    def _record_found_values(
        self,
        knobs: Iterable[allocation.Knob],
    ) -> dict[allocation.Knob, str]:
        """Record the present values of knobs that have no record yet.

        :returns: the cause for each knob that must not be written.
        """
        new = [knob for knob in knobs if knob not in self._found.values]
        if not new:
            return {}
        present = self._read_knobs(new)
        values: dict[allocation.Knob, int] = {}
        refused: dict[allocation.Knob, str] = {}
        for knob in new:
            value = self._found_value(knob, present)
            if value is None:
                refused[knob] = (
                    'not written: its value cannot be read and so not restored'
                )
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
        """Return the value to which a knob is to be restored; ``None`` if
        unknown.

        If the record was lost, the present value may be the agent's own. Then
        the kernel's default is returned.
        """
        if knob not in present or not self._found.is_unknown(knob.incarnation):
            return present.get(knob)
        return self._controls[knob.control].default

    def _refused_result(
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

    def _read_knobs(
        self, knobs: Sequence[allocation.Knob]
    ) -> allocation.Allocation:
        """Read the values of these knobs only."""
        values: dict[allocation.Knob, int] = {}
        for kind, item in self._controls.items():
            keys = [knob.incarnation for knob in knobs if knob.control is kind]
            for key, value in (item.read(keys) if keys else {}).items():
                values[allocation.Knob(key, kind)] = value
        return values

    def _write_by_control(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[control.ApplyResult, ...]:
        """Write changes by their controls; delete records of vanished VMs."""
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
