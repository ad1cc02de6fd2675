# SPDX-License-Identifier: Apache-2.0

"""The formulas of the original, evaluated one VM at a time.

An independent evaluation of the greediness metric and of the thesis policy
(paper, sections 4.3, 5.2 and 5.3), written from the formulas and apart from
the rooms that the agent runs. From the recorded counters, what the node has,
and the sizes of the VMs it says how many CPU shares each VM should have been
given; it never looks at what the agent made of them.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

MEMORY = 'memory'
CPU_TIME = 'cpu_time'

LEAST_SHARES = 1
MOST_SHARES = 100

Amounts = dict[str, float]
"""One number by resource."""

Round = Mapping[str, Any]
"""One line of the agent's record."""


@dataclasses.dataclass(frozen=True)
class _Vm:
    """Memory of a VM from one round to the next.

    :ivar read_at_s: when its counters were read.
    :ivar counters: as they were read.
    :ivar rates: smoothed usage, per second but for memory; ``None`` until
        the end of its first interval.
    """

    read_at_s: float
    counters: Mapping[str, float | None]
    rates: Amounts | None = None


def cpu_shares(
    rounds: Sequence[Round], decay: float = 0.5
) -> list[dict[str, int]]:
    """Evaluate each round of one node that is a whole cloud.

    :param rounds: consecutive rounds of one node's agent.
    :param decay: part of the newest interval in the smoothed usage, 0..1;
        the first interval of a VM counts whole.
    :returns: CPU shares by UUID for each round; a VM is missing while it has
        not been seen at both ends of an interval.
    """
    known: dict[str, _Vm] = {}
    last_number = 0
    result = []
    for entry in rounds:
        # A number that does not grow is that of an agent started anew,
        # which remembers no usage.
        if entry['round'] <= last_number:
            known = {}
        last_number = entry['round']
        known = {
            _incarnation_key(vm): _update_usage(
                known.get(_incarnation_key(vm)), vm, entry, decay
            )
            for vm in entry['instances']
        }
        result.append(_shares_of_vms(known, entry))
    return result


def _incarnation_key(vm: Mapping[str, Any]) -> str:
    """Key of one start of a VM, whose counters begin at zero."""
    return str(vm.get('incarnation', vm['uuid']))


def _update_usage(
    before: _Vm | None, vm: Mapping[str, Any], entry: Round, decay: float
) -> _Vm:
    """Bring the usage of a VM up to date (paper, section 5.1.2)."""
    counters = vm['counters']
    read_at_s = vm.get('read_at_s') or entry['time_s']
    if before is None:
        return _Vm(read_at_s, counters)
    elapsed_s = read_at_s - before.read_at_s
    rates = {}
    for name in entry['node']['capacity']:
        value, last = counters.get(name), before.counters.get(name)
        if name == MEMORY:
            rates[name] = value or 0.0
            continue
        # What was not read, or ran backwards, counts as nothing.
        spent = max(0.0, value - last) if None not in (value, last) else 0.0
        rates[name] = spent / elapsed_s
        if name == CPU_TIME:
            rates[name] *= entry['node']['speed_factor']
        if before.rates is not None:
            rates[name] *= decay
            rates[name] += before.rates[name] * (1 - decay)
    return _Vm(read_at_s, counters, rates)


def _shares_of_vms(known: Mapping[str, _Vm], entry: Round) -> dict[str, int]:
    vms = entry['instances']
    heaviness = _heaviness(known, vms, entry['node'])
    return {
        vm['uuid']: shares(heaviness[_incarnation_key(vm)])
        for vm in vms
        if known[_incarnation_key(vm)].rates is not None
    }


def _heaviness(
    known: Mapping[str, _Vm],
    vms: Sequence[Mapping[str, Any]],
    node: Mapping[str, Any],
) -> Amounts:
    """Heaviness by which each VM is treated.

    Heaviness is relative to the supply, so one second of it does as well as
    the whole interval.
    """
    supply = node['capacity']
    users = sorted({vm['user'] for vm in vms})
    norm = {
        name: len(users) / len(supply) / amount if amount else 0.0
        for name, amount in supply.items()
    }
    endowment = {
        _incarnation_key(vm): _endowment(vm, vms, supply) for vm in vms
    }
    nothing = dict.fromkeys(supply, 0.0)
    usage = {key: vm.rates or nothing for key, vm in known.items()}
    greed = _greediness(usage, endowment, norm)
    surplus = {}
    for user in users:
        mine = [_incarnation_key(vm) for vm in vms if vm['user'] == user]
        quota = sum(supply[name] / len(users) * norm[name] for name in norm)
        owned = sum(
            endowment[key][name] * norm[name] for key in mine for name in norm
        )
        surplus[user] = sum(greed[key] for key in mine) - (quota - owned)
    return {
        _incarnation_key(vm): surplus[vm['user']] + greed[_incarnation_key(vm)]
        for vm in vms
    }


def _endowment(
    vm: Mapping[str, Any], vms: Sequence[Mapping[str, Any]], supply: Amounts
) -> Amounts:
    """Endowment of a VM per second (paper, section 5.2.1)."""
    result = {name: amount / len(vms) for name, amount in supply.items()}
    vcpus = sum(other['vcpus'] for other in vms)
    result[CPU_TIME] = supply[CPU_TIME] / vcpus * vm['vcpus']
    memory = sum(other['memory_bytes'] for other in vms)
    if MEMORY in supply:
        fitting = min(1.0, supply[MEMORY] / memory)
        result[MEMORY] = vm['memory_bytes'] * fitting
    return result


def _greediness(
    usage: Mapping[str, Amounts],
    endowment: Mapping[str, Amounts],
    norm: Amounts,
) -> Amounts:
    """Greediness: charge use beyond the endowment, credit less use."""
    greed = dict.fromkeys(usage, 0.0)
    for name in norm:
        above = {}
        below = {}
        for uuid in usage:
            gap = usage[uuid][name] - endowment[uuid][name]
            above[uuid] = max(0.0, gap)
            below[uuid] = min(0.0, gap)
        left = sum(below.values())
        ratio = sum(above.values()) / (left or -1.0)
        ratio = max(-1.0, ratio)
        for uuid in usage:
            charge = above[uuid] - below[uuid] * ratio
            greed[uuid] += charge * norm[name]
    return greed


def priority(heaviness: float) -> int:
    """Thesis's priority, -50 (best) to 50 (worst)."""
    if heaviness >= 0:
        return int(min(50.0, 50.0 * heaviness))
    return int(max(-50.0, 125.0 * heaviness))


def shares(heaviness: float) -> int:
    """CPU shares of the thesis for a heaviness, 1 to 100."""
    span = MOST_SHARES - LEAST_SHARES
    place = (50 - priority(heaviness)) * span // 100 + LEAST_SHARES
    return min(MOST_SHARES, max(LEAST_SHARES, place))
