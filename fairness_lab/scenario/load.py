# SPDX-License-Identifier: Apache-2.0

"""Read the loads and events of a scenario file."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import functools
import math

from fairness_lab.scenario import demand
from fairness_lab.scenario import programs
from fairness_lab.scenario import values
from fairness_lab.scenario import yaml

REDIS = 'redis'
"""Key of what happens to Redis; its value says what."""

_NAMED = tuple(
    action
    for action in values.ScenarioAction
    if action.concerns is not values.Subject.REDIS
)
_REDIS_WORDS = tuple(
    action.value.removesuffix(f'-{REDIS}')
    for action in values.ScenarioAction
    if action.concerns is values.Subject.REDIS
)
_REAL_ONLY = (REDIS, values.ScenarioAction.RESTART_AGENT.value)
"""Events that mean nothing in the simulator: Redis is none there, and a
restart takes no time."""

_SIMULATED_ONLY = ('every', 'for')

Steps = tuple[demand.DemandStep, ...]


def load(
    value: yaml.YamlValue,
    vms: Mapping[str, values.Vm],
    duration_s: float,
    program: programs.Program,
) -> dict[str, Steps]:
    """Read the wants of each VM over time.

    :raises BadScenario: with file, line and what was expected.
    """
    groups: dict[str, list[values.Vm]] = {}
    for vm in vms.values():
        for name in {vm.name, vm.group}:
            groups.setdefault(name, []).append(vm)
    found: dict[str, Steps] = {}
    for name, entry in value.entries().items():
        if name not in groups:
            known = sorted({vm.group for vm in vms.values()})
            raise entry.wrong(f'a VM or group out of {", ".join(known[:10])}')
        # Copies are alike: what one may want, all may.
        steps = _read_steps(entry, groups[name][0], duration_s, program)
        for vm in groups[name]:
            if vm.name in found:
                raise entry.wrong(f'one load of {vm.name}')
            found[vm.name] = steps
    return found


def _read_steps(
    value: yaml.YamlValue,
    vm: values.Vm,
    duration_s: float,
    program: programs.Program,
) -> Steps:
    steps: list[demand.DemandStep] = []
    last_s = -math.inf
    for item in value.items():
        step = _read_step(item, vm, program)
        if not last_s < step.at_s < duration_s:
            raise item.wrong(
                f'times that rise and stay below {duration_s:g} s'
            )
        last_s = step.at_s
        steps.append(_with_both_rates(step, steps))
    return tuple(steps)


def _with_both_rates(
    step: demand.DemandStep, before: list[demand.DemandStep]
) -> demand.DemandStep:
    """Repeat the unchanged disk rate: a guest gets both rates at once."""
    read, write = step.disk_read_mib_s, step.disk_write_mib_s
    if read is None and write is None:
        return step
    last = [item for item in before if item.disk_read_mib_s is not None]
    kept = (
        (last[-1].disk_read_mib_s, last[-1].disk_write_mib_s)
        if last
        else (0.0, 0.0)
    )
    return dataclasses.replace(
        step,
        disk_read_mib_s=kept[0] if read is None else read,
        disk_write_mib_s=kept[1] if write is None else write,
    )


def _read_step(
    value: yaml.YamlValue, vm: values.Vm, program: programs.Program
) -> demand.DemandStep:
    section = value.section()
    if program.real:
        section.leave_to(programs.SIMULATOR.command, *_SIMULATED_ONLY)
    every_s = section.take('every', yaml.YamlValue.positive, 0.0)
    step = demand.DemandStep(
        at_s=section.need('at', yaml.YamlValue.number),
        cpu=section.take(
            'cpu', lambda v: _read_cpus(v, vm.vcpus, program), None
        ),
        memory_mib=section.take(
            'memory_mib', lambda v: _read_memory(v, vm, program), None
        ),
        disk_read_mib_s=section.take('disk_read_mib_s', _number_or_max, None),
        disk_write_mib_s=section.take(
            'disk_write_mib_s', _number_or_max, None
        ),
        disk_depth=section.take('disk_depth', lambda v: v.integer(1, 64), 1),
        disk_block_kib=section.take(
            'disk_block_kib', lambda v: v.integer(4, 1024), 64
        ),
        net_send_mbit_s=section.take('net_send_mbit_s', _number_or_max, None),
        net_receive_mbit_s=section.take(
            'net_receive_mbit_s',
            yaml.YamlValue.number if program.real else _number_or_max,
            None,
        ),
        tcp_send_flows=section.take('tcp_send_flows', _read_flows, None),
        tcp_receive_flows=section.take('tcp_receive_flows', _read_flows, None),
        wake_hz=section.take('wake_hz', yaml.YamlValue.number, None),
        cycle=_read_cycle(section, vm.vcpus, program),
        every_s=every_s,
        for_s=section.need('for', yaml.YamlValue.positive) if every_s else 0.0,
    )
    section.finish()
    _check(value, step, vm, program)
    return step


def _read_cycle(
    section: yaml.Section, vcpus: int, program: programs.Program
) -> demand.DemandCycle | None:
    """Read how a VM uses the CPU; ``None`` if the step does not say it."""
    load = section.take('load', _read_kind, None)
    threads, wait_s = vcpus, 0.0
    if load is demand.CpuLoad.POOL:
        threads = section.need(
            'threads', lambda v: v.integer(1, program.threads)
        )
    if load is demand.CpuLoad.CRON:
        wait_s = section.need('period_s', yaml.YamlValue.positive)
    elif load in {demand.CpuLoad.CLOSED, demand.CpuLoad.POOL}:
        wait_s = section.take('think_s', yaml.YamlValue.positive, 0.0)
        if program.real and not wait_s:
            wait_s = section.need('think_s', yaml.YamlValue.positive)
    return load and demand.DemandCycle(load, threads, wait_s)


def _read_kind(value: yaml.YamlValue) -> demand.CpuLoad | None:
    return demand.CpuLoad(
        value.one_of(tuple(kind.value for kind in demand.CpuLoad))
    )


def _check(
    value: yaml.YamlValue,
    step: demand.DemandStep,
    vm: values.Vm,
    program: programs.Program,
) -> None:
    if step.for_s > 0 and step.for_s >= step.every_s:
        raise value.wrong('a time "for" that is below "every"')
    _check_cycle(value, step, program)
    if not program.real:
        return
    if not vm.disks and (step.disk_read_mib_s or step.disk_write_mib_s):
        raise value.wrong(f'no disk load, since {vm.name} has no disk')
    if not vm.nics and step.loads_network:
        raise value.wrong(f'no network load, since {vm.name} has no NIC')


def _check_cycle(
    value: yaml.YamlValue, step: demand.DemandStep, program: programs.Program
) -> None:
    if step.cycle is None or step.cycle.load is demand.CpuLoad.OPEN:
        return
    if step.cpu is None:
        raise value.wrong('how much cpu, since it says which load')
    most = step.cycle.threads
    if step.cycle.load is demand.CpuLoad.CRON:
        if math.isinf(step.cpu):
            raise value.wrong('CPUs and not max, since cron is to be done')
    elif program.real and step.cpu >= most:
        raise value.wrong(
            f'less than {most} CPUs, since each thread waits, too'
        )


def _read_flows(value: yaml.YamlValue) -> int | None:
    return value.integer(0, 16)


def _number_or_max(value: yaml.YamlValue) -> float | None:
    if value.node.value == 'max':
        return demand.MAXIMUM
    return value.number()


def _read_cpus(
    value: yaml.YamlValue, vcpus: int, program: programs.Program
) -> float | None:
    cpu = _number_or_max(value)
    if program.real and cpu is not None and vcpus < cpu < demand.MAXIMUM:
        raise value.wrong(f'CPUs from 0 to {vcpus}, or max')
    return cpu


def _read_memory(
    value: yaml.YamlValue, vm: values.Vm, program: programs.Program
) -> float | None:
    if program.real:
        return float(value.integer(0, int(vm.memory_mib) - 64))
    return _number_or_max(value)


def events(
    value: yaml.YamlValue,
    vms: Mapping[str, values.Vm],
    nodes: Mapping[str, values.NodeSpec],
    duration_s: float,
    program: programs.Program,
) -> tuple[values.ScenarioEvent, ...]:
    """Read the events, in the order of time.

    :raises BadScenario: with file, line and what was expected.
    """
    names = tuple(vms), tuple(nodes)
    found = [
        _read_event(item, *names, duration_s, program)
        for item in value.items()
    ]
    return tuple(sorted(found, key=lambda event: event.at_s))


def _read_event(
    value: yaml.YamlValue,
    vms: tuple[str, ...],
    nodes: tuple[str, ...],
    duration_s: float,
    program: programs.Program,
) -> values.ScenarioEvent:
    section = value.section()
    if not program.real:
        section.leave_to(programs.LABORATORY.command, *_REAL_ONLY)
    at_s = section.need('at', yaml.YamlValue.number)
    to = section.take('to', _reader_of_choice(nodes), '')
    redis = section.take(REDIS, _reader_of_choice(_REDIS_WORDS), '')
    found = [(values.ScenarioAction(f'{redis}-{REDIS}'), '')] if redis else []
    for action in _NAMED:
        known = vms if action.concerns is values.Subject.VM else nodes
        subject = section.take(action.value, _reader_of_choice(known), '')
        if subject:
            found.append((action, subject))
    section.finish()
    if len(found) != 1:
        words = [*(action.value for action in _NAMED), REDIS]
        meant = [w for w in words if program.real or w not in _REAL_ONLY]
        raise value.wrong(f'exactly one of {", ".join(meant)}')
    if at_s >= duration_s:
        raise value.wrong(f'a time below {duration_s:g} s')
    if (found[0][0] is values.ScenarioAction.MOVE) != bool(to):
        raise value.wrong('"move: VM" and "to: NODE" together')
    return values.ScenarioEvent(at_s, *found[0], to)


def _reader_of_choice(
    choices: tuple[str, ...],
) -> Callable[[yaml.YamlValue], str]:
    return functools.partial(yaml.YamlValue.one_of, choices=choices)
