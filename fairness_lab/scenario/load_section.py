# SPDX-License-Identifier: Apache-2.0


"""The part of a scenario file that says what VMs want over time."""

from collections.abc import Iterator
import dataclasses
import math

import numpy as np

from fairness_lab.scenario import scenario
from fairness_lab.scenario import yaml
from fairness_lab.simulator import loops
from nova_fairness.model import resources

Value = yaml.Value

LOAD: dict[str, tuple[str, float]] = {
    'cpu': ('cpu_time', 1.0),
    'memory_mib': ('memory', scenario.MIB),
    'disk_read_mib_s': ('disk_read', scenario.MIB),
    'disk_write_mib_s': ('disk_written', scenario.MIB),
    'net_receive_mbit_s': ('net_received', scenario.MBIT),
    'net_send_mbit_s': ('net_sent', scenario.MBIT),
}
"""Resource and unit by the key of a step, and column of a trace."""

_FLOWS = {'tcp_send_flows': 'net_sent', 'tcp_receive_flows': 'net_received'}
"""The laboratory's TCP connections: as fast as they can."""


CRON = 'cron'
"""A load of work that comes now and then and is done, however late."""

_LOOPS = {kind.value: kind for kind in loops.Loop}


def pass_over(section: yaml.Section, *keys: str) -> None:
    """Take keys that say how real machines do what is only counted here."""
    for key in keys:
        section.take(key, lambda value: value, None)


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
    """What a VM wants from a moment on; NaN leaves a thing as it was.

    :ivar at_s: seconds since the begin.
    :ivar demand: (r,) as in :class:`.model.Changes`.
    :ivar loop: how work comes to the VM; ``None`` if that is not said.
    :ivar threads: that do it, in a pool.
    """

    at_s: float
    demand: resources.Vector
    loop: loops.Loop | None = None
    threads: int = 1


def load(
    value: Value, groups: dict[str, str], length_s: float, interval_s: float
) -> dict[str, list[Step]]:
    """Read what each VM wants.

    :param groups: name that a VM shares with its copies, by its own.
    :param length_s: of the scenario, seconds.
    :param interval_s: of a round.
    :raises BadScenario: with file, line and what was expected.
    """
    found: dict[str, list[Step]] = {}
    for name, entry in value.entries().items():
        members = [vm for vm, group in groups.items() if name in {vm, group}]
        if not members:
            known = sorted(set(groups.values()))
            raise entry.wrong(f'a VM or group out of {", ".join(known[:10])}')
        steps = _steps(entry, length_s, interval_s)
        for vm in members:
            if vm in found:
                raise entry.wrong(f'one load of {vm}')
            found[vm] = steps
    return found


def _steps(value: Value, length_s: float, interval_s: float) -> list[Step]:
    told: list[tuple[Step, _Again]] = []
    for item in value.items():
        found = _step(item, interval_s)
        last_s = told[-1][0].at_s if told else -math.inf
        if not last_s < found[0].at_s < length_s:
            raise item.wrong(f'times that rise and stay below {length_s:g} s')
        told.append(found)
    ends_s = [step.at_s for step, _ in told[1:]] + [length_s]
    return [
        each
        for (step, again), end_s in zip(told, ends_s, strict=True)
        for each in again.of(step, end_s)
    ]


@dataclasses.dataclass(frozen=True)
class _Again:
    """A step that comes again and again, as a job of cron does.

    :ivar every_s: from one time to the next, seconds; 0: it comes once.
    :ivar length_s: for which it takes CPU each time, below ``every_s``.
    """

    every_s: float = 0.0
    length_s: float = 0.0

    def of(self, step: Step, end_s: float) -> Iterator[Step]:
        """Tell the steps that it stands for, up to the next one."""
        yield step
        if not self.every_s:
            return
        rest = np.full(len(step.demand), np.nan)
        rest[resources.RESOURCES.index('cpu_time')] = 0.0
        for number in range(math.ceil((end_s - step.at_s) / self.every_s)):
            at_s = step.at_s + number * self.every_s
            if number:
                yield dataclasses.replace(step, at_s=at_s)
            if at_s + self.length_s < end_s:
                yield Step(at_s + self.length_s, rest)


def _again(section: yaml.Section) -> _Again:
    every_s = section.take('every', Value.positive, 0.0)
    if not every_s:
        return _Again()
    length_s = section.need('for', Value.positive)
    if length_s >= every_s:
        raise section.value.wrong('a time "for" that is below "every"')
    return _Again(every_s, length_s)


def _job(
    section: yaml.Section, cpu: float, interval_s: float
) -> tuple[float, _Again]:
    """Read a job of cron: it comes in whole rounds, and is done when it can.

    :param cpu: CPUs that it takes on average.
    :returns: CPUs that it takes while it comes, and when it does.
    """
    period_s = section.need('period_s', Value.positive)
    rounds = max(1, math.ceil(cpu * period_s / interval_s - 1e-9))
    length_s = rounds * interval_s
    if not cpu * period_s > 0 or length_s >= period_s:
        return cpu, _Again()
    return cpu * period_s / length_s, _Again(period_s, length_s)


def _step(value: Value, interval_s: float) -> tuple[Step, _Again]:
    section = value.section()
    at_s = section.need('at', Value.number)
    again = _again(section)
    demand = np.full(len(resources.RESOURCES), np.nan)
    for key, (name, unit) in LOAD.items():
        amount = section.take(key, _amount, math.nan)
        demand[resources.RESOURCES.index(name)] = amount * unit
    for key, name in _FLOWS.items():
        flows = section.take(key, Value.integer, None)
        place = resources.RESOURCES.index(name)
        if flows is not None and np.isnan(demand[place]):
            demand[place] = math.inf if flows else 0.0
    pass_over(section, 'disk_depth', 'disk_block_kib', 'wake_hz')
    load = section.take('load', lambda v: v.one_of((*_LOOPS, CRON)), '')
    threads = section.take('threads', lambda v: v.integer(1, 1024), 1)
    if load == CRON:
        cpu = resources.RESOURCES.index('cpu_time')
        demand[cpu], again = _job(section, float(demand[cpu]), interval_s)
    pass_over(section, 'think_s', 'period_s')
    section.finish()
    memory = resources.RESOURCES.index('memory')
    demand[memory] += scenario.IDLE_MEMORY_MIB * scenario.MIB
    loop = loops.Loop.OPEN if load == CRON else _LOOPS.get(load)
    return Step(at_s, demand, loop, threads), again


def _amount(value: Value) -> float:
    if value.node.value == 'max':
        return math.inf
    return value.number()
