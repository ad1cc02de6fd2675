# SPDX-License-Identifier: Apache-2.0

"""Changes from the present values of the kernel to the wanted ones."""

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
    """Return the changes that make the present state the wanted one.

    :param wanted: values of the steered knobs; other knobs stay unchanged.
    :param present: values in the kernel; a missing knob is unknown and is
        written.
    :param tolerance: largest difference that is not written, relative to the
        present value, >= 0.
    :param tolerances: tolerance of each control with one of its own.
    :returns: sorted by incarnation, then in the order of the controls.
    """
    found = [
        allocation.Change(knob, before, value)
        for knob, value in wanted.items()
        if (before := present.get(knob)) is None
        or differ(value, before, tolerances.get(knob.control, tolerance))
    ]
    return tuple(sorted(found, key=_sort_key))


@overload
def differ(wanted: int, present: int, tolerance: float) -> bool: ...


@overload
def differ(
    wanted: usage_model.Scalars, present: usage_model.Scalars, tolerance: float
) -> resources.Mask: ...


def differ(wanted: Any, present: Any, tolerance: float) -> Any:
    """Return whether units differ enough to be written, of one or many VMs.

    :param tolerance: part of the present units, >= 0.
    """
    return abs(wanted - present) > tolerance * abs(present)


def _sort_key(change: allocation.Change) -> tuple[str, int]:
    knob = change.knob
    return knob.incarnation, resources.CONTROLS.index(knob.control)
