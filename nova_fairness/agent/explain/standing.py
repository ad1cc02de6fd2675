# SPDX-License-Identifier: Apache-2.0


"""Collects the facts of a round that explain one of its VMs."""

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

MIN_COMPARISON_SCALE = 0.25
"""Smallest scale of a comparison between owners. The scale is their mean
heaviness, which a metric with credits can bring near to 0."""

LIMIT_TOLERANCE = 1.01
"""Factor within which a weight counts as equal to an allowed limit."""

RESERVED_MAJORITY = 0.5
"""Part of the heaviness from which reserved resources count as its cause."""

CPU = resources.RESOURCES.index('cpu_time')


@dataclasses.dataclass(frozen=True, eq=False)
class JudgedVm:
    """A VM of a round that was measured and decided.

    :ivar done: the round.
    :ivar row: of the VM.
    :ivar parts: of the heaviness by resource; ``None`` if unknown.
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
        """The row of the VM's owner among the users."""
        return int(self.measured.ownership.user_index[self.row])

    def waiting(self, control_index: int) -> resources.Mask:
        """Return which VMs wait for the resource of a control, (n,)."""
        return np.asarray(self.decided.wanting[:, control_index])


class LargestCause(NamedTuple):
    """The largest cause of an owner's heaviness.

    :ivar resource: name of the resource; empty if unknown.
    :ivar used: use of the resource by all VMs of the owner, and the owner's
        quota.
    """

    cause: situation.HeavinessCause = situation.HeavinessCause.UNKNOWN
    resource: str = ''
    used: tuple[float, float] | None = None


def collect_facts(judged: JudgedVm) -> situation.SituationFacts:
    """Return the facts that explain a VM."""
    vm = judged.done.incarnations[judged.row]
    found = largest_cause(judged)
    preference = judged.decided.preference
    return situation.SituationFacts(
        entity=judged.settings.entity,
        enforced=judged.done.enforced,
        exempt=judged.settings.is_exempt(vm.instance),
        paused=vm.paused,
        cpu=_cpu(judged),
        sharing=tuple(_contended_shares(judged)),
        waits=tuple(_uncontended_waits(judged)),
        cause=found.cause,
        heaviest=found.resource,
        used=found.used,
        preference=1.0
        if preference is None
        else float(preference[judged.row]),
        best_effort=vm.key in judged.decided.best_effort,
    )


def largest_cause(judged: JudgedVm) -> LargestCause:
    """Return the largest cause of the heaviness of a VM's owner."""
    parts, row = judged.parts, judged.row
    if parts is None:
        return LargestCause()
    of_vm = parts.by_resource[row]
    place = int(of_vm.argmax())
    if parts.elsewhere[row] > max(of_vm[place], 0.0):
        return LargestCause(situation.HeavinessCause.ELSEWHERE)
    if of_vm[place] <= 0:
        return LargestCause()
    name = resources.RESOURCES.names[place]
    charged = parts.reserved[row].clip(0.0).sum()
    if charged >= RESERVED_MAJORITY * of_vm.clip(0.0).sum():
        return LargestCause(situation.HeavinessCause.RESERVED, name)
    of_owner, owner = judged.measured.user_usage, judged.owner
    if of_owner is None:
        return LargestCause(situation.HeavinessCause.USED, name)
    used = in_rate_units(judged.done, judged.measured, of_owner[owner])
    quota = in_rate_units(
        judged.done, judged.measured, judged.measured.quota[owner]
    )
    return LargestCause(
        situation.HeavinessCause.USED,
        name,
        (float(used[place]), float(quota[place])),
    )


def in_rate_units(
    done: round_model.Round,
    measured: round_model.MeasuredRound,
    amounts: resources.Vector,
) -> resources.Vector:
    """Convert amounts of an interval to CPUs, bytes per second or bytes.

    :param amounts: (..., r).
    """
    rates = np.where(
        resources.RESOURCES.time_shared,
        amounts / measured.usage.interval_s,
        amounts,
    )
    rates[..., CPU] /= done.node.speed_factor
    return rates


def compare_heaviness(
    judged: JudgedVm, control_index: int
) -> situation.HeavinessStanding:
    """Compare the VM with VMs of other owners that wait for the same resource.

    Each owner counts once, however many VMs they have.

    :param control_index: of the control of the resource.
    """
    measured, row = judged.measured, judged.row
    owners = measured.ownership.user_index
    waits = judged.waiting(control_index) & (owners != judged.owner)
    others = np.unique(owners[waits])
    if not others.size:
        return situation.HeavinessStanding.ALONE
    heavy = measured.heaviness
    means = [heavy[waits & (owners == other)].mean() for other in others]
    own = float(heavy[row])
    scale = max(MIN_COMPARISON_SCALE, float(np.abs([own, *means]).mean()))
    apart = (own - float(np.mean(means))) / scale
    if abs(apart) <= situation.SIGNIFICANT_PART:
        return situation.HeavinessStanding.EVEN
    return (
        situation.HeavinessStanding.HEAVIER
        if apart > 0
        else situation.HeavinessStanding.LIGHTER
    )


