# SPDX-License-Identifier: Apache-2.0

"""Changes that turn the present state into the wanted one."""

from collections.abc import Mapping
import types
from typing import Any
from typing import overload

from nova_fairness.model import allocation
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

_ALL: Mapping[resources.ResourceControl, float] = types.MappingProxyType({})


def changes(
    wanted: allocation.Allocation,
    present: allocation.Allocation,
    tolerance: float,
    tolerances: Mapping[resources.ResourceControl, float] = _ALL,
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
        allocation.Change(knob, before, value)
        for knob, value in wanted.items()
        if (before := present.get(knob)) is None
        or differ(value, before, tolerances.get(knob.control, tolerance))
    ]
    return tuple(sorted(found, key=_order))


@overload
def differ(wanted: int, present: int, tolerance: float) -> bool: ...


@overload
def differ(
    wanted: usage_model.Scalars, present: usage_model.Scalars, tolerance: float
) -> resources.Mask: ...


def differ(wanted: Any, present: Any, tolerance: float) -> Any:
    """Tell which units differ enough to be written; of one VM or of many.

    :param tolerance: part of the present units, >= 0.
    """
    return abs(wanted - present) > tolerance * abs(present)


def _order(change: allocation.Change) -> tuple[str, int]:
    knob = change.knob
    return knob.incarnation, resources.CONTROLS.index(knob.control)
