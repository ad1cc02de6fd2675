# SPDX-License-Identifier: Apache-2.0

"""What must be written so that the present state becomes the wanted one."""

from collections.abc import Mapping
import types

from nova_fairness.model import allocation
from nova_fairness.model import resources

_ALL: Mapping[resources.Control, float] = types.MappingProxyType({})


def changes(
    wanted: allocation.Allocation,
    present: allocation.Allocation,
    tolerance: float,
    tolerances: Mapping[resources.Control, float] = _ALL,
) -> tuple[allocation.Change, ...]:
    """Compare the wanted state with the present one.

    :param wanted: knobs that are steered; others are left as they are.
    :param present: what the kernel holds; a missing knob is unknown and is
        written.
    :param tolerance: relative to the present value, >= 0; a smaller
        difference is not worth a write.
    :param tolerances: of controls that have another than all.
    :returns: sorted by incarnation, then in the order of the controls.
    """
    found = [
        allocation.Change(knob, present.get(knob), value)
        for knob, value in wanted.items()
        if _differs(value, present.get(knob), _of(knob, tolerances, tolerance))
    ]
    return tuple(sorted(found, key=_order))


def _of(
    knob: allocation.Knob,
    tolerances: Mapping[resources.Control, float],
    tolerance: float,
) -> float:
    return tolerances.get(knob.control, tolerance)


def _differs(wanted: int, present: int | None, tolerance: float) -> bool:
    if present is None:
        return True
    return abs(wanted - present) > tolerance * abs(present)


def _order(change: allocation.Change) -> tuple[str, int]:
    knob = change.knob
    return knob.incarnation, resources.CONTROLS.index(knob.control)