def is_steered(
    done: round_model.Round, key: str, control: resources.ResourceControl
) -> bool:
    """Check whether a weight has an effect on a VM.

    :param key: of the VM's incarnation.
    """
    working = done.controls.get(control)
    if working is not None:
        return working.works and key not in working.without_effect
    return allocation.Knob(key, control) in done.applied


def _cpu(judged: JudgedVm) -> situation.VmCpu:
    done, measured, row = judged.done, judged.measured, judged.row
    newest = in_rate_units(done, measured, measured.usage.newest)[:, CPU]
    wanted = _wanted_cpus(judged)
    vm = done.incarnations[row].instance
    node = len(done.node.cpus)
    busy = measured.usage.busy_part(done.node.cpus)
    host = busy * node - float(newest.sum())
    return situation.VmCpu(
        gets=float(newest[row]),
        wants=max(float(wanted[row]), float(newest[row])),
        most=float(min(vm.vcpus, node)),
        limit=_flavor_cpu_limit(vm.extra_specs, vm.vcpus),
        host=max(0.0, host) if math.isfinite(host) else None,
        node=float(node),
    )


def _wanted_cpus(judged: JudgedVm) -> usage_model.Scalars:
    """Return the CPUs that the VMs want, (n,)."""
    measured = judged.measured
    given = measured.wanted
    if given is None:
        given = measured.usage.newest
    return np.asarray(in_rate_units(judged.done, measured, given)[:, CPU])


def _flavor_cpu_limit(specs: Mapping[str, str], vcpus: int) -> float | None:
    """Return the CPU limit of a flavor; ``None`` if it has none."""
    try:
        quota = float(specs['quota:cpu_quota'])
        period = float(specs.get('quota:cpu_period', 100_000))
    except (KeyError, ValueError):
        return None
    if quota <= 0 or period <= 0:
        return None
    return quota / period * vcpus


def _contended_shares(judged: JudgedVm) -> Iterator[situation.ContendedShare]:
    """Yield the division of each contended resource that the VM waits for."""
    owners = judged.measured.ownership.user_index
    for place, control in enumerate(resources.CONTROLS):
        waits = judged.waiting(place)
        if not (waits[judged.row] and judged.decided.contended[place]):
            continue
        weight = float(judged.decided.weights[judged.row, place])
        is_cpu = control is resources.ResourceControl.CPU
        fair, has = _cpu_parts(judged) if is_cpu else (None, None)
        yield situation.ContendedShare(
            resource=_most_used_resource(judged, control),
            steered=is_steered(
                judged.done, judged.done.incarnations[judged.row].key, control
            ),
            standing=compare_heaviness(judged, place),
            waiting=len(np.unique(owners[waits])),
            fair=fair,
            has=has,
            weight=weight,
            at_end=_is_at_limit(judged, weight, place),
            is_place=judged.preset is not policy_base.Preset.DEFAULT,
        )


def _is_at_limit(judged: JudgedVm, weight: float, control_index: int) -> bool:
    """Check whether a weight is the largest or smallest allowed one."""
    if judged.preset is not policy_base.Preset.DEFAULT:
        return False
    farthest = math.sqrt(float(judged.settings.max_ratios()[control_index]))
    return max(weight, 1 / max(weight, 1e-9)) * LIMIT_TOLERANCE >= farthest


def _cpu_parts(judged: JudgedVm) -> tuple[float, float]:
    """Return the owner's parts of the node's CPUs: by quota, and in use."""
    measured = judged.measured
    index = measured.ownership.user_index
    owners, cell = np.unique(index, return_inverse=True)
    newest = in_rate_units(judged.done, measured, measured.usage.newest)[
        :, CPU
    ]
    nodes = len(judged.done.node.cpus)
    place = int(np.searchsorted(owners, judged.owner))
    used = np.bincount(cell, newest, len(owners))
    wanted = np.bincount(cell, _wanted_cpus(judged), len(owners))
    quota = measured.quota[owners, CPU]
    fair, _ = filling.fill(
        # What the host uses is nobody's, whoever that may slow down.
        np.array([min(nodes, max(float(used.sum()), 1e-9))]),
        np.zeros(len(owners), dtype=np.intp),
        wanted.astype(np.float64),
        np.maximum(quota, 1e-9),
    )
    return float(fair[place]) / nodes, float(used[place]) / nodes


def _uncontended_waits(judged: JudgedVm) -> Iterator[str]:
    """Yield the resources that the VM waits for without contention."""
    for place, control in enumerate(resources.CONTROLS):
        contended = judged.decided.contended[place]
        if judged.waiting(place)[judged.row] and not contended:
            yield _most_used_resource(judged, control)


def _most_used_resource(
    judged: JudgedVm, control: resources.ResourceControl
) -> str:
    """Return the name of a control's resource that the VM uses most."""
    steered = np.flatnonzero(resources.RESOURCES.steered_by(control))
    used = judged.measured.usage.amounts[judged.row, steered]
    return resources.RESOURCES.names[int(steered[used.argmax()])]
