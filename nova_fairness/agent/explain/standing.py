# SPDX-License-Identifier: Apache-2.0


"""From a round to the facts that are said of one of its VMs."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import math
from typing import NamedTuple

import numpy as np

from nova_fairness.agent import settings as settings_module
from nova_fairness.agent.explain import parts as breakdown
from nova_fairness.agent.explain import situation
from nova_fairness.decide import policy as policy_base
from nova_fairness.model import allocation
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import filling

FINEST = 0.25
"""Owners are compared relative to how heavy they are on average; not below
this, because a metric with credits can be near zero for everybody."""

AT_END = 1.01
"""A weight this near to an allowed end is there."""

RESERVED = 0.5
"""Part of what makes an owner heavy from which it is what they reserved."""

CPU = resources.RESOURCES.index('cpu_time')


@dataclasses.dataclass(frozen=True, eq=False)
class JudgedVm:
    """A VM of a round that was measured and decided.

    :ivar row: of the VM.
    :ivar parts: of the heaviness; ``None`` if they are not known.
    """

    done: round_model.Round
    measured: round_model.MeasuredRound
    decided: round_model.DecidedRound
    row: int
    parts: breakdown.HeavinessParts | None
    settings: settings_module.Settings
    preset: policy_base.Preset = policy_base.Preset.DEFAULT

    @property
    def owner(self) -> int:
        """Row of the VM's owner among users."""
        return int(self.measured.ownership.user_index[self.row])

    def waiting(self, place: int) -> resources.Mask:
        """The VMs that wait for what a control steers, (n,)."""
        return np.asarray(self.decided.wanting[:, place])


class Heaviest(NamedTuple):
    """The largest cause of an owner's heaviness.

    :ivar resource: empty if it is not known.
    :ivar used: what the owner's VMs use of it in all, and the owner's quota.
    """

    cause: situation.HeavinessCause = situation.HeavinessCause.UNKNOWN
    resource: str = ''
    used: tuple[float, float] | None = None


def facts(judged: JudgedVm) -> situation.SituationFacts:
    """Collect what is said of a VM."""
    vm = judged.done.incarnations[judged.row]
    found = heaviest(judged)
    preference = judged.decided.preference
    return situation.SituationFacts(
        entity=judged.settings.entity,
        enforced=judged.done.enforced,
        exempt=judged.settings.is_exempt(vm.instance),
        paused=vm.paused,
        cpu=_cpu(judged),
        sharing=tuple(_shared(judged)),
        waits=tuple(_waits(judged)),
        cause=found.cause,
        heaviest=found.resource,
        used=found.used,
        preference=1.0
        if preference is None
        else float(preference[judged.row]),
        best_effort=vm.key in judged.decided.best_effort,
    )


def heaviest(judged: JudgedVm) -> Heaviest:
    """Say what makes the owner of a VM heaviest."""
    parts, row = judged.parts, judged.row
    if parts is None:
        return Heaviest()
    of_vm = parts.by_resource[row]
    place = int(of_vm.argmax())
    if parts.elsewhere[row] > max(of_vm[place], 0.0):
        return Heaviest(situation.HeavinessCause.ELSEWHERE)
    if of_vm[place] <= 0:
        return Heaviest()
    name = resources.RESOURCES.names[place]
    charged = parts.reserved[row].clip(0.0).sum()
    if charged >= RESERVED * of_vm.clip(0.0).sum():
        return Heaviest(situation.HeavinessCause.RESERVED, name)
    of_owner, owner = judged.measured.user_usage, judged.owner
    if of_owner is None:
        return Heaviest(situation.HeavinessCause.USED, name)
    used = in_units(judged.done, judged.measured, of_owner[owner])
    quota = in_units(
        judged.done, judged.measured, judged.measured.quota[owner]
    )
    return Heaviest(
        situation.HeavinessCause.USED,
        name,
        (float(used[place]), float(quota[place])),
    )


def in_units(
    done: round_model.Round,
    measured: round_model.MeasuredRound,
    amounts: resources.Vector,
) -> resources.Vector:
    """Turn amounts of the interval into CPUs, bytes per second, bytes.

    :param amounts: (..., r).
    """
    rates = np.where(
        resources.RESOURCES.time_shared,
        amounts / measured.usage.interval_s,
        amounts,
    )
    rates[..., CPU] /= done.node.speed_factor
    return rates


def standing(judged: JudgedVm, place: int) -> situation.HeavinessStanding:
    """Compare the VM with those of others who wait for the same.

    Each owner counts once, however many VMs they have.

    :param place: of the control.
    """
    measured, row = judged.measured, judged.row
    owners = measured.ownership.user_index
    waits = judged.waiting(place) & (owners != judged.owner)
    others = np.unique(owners[waits])
    if not others.size:
        return situation.HeavinessStanding.ALONE
    heavy = measured.heaviness
    means = [heavy[waits & (owners == other)].mean() for other in others]
    own = float(heavy[row])
    scale = max(FINEST, float(np.abs([own, *means]).mean()))
    apart = (own - float(np.mean(means))) / scale
    if abs(apart) <= situation.DIFFERS:
        return situation.HeavinessStanding.EVEN
    return (
        situation.HeavinessStanding.HEAVIER
        if apart > 0
        else situation.HeavinessStanding.LIGHTER
    )


