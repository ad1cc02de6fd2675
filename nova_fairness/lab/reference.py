# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The original's formulas once more, one VM at a time.

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


@dataclasses.dataclass
class _Vm:
    """What is remembered of a VM from one round to the next."""

    time_s: float
    counters: Mapping[str, float | None]
    usage: Amounts | None = None


def cpu_shares(
    rounds: Sequence[Round], decay: float = 0.5
) -> list[dict[str, int]]:
    """Evaluate each round of one node that is a whole cloud.

    :param rounds: consecutive rounds of one agent.
    :param decay: part of the newest interval in the smoothed usage, 0..1;
        the first interval of a VM counts whole.
    :returns: CPU shares by UUID for each round; a VM is missing while it has
        not been seen at both ends of an interval.
    """
    known: dict[str, _Vm] = {}
    result = []
    for entry in rounds:
        interval_s = _measure(known, entry, decay)
        result.append(_shares(known, entry, interval_s))
    return result


def _measure(known: dict[str, _Vm], entry: Round, decay: float) -> float:
    """Bring the usage of the VMs up to date; give the interval's length."""
    now_s = float(entry['time_s'])
    interval_s = float(entry['interval_s'])
    present = {vm['uuid']: vm for vm in entry['instances']}
    for uuid in set(known) - set(present):
        del known[uuid]
    for uuid, vm in present.items():
        before = known.get(uuid)
        if before is None or _was_reset(before.counters, vm['counters']):
            known[uuid] = _Vm(now_s, vm['counters'])
            continue
        interval_s = now_s - before.time_s
        new = _consumed(before.counters, vm['counters'], entry['node'])
        if before.usage is None:
            usage = new
        else:
            usage = {
                name: before.usage[name] * (1 - decay) + new[name] * decay
                for name in new
            }
        known[uuid] = _Vm(now_s, vm['counters'], usage)
    return interval_s


def _was_reset(
    before: Mapping[str, float | None], now: Mapping[str, float | None]
) -> bool:
    for name, value in now.items():
        last = before.get(name)
        if name == MEMORY or value is None or last is None:
            continue
        if value < last:
            return True
    return False


def _consumed(
    before: Mapping[str, float | None],
    now: Mapping[str, float | None],
    node: Mapping[str, Any],
) -> Amounts:
    amounts: Amounts = {}
    for name in node['capacity']:
        value, last = now.get(name), before.get(name)
        if value is None:
            amounts[name] = 0.0
        elif name == MEMORY:
            amounts[name] = value
        else:
            amounts[name] = 0.0 if last is None else value - last
    amounts[CPU_TIME] *= node['speed_factor']
    return amounts


def _shares(
    known: Mapping[str, _Vm], entry: Round, interval_s: float
) -> dict[str, int]:
    vms = entry['instances']
    heaviness = _heaviness(known, vms, entry['node'], interval_s)
    return {
        uuid: shares(value)
        for uuid, value in heaviness.items()
        if known[uuid].usage is not None
    }


def _heaviness(
    known: Mapping[str, _Vm],
    vms: Sequence[Mapping[str, Any]],
    node: Mapping[str, Any],
    interval_s: float,
) -> Amounts:
    """Give the heaviness by which each VM is treated, by UUID."""
    names = list(node['capacity'])
    supply = {
        name: node['capacity'][name] * (1.0 if name == MEMORY else interval_s)
        for name in names
    }
    users = sorted({vm['user'] for vm in vms})
    norm = {
        name: len(users) / len(names) / supply[name] if supply[name] else 0.0
        for name in names
    }
    endowment = {vm['uuid']: _endowment(vm, vms, supply) for vm in vms}
    nothing = dict.fromkeys(names, 0.0)
    usage = {vm['uuid']: known[vm['uuid']].usage or nothing for vm in vms}
    greed = _greediness(usage, endowment, norm)
    surplus = {}
    for user in users:
        mine = [vm['uuid'] for vm in vms if vm['user'] == user]
        quota = sum(supply[name] / len(users) * norm[name] for name in names)
        owned = sum(
            endowment[uuid][name] * norm[name]
            for uuid in mine
            for name in names
        )
        surplus[user] = sum(greed[uuid] for uuid in mine) - (quota - owned)
    return {vm['uuid']: surplus[vm['user']] + greed[vm['uuid']] for vm in vms}


def _endowment(
    vm: Mapping[str, Any], vms: Sequence[Mapping[str, Any]], supply: Amounts
) -> Amounts:
    result = {name: amount / len(vms) for name, amount in supply.items()}
    vcpus = sum(other['vcpus'] for other in vms)
    result[CPU_TIME] = supply[CPU_TIME] / vcpus * vm['vcpus']
    result[MEMORY] = float(vm['memory_bytes'])
    return result


def _greediness(
    usage: Mapping[str, Amounts],
    endowment: Mapping[str, Amounts],
    norm: Amounts,
) -> Amounts:
    """Charge what is taken beyond the endowment, credit what others took."""
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
    """Give the thesis's priority, -50 (best) to 50 (worst)."""
    if heaviness >= 0:
        return int(min(50.0, 50.0 * heaviness))
    return int(max(-50.0, 125.0 * heaviness))


def shares(heaviness: float) -> int:
    """Give the CPU shares of the thesis for a heaviness, 1 to 100."""
    span = MOST_SHARES - LEAST_SHARES
    place = (50 - priority(heaviness)) * span // 100 + LEAST_SHARES
    return min(MOST_SHARES, max(LEAST_SHARES, place))
