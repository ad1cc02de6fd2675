# SPDX-License-Identifier: Apache-2.0

"""The part of a scenario file that says what happens when."""

from collections.abc import Callable
import dataclasses
import functools
import math

from fairness_lab.scenario import demand
from fairness_lab.scenario import values
from fairness_lab.scenario import yaml

REDIS = 'redis'
"""Key of what happens to Redis; its value says what."""

_NAMED = tuple(
    action
    for action in values.Action
    if action.concerns is not values.Subject.REDIS
)
_REDIS_WORDS = tuple(
    action.value.removesuffix(f'-{REDIS}')
    for action in values.Action
    if action.concerns is values.Subject.REDIS
)


def load(
    value: yaml.Value,
    vms: dict[str, values.Vm],
    duration_s: float,
) -> dict[str, tuple[demand.Step, ...]]:
    """Read what each VM wants over time.

    :raises BadScenario: with file, line and what was expected.
    """
    found: dict[str, tuple[demand.Step, ...]] = {}
    for name, entry in value.entries().items():
        members = [vm for vm in vms.values() if name in {vm.name, vm.group}]
        if not members:
            known = sorted({vm.group for vm in vms.values()})
            raise entry.wrong(f'a VM or group out of {", ".join(known)}')
        for vm in members:
            if vm.name in found:
                raise entry.wrong(f'one load of {vm.name}')
            found[vm.name] = _steps(entry, vm, duration_s)
    return found


def _steps(
    value: yaml.Value, vm: values.Vm, duration_s: float
) -> tuple[demand.Step, ...]:
    steps: list[demand.Step] = []
    last_s = -math.inf
    for item in value.items():
        step = _step(item, vm)
        if not last_s < step.at_s < duration_s:
            raise item.wrong(
                f'times that rise and stay below {duration_s:g} s'
            )
        last_s = step.at_s
        steps.append(_with_both_rates(step, steps))
    return tuple(steps)


def _with_both_rates(
    step: demand.Step, before: list[demand.Step]
) -> demand.Step:
    """Repeat the disk rate that stays: a guest is told both at once."""
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


def _step(value: yaml.Value, vm: values.Vm) -> demand.Step:
    section = value.section()
    guest = vm.guest
    most = guest.memory_mib - 64
    step = demand.Step(
        at_s=section.need('at', yaml.Value.number),
        cpu=section.take('cpu', lambda v: _cpu(v, guest.vcpus), None),
        memory_mib=section.take(
            'memory_mib', lambda v: float(v.integer(0, most)), None
        ),
        disk_read_mib_s=section.take('disk_read_mib_s', _rate, None),
        disk_write_mib_s=section.take('disk_write_mib_s', _rate, None),
        disk_depth=section.take('disk_depth', lambda v: v.integer(1, 64), 1),
        disk_block_kib=section.take(
            'disk_block_kib', lambda v: v.integer(4, 1024), 64
        ),
        net_send_mbit_s=section.take('net_send_mbit_s', _rate, None),
        net_receive_mbit_s=section.take(
            'net_receive_mbit_s', yaml.Value.number, None
        ),
        tcp_send_flows=section.take('tcp_send_flows', _flows, None),
        tcp_receive_flows=section.take('tcp_receive_flows', _flows, None),
        wake_hz=section.take('wake_hz', yaml.Value.number, None),
        cycle=_cycle(section, guest.vcpus),
    )
    section.finish()
    _check_cycle(value, step)
    if not guest.disks and (step.disk_read_mib_s or step.disk_write_mib_s):
        raise value.wrong(f'no disk load, since {vm.name} has no disk')
    if not guest.nics and step.loads_network:
        raise value.wrong(f'no network load, since {vm.name} has no NIC')
    return step


def _cycle(section: yaml.Section, vcpus: int) -> demand.Cycle | None:
    """Read in which way the CPU is wanted; ``None`` by the clock."""
    load = section.take('load', _kind, demand.Load.OPEN)
    threads, wait_s = vcpus, 0.0
    if load is demand.Load.POOL:
        threads = section.need('threads', lambda v: v.integer(1, 64))
    if load is demand.Load.CRON:
        wait_s = section.need('period_s', yaml.Value.positive)
    elif load is not demand.Load.OPEN:
        wait_s = section.need('think_s', yaml.Value.positive)
    return demand.Cycle(load, threads, wait_s) if wait_s else None


def _kind(value: yaml.Value) -> demand.Load:
    return demand.Load(value.one_of(tuple(kind.value for kind in demand.Load)))


def _check_cycle(value: yaml.Value, step: demand.Step) -> None:
    if step.cycle is None:
        return
    if step.cpu is None:
        raise value.wrong('how much cpu, since it says which load')
    most = step.cycle.threads
    if step.cycle.load is demand.Load.CRON:
        if math.isinf(step.cpu):
            raise value.wrong('CPUs and not max, since cron is to be done')
    elif step.cpu >= most:
        raise value.wrong(
            f'less than {most} CPUs, since each thread waits, too'
        )


def _flows(value: yaml.Value) -> int | None:
    return value.integer(0, 16)


def _rate(value: yaml.Value) -> float | None:
    if value.node.value == 'max':
        return demand.MAXIMUM
    return value.number()


def _cpu(value: yaml.Value, vcpus: int) -> float | None:
    if value.node.value == 'max':
        return demand.MAXIMUM
    cpu = value.number()
    if cpu > vcpus:
        raise value.wrong(f'CPUs from 0 to {vcpus}, or max')
    return cpu


def events(
    value: yaml.Value,
    vms: dict[str, values.Vm],
    nodes: dict[str, values.NodeSpec],
    duration_s: float,
) -> tuple[values.Event, ...]:
    """Read what happens, in the order of time.

    :raises BadScenario: with file, line and what was expected.
    """
    found = [_event(item, vms, nodes, duration_s) for item in value.items()]
    return tuple(sorted(found, key=lambda event: event.at_s))


def _event(
    value: yaml.Value,
    vms: dict[str, values.Vm],
    nodes: dict[str, values.NodeSpec],
    duration_s: float,
) -> values.Event:
    section = value.section()
    at_s = section.need('at', yaml.Value.number)
    to = section.take('to', _one_of(tuple(nodes)), '')
    redis = section.take(REDIS, _one_of(_REDIS_WORDS), '')
    found = [(values.Action(f'{redis}-{REDIS}'), '')] if redis else []
    for action in _NAMED:
        known = vms if action.concerns is values.Subject.VM else nodes
        subject = section.take(action.value, _one_of(tuple(known)), '')
        if subject:
            found.append((action, subject))
    section.finish()
    if len(found) != 1:
        words = ', '.join([*(action.value for action in _NAMED), REDIS])
        raise value.wrong(f'exactly one of {words}')
    if at_s >= duration_s:
        raise value.wrong(f'a time below {duration_s:g} s')
    if (found[0][0] is values.Action.MOVE) != bool(to):
        raise value.wrong('"move: VM" and "to: NODE" together')
    return values.Event(at_s, *found[0], to)


def _one_of(
    choices: tuple[str, ...],
) -> Callable[[yaml.Value], str]:
    return functools.partial(yaml.Value.one_of, choices=choices)


def agent(value: yaml.Value) -> dict[str, dict[str, str]]:
    """Read options of the agent: section, option, value.

    :raises BadScenario: with file, line and what was expected.
    """
    return {
        group: {
            option: setting.text()
            for option, setting in section.entries().items()
        }
        for group, section in value.entries().items()
    }
