# SPDX-License-Identifier: Apache-2.0

"""Who shall have which class after some changes: pure but for questions."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nova_fairness import exception
from nova_fairness.apply import network_members
from nova_fairness.apply.network import layout
from nova_fairness.apply.network import plan
from nova_fairness.model import allocation
from nova_fairness.model import instance

LOWEST, HIGHEST = 1000, 10**12
"""Rates that a class may have, bytes per second."""


@dataclasses.dataclass(frozen=True)
class Running:
    """What is known of the VMs.

    :ivar found: those that run, by key, with their interfaces.
    :ivar is_running: whether the process of a key still runs.
    :ivar view: of whom something can be steered.
    """

    found: Mapping[str, instance.Incarnation]
    is_running: Callable[[str], bool]
    view: layout.View


def wanted(
    before: network_members.Members,
    changes: Sequence[allocation.Change],
    running: Running,
    capacity: int,
) -> tuple[network_members.Members, dict[str, str]]:
    """Classes that VMs shall have; those that ended have none.

    :param before: who has which class.
    :param changes: rates by knob, bytes per second; 0 takes a class away.
    :param capacity: what all rates together may be, bytes per second.
    :returns: who shall have which class, and why, by key, something is not
        as it was asked for.
    """
    after = {
        key: item
        for key, item in before.items()
        if key in running.found or running.is_running(key)
    }
    refused: dict[str, str] = {}
    for change in changes:
        try:
            _change(after, change, running)
        except exception.WriteRefused as error:
            refused[change.knob.incarnation] = str(error)
    kept, excess = network_members.limited(before, after, capacity)
    why = f'all rates would exceed {capacity} bytes per second'
    return kept, {**refused, **dict.fromkeys(excess, why)}


def _change(
    members: dict[str, plan.Member],
    change: allocation.Change,
    running: Running,
) -> None:
    key = change.knob.incarnation
    if change.after == 0:
        members.pop(key, None)
        return
    if not LOWEST <= change.after <= HIGHEST:
        raise exception.WriteRefused(
            f'a rate of {change.after}, expected 0 or {LOWEST}..{HIGHEST}'
        )
    if key not in running.found:
        raise exception.WriteRefused('its interfaces are not known')
    vm = running.found[key].instance
    nics, why = layout.steerable(vm, running.view)
    if not nics:
        raise exception.WriteRefused(f'without effect: {why}')
    members[key] = network_members.admitted(members, key, nics, change.after)