def is_steered(
    done: round_model.Round, key: str, control: resources.ResourceControl
) -> bool:
    """Tell whether a weight has an effect on a VM.

    :param key: of its incarnation.
    """
    working = done.controls.get(control)
    if working is not None:
        return working.works and key not in working.without_effect
    return allocation.Knob(key, control) in done.applied


def _cpu(judged: JudgedVm) -> situation.Cpu:
    done, measured, row = judged.done, judged.measured, judged.row
    newest = in_units(done, measured, measured.usage.newest)[:, CPU]
    wanted = _wanted(judged)
    vm = done.incarnations[row].instance
    node = len(done.node.cpus)
    busy = measured.usage.busy_part(done.node.cpus)
    host = busy * node - float(newest.sum())
    return situation.Cpu(
        gets=float(newest[row]),
        wants=max(float(wanted[row]), float(newest[row])),
        most=float(min(vm.vcpus, node)),
        limit=_limit(vm.extra_specs, vm.vcpus),
        host=max(0.0, host) if math.isfinite(host) else None,
        node=float(node),
    )


def _wanted(judged: JudgedVm) -> usage_model.Scalars:
    """CPUs that VMs want, (n,)."""
    measured = judged.measured
    given = measured.wanted
    if given is None:
        given = measured.usage.newest
    return np.asarray(in_units(judged.done, measured, given)[:, CPU])


def _limit(specs: Mapping[str, str], vcpus: int) -> float | None:
    """Read how many CPUs a flavor allows; ``None`` if it names no limit."""
    try:
        quota = float(specs['quota:cpu_quota'])
        period = float(specs.get('quota:cpu_period', 100_000))
    except (KeyError, ValueError):
        return None
    if quota <= 0 or period <= 0:
        return None
    return quota / period * vcpus


def _shared(judged: JudgedVm) -> Iterator[situation.ContendedShare]:
    """Say how things are shared for which others make the VM wait."""
    owners = judged.measured.ownership.user_index
    for place, control in enumerate(resources.CONTROLS):
        waits = judged.waiting(place)
        if not (waits[judged.row] and judged.decided.contended[place]):
            continue
        weight = float(judged.decided.weights[judged.row, place])
        is_cpu = control is resources.ResourceControl.CPU
        fair, has = _parts(judged) if is_cpu else (None, None)
        yield situation.ContendedShare(
            resource=_most(judged, control),
            steered=is_steered(
                judged.done, judged.done.incarnations[judged.row].key, control
            ),
            standing=standing(judged, place),
            waiting=len(np.unique(owners[waits])),
            fair=fair,
            has=has,
            weight=weight,
            at_end=_at_end(judged, weight, place),
            is_place=judged.preset is not policy_base.Preset.DEFAULT,
        )


def _at_end(judged: JudgedVm, weight: float, place: int) -> bool:
    """Tell whether a weight is as far from neutral as it may be."""
    if judged.preset is not policy_base.Preset.DEFAULT:
        return False
    farthest = math.sqrt(float(judged.settings.ratios()[place]))
    return max(weight, 1 / max(weight, 1e-9)) * AT_END >= farthest


def _parts(judged: JudgedVm) -> tuple[float, float]:
    """The owner's part of the node's CPUs: by quota, and what they have."""
    measured = judged.measured
    index = measured.ownership.user_index
    owners, cell = np.unique(index, return_inverse=True)
    newest = in_units(judged.done, measured, measured.usage.newest)[:, CPU]
    nodes = len(judged.done.node.cpus)
    place = int(np.searchsorted(owners, judged.owner))
    used = np.bincount(cell, newest, len(owners))
    wanted = np.bincount(cell, _wanted(judged), len(owners))
    quota = measured.quota[owners, CPU]
    fair, _ = filling.fill(
        # What the host uses is nobody's, whoever that may slow down.
        np.array([min(nodes, max(float(used.sum()), 1e-9))]),
        np.zeros(len(owners), dtype=np.intp),
        wanted.astype(np.float64),
        np.maximum(quota, 1e-9),
    )
    return float(fair[place]) / nodes, float(used[place]) / nodes


def _waits(judged: JudgedVm) -> Iterator[str]:
    """Name what the VM waits for, but not because of other VMs."""
    for place, control in enumerate(resources.CONTROLS):
        contended = judged.decided.contended[place]
        if judged.waiting(place)[judged.row] and not contended:
            yield _most(judged, control)


def _most(judged: JudgedVm, control: resources.ResourceControl) -> str:
    """Name of the resource of a control that the VM uses most."""
    steered = np.flatnonzero(resources.RESOURCES.steered_by(control))
    used = judged.measured.usage.amounts[judged.row, steered]
    return resources.RESOURCES.names[int(steered[used.argmax()])]
