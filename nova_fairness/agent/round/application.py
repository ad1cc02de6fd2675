# SPDX-License-Identifier: Apache-2.0

"""Writes and restores kernel values in a round, and records the result."""

from collections.abc import Mapping
from collections.abc import Sequence
import logging
import types

from nova_fairness import exception
from nova_fairness.agent import settings as settings_module
from nova_fairness.apply import applier as applier_module
from nova_fairness.apply import control
from nova_fairness.decide import changes
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import resources
from nova_fairness.model import round as round_model

LOG = logging.getLogger(__name__)

_NOTHING: Mapping[resources.ResourceControl, str] = types.MappingProxyType({})

Incarnations = Sequence[instance.Incarnation]


class AppliedState:
    """Writes a round's values, and stores the last applied ones.

    :param applier: reads and writes the controls of the host.
    :param missing: cause why a control is missing, by kind.
    """

    def __init__(
        self,
        applier: applier_module.Applier,
        missing: Mapping[resources.ResourceControl, str] = _NOTHING,
    ) -> None:
        self._applier = applier
        self._missing = missing
        self._expected: allocation.Allocation = {}
        self._released: frozenset[resources.ResourceControl] = frozenset()

    def apply(
        self,
        vms: Incarnations,
        present: allocation.Allocation,
        decided: round_model.DecidedRound | None,
        settings: settings_module.Settings,
        *,
        enforces: bool,
    ) -> tuple[
        allocation.Allocation, round_model.RoundCounters, tuple[str, ...]
    ]:
        """Write the difference between the wanted and the present values.

        :param present: kernel values before.
        :param decided: ``None`` leaves all values as they are.
        :param enforces: ``False`` restores all found values instead.
        :returns: kernel values afterwards, counts, and error messages.
        """
        drifted = len(control.drift(self._expected, present))
        let_go = self._restore_unsteered(vms, settings, enforces=enforces)
        outcomes = (
            self._write_changes(present, decided, settings) if enforces else ()
        )
        applied, kept = _values_after(present, outcomes, let_go)
        self._expected = {
            knob: value
            for knob, value in kept.items()
            if enforces and knob.control in settings.controls
        }
        return (
            applied,
            round_model.RoundCounters(
                changed=sum(item.written for item in outcomes),
                failed=sum(bool(item.error) for item in outcomes),
                restored=sum(item.written for item in let_go),
                drifted=drifted,
            ),
            tuple(item.error for item in (*let_go, *outcomes) if item.error),
        )

    def own_values(
        self, present: allocation.Allocation
    ) -> allocation.Allocation:
        """Return the present values that this agent, or an earlier one,
        applied.

        Values written by other programs are replaced with the last applied
        ones.
        """
        recorded = self._applier.recorded
        inherited = {
            knob: value for knob, value in present.items() if knob in recorded
        }
        return {**inherited, **self._last_applied(present)}

    def restore(self) -> tuple[control.ApplyResult, ...]:
        """Restore every control to the value it had before the agent started.

        :raises StateError: if the record of found values cannot be written.
        """
        self._expected = {}
        return self._applier.restore()

    def controls(
        self, settings: settings_module.Settings
    ) -> Mapping[resources.ResourceControl, round_model.ControlStatus]:
        """Return for each control whether it works on this node, and why
        not.
        """
        told = {
            kind: round_model.ControlStatus(False, why)
            for kind, why in self._missing.items()
        }
        kinds = settings.controls
        without = self._applier.without_effect(kinds)
        for kind, (works, why) in self._applier.availability(kinds).items():
            told[kind] = round_model.ControlStatus(works, why, without[kind])
        unwanted = round_model.ControlStatus(
            False, 'not in [fairness] controls'
        )
        return {
            kind: told[kind] if kind in kinds else unwanted
            for kind in resources.CONTROLS
            if kind in told or kind not in kinds
        }

    def _restore_unsteered(
        self,
        vms: Incarnations,
        settings: settings_module.Settings,
        *,
        enforces: bool,
    ) -> tuple[control.ApplyResult, ...]:
        """Restore the values of controls and VMs that are not steered any
        more.
        """
        try:
            if not enforces:
                return self._applier.restore()
            let_go = self._restore_controls(
                self._applier.kinds - settings.controls
            )
            keys = exempt_keys(vms, settings)
            return (*let_go, *(self._applier.restore(keys) if keys else ()))
        except exception.StateError as error:
            LOG.error('%s', error)
            return ()

    def _restore_controls(
        self, unwanted: frozenset[resources.ResourceControl]
    ) -> tuple[control.ApplyResult, ...]:
        """Restore unwanted controls, repeatedly until all are restored."""
        before, self._released = self._released, unwanted
        left = {knob.control for knob in self._applier.recorded}
        if unwanted <= before and left.isdisjoint(unwanted):
            return ()
        return self._applier.restore(None, unwanted)

    def _write_changes(
        self,
        present: allocation.Allocation,
        decided: round_model.DecidedRound | None,
        settings: settings_module.Settings,
    ) -> tuple[control.ApplyResult, ...]:
        wanted = (
            decided.wanted
            if decided is not None
            else self._last_applied(present)
        )
        return self._applier.apply(
            changes.changes(
                wanted,
                present,
                settings_module.TOLERANCE,
                tolerances=settings_module.TOLERANCES,
            )
        )

    def _last_applied(
        self, present: allocation.Allocation
    ) -> allocation.Allocation:
        """Return the values applied last, without those of VMs that left."""
        return {
            knob: value
            for knob, value in self._expected.items()
            if knob in present
        }


def exempt_keys(
    vms: Incarnations, settings: settings_module.Settings
) -> frozenset[str]:
    """Return the keys of the VMs that an operator exempted."""
    return frozenset(
        item.key for item in vms if settings.is_exempt(item.instance)
    )


def _values_after(
    present: allocation.Allocation,
    outcomes: Sequence[control.ApplyResult],
    restored: Sequence[control.ApplyResult],
) -> tuple[allocation.Allocation, allocation.Allocation]:
    """Return the kernel values after a round, and those of them that are in
    force.
    """
    applied = dict(present)
    for item in (*restored, *outcomes):
        if item.written:
            applied[item.change.knob] = item.change.after
        elif item.gone:
            applied.pop(item.change.knob, None)
    released = {item.change.knob for item in restored}
    kept = {knob: v for knob, v in applied.items() if knob not in released}
    return applied, kept
