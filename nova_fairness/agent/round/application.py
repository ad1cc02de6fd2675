# SPDX-License-Identifier: Apache-2.0

"""Values that a round writes, restores, and expects to find."""

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
    """Remembers what it applied last.

    :param applier: writes the host.
    :param missing: why there is no control of some kinds.
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
        """Write the difference between what is wanted and what is there.

        :param present: what the kernel holds before.
        :param decided: ``None`` if all shall stay as it is.
        :param enforces: ``False`` gives back everything instead.
        :returns: what the kernel holds then, counts, and what went wrong.
        """
        drifted = len(control.drift(self._expected, present))
        let_go = self._let_go(vms, settings, enforces=enforces)
        outcomes = self._write(present, decided, settings) if enforces else ()
        applied, kept = _applied(present, outcomes, let_go)
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

    def held(self, present: allocation.Allocation) -> allocation.Allocation:
        """Values that this agent, or one before it, applied last.

        Other hands' values are repaired, not built upon.
        """
        recorded = self._applier.recorded
        inherited = {
            knob: value for knob, value in present.items() if knob in recorded
        }
        return {**inherited, **self._own(present)}

    def restore(self) -> tuple[control.ApplyResult, ...]:
        """Restore every control to the value it was found with.

        :raises StateError: if what was restored cannot be noted.
        """
        self._expected = {}
        return self._applier.restore()

    def controls(
        self, settings: settings_module.Settings
    ) -> Mapping[resources.ResourceControl, round_model.ControlStatus]:
        """Tell which controls work on this node."""
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

    def _let_go(
        self,
        vms: Incarnations,
        settings: settings_module.Settings,
        *,
        enforces: bool,
    ) -> tuple[control.ApplyResult, ...]:
        """Restore what is not to be steered any more."""
        try:
            if not enforces:
                return self._applier.restore()
            let_go = self._release(self._applier.kinds - settings.controls)
            keys = exempt(vms, settings)
            return (*let_go, *(self._applier.restore(keys) if keys else ()))
        except exception.StateError as error:
            LOG.error('%s', error)
            return ()

    def _release(
        self, unwanted: frozenset[resources.ResourceControl]
    ) -> tuple[control.ApplyResult, ...]:
        """Restore controls that are not to be steered, until that is done."""
        before, self._released = self._released, unwanted
        left = {knob.control for knob in self._applier.recorded}
        if unwanted <= before and left.isdisjoint(unwanted):
            return ()
        return self._applier.restore(None, unwanted)

    def _write(
        self,
        present: allocation.Allocation,
        decided: round_model.DecidedRound | None,
        settings: settings_module.Settings,
    ) -> tuple[control.ApplyResult, ...]:
        wanted = decided.wanted if decided is not None else self._own(present)
        return self._applier.apply(
            changes.changes(
                wanted,
                present,
                settings_module.TOLERANCE,
                tolerances=settings_module.TOLERANCES,
            )
        )

    def _own(self, present: allocation.Allocation) -> allocation.Allocation:
        """Values applied last, of VMs that are still there."""
        return {
            knob: value
            for knob, value in self._expected.items()
            if knob in present
        }


def exempt(
    vms: Incarnations, settings: settings_module.Settings
) -> frozenset[str]:
    """Keys of the VMs that an operator exempted."""
    return frozenset(
        item.key for item in vms if settings.is_exempt(item.instance)
    )


def _applied(
    present: allocation.Allocation,
    outcomes: Sequence[control.ApplyResult],
    let_go: Sequence[control.ApplyResult],
) -> tuple[allocation.Allocation, allocation.Allocation]:
    """Values that the kernel holds now, and those of them that are to stay."""
    applied = dict(present)
    for item in (*let_go, *outcomes):
        if item.written:
            applied[item.change.knob] = item.change.after
        elif item.gone:
            applied.pop(item.change.knob, None)
    released = {item.change.knob for item in let_go}
    kept = {knob: v for knob, v in applied.items() if knob not in released}
    return applied, kept
