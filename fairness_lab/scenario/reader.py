# SPDX-License-Identifier: Apache-2.0

"""Scenario files: YAML in, a checked scenario out.

Errors name the file, the line and what was expected there.
"""

import dataclasses
import functools
import pathlib

from fairness_lab.results import checks
from fairness_lab.scenario import demand
from fairness_lab.scenario import expectations
from fairness_lab.scenario import load as scenario_load
from fairness_lab.scenario import values
from fairness_lab.scenario import yaml
from fairness_lab.testbed.guests import domain
from nova_fairness import exception
from nova_fairness.model import defaults

FOLDER = pathlib.Path(__file__).parents[1] / 'scenarios' / 'testbed'
"""Where the scenarios of the package are."""

SCHEDULERS = ('bfq', 'mq-deadline', 'kyber', 'none')
"""Of a node's own disk."""

_MOST_VMS = 200
_LARGEST_CPU = 4095


def names() -> list[str]:
    """Names of the scenarios of the package."""
    return sorted(path.stem for path in FOLDER.glob('*.yaml'))


def find(name: str) -> values.Scenario:
    """Read a scenario of the package, or one in a file.

    :param name: its name, or the path of a YAML file.
    :raises BadScenario: if there is none, or it is wrong.
    """
    if name in names():
        return read(FOLDER / f'{name}.yaml')
    path = pathlib.Path(name)
    if path.suffix in {'.yaml', '.yml'} or path.is_file():
        return read(path)
    raise exception.BadScenario(
        f'there is no scenario {name}: expected one of '
        f'{", ".join(names())}, or the path of a YAML file'
    )


def read(path: pathlib.Path) -> values.Scenario:
    """Read a scenario file.

    :raises BadScenario: with file, line and what was expected.
    """
    top = yaml.load(path).section()
    nodes = top.need('nodes', _nodes)
    nobody: dict[str, values.User] = {}
    users = top.take('users', _users, nobody)
    vms = top.need('vms', functools.partial(_vms, nodes=nodes, users=users))
    duration_s = top.need('duration', yaml.Value.positive)
    no_load: dict[str, tuple[demand.Step, ...]] = {}
    no_events: tuple[values.Event, ...] = ()
    load = top.take(
        'load',
        functools.partial(scenario_load.load, vms=vms, duration_s=duration_s),
        no_load,
    )
    events = top.take(
        'events',
        functools.partial(
            scenario_load.events, vms=vms, nodes=nodes, duration_s=duration_s
        ),
        no_events,
    )
    redis = top.take('redis', yaml.Value.yes_or_no, len(nodes) > 1)
    keys = top.take('keys', yaml.Value.yes_or_no, redis)
    result = values.Scenario(
        name=top.take('name', yaml.Value.text, path.stem),
        description=top.need('description', yaml.Value.text),
        duration_s=duration_s,
        interval_s=top.take('interval', _interval, 10.0),
        settle_s=top.take('settle', yaml.Value.number, 2.0),
        metric=top.take('metric', yaml.Value.text, defaults.METRIC),
        policy=top.take('policy', yaml.Value.text, defaults.POLICY),
        max_weight_ratio=top.take('max_weight_ratio', _ratio, None),
        pairs=top.take('pairs', _pairs, 0),
        nodes=nodes,
        users=_with_owners(users, vms),
        vms=vms,
        load=load,
        events=events,
        agent=top.take('agent', scenario_load.agent, {}),
        redis=redis,
        keys=keys,
        fio_s=top.take('fio', yaml.Value.number, 0.0),
    )
    return _finished(top, result)


def _finished(top: yaml.Section, found: values.Scenario) -> values.Scenario:
    """Read what is expected, and check the whole."""
    result = dataclasses.replace(found, expect=_expect(top, found))
    top.finish()
    _check_redis(top, result)
    return result


def _expect(
    top: yaml.Section, found: values.Scenario
) -> tuple[checks.Expectation, ...]:
    read = functools.partial(
        expectations.expectations, members=_members(found)
    )
    nothing: tuple[checks.Expectation, ...] = ()
    return top.take('expect', read, nothing)


def _members(found: values.Scenario) -> expectations.Members:
    vms: dict[str, tuple[str, ...]] = {}
    for vm in found.vms.values():
        for name in {vm.name, vm.group}:
            vms[name] = (*vms.get(name, ()), vm.name)
    return {
        'vms': vms,
        'users': {name: (name,) for name in found.users},
        'nodes': {name: (name,) for name in found.nodes},
    }


def _check_redis(top: yaml.Section, found: values.Scenario) -> None:
    happens = any(
        event.action.concerns is values.Subject.REDIS for event in found.events
    )
    if happens and not found.redis:
        raise top.value.wrong('"redis: true", since something happens to it')


def _interval(value: yaml.Value) -> float:
    return value.number(0.2)


def _ratio(value: yaml.Value) -> float | None:
    return value.number(1.0)


def _pairs(value: yaml.Value) -> int:
    return value.integer(0, 1000)


def _nodes(value: yaml.Value) -> dict[str, values.NodeSpec]:
    nodes = {
        name: _node(entry.check_name(name), entry)
        for name, entry in value.entries().items()
    }
    if not nodes or len(nodes) > 30:
        raise value.wrong('1 to 30 nodes')
    return nodes


def _node(name: str, value: yaml.Value) -> values.NodeSpec:
    section = value.section()
    positive = yaml.Value.positive
    node = values.NodeSpec(
        name,
        cpus=section.need('cpus', _cpus),
        memory_mib=section.take('memory_mib', _memory, 4096),
        disk_mib_s=section.take('disk_mib_s', positive, 200.0),
        disk_scheduler=section.take(
            'disk_scheduler', lambda v: v.one_of(SCHEDULERS), ''
        ),
        network_mbit_s=section.take('network_mbit_s', positive, 1000.0),
        uplink=section.take('uplink', yaml.Value.yes_or_no, False),
    )
    section.finish()
    return node


def _memory(value: yaml.Value) -> int:
    return value.integer(domain.SMALLEST_MEMORY_MIB)


def _cpus(value: yaml.Value) -> tuple[int, ...]:
    cpus = {item.integer(0, _LARGEST_CPU) for item in value.items()}
    if not cpus:
        raise value.wrong('numbers of CPUs, such as [0]')
    return tuple(sorted(cpus))


def _users(value: yaml.Value) -> dict[str, values.User]:
    return {
        name: _user(entry.check_name(name), entry)
        for name, entry in value.entries().items()
    }


def _user(name: str, value: yaml.Value) -> values.User:
    section = value.section()
    weight = section.take('weight', yaml.Value.positive, 1.0)
    section.finish()
    return values.User(name, weight)


def _with_owners(
    users: dict[str, values.User], vms: dict[str, values.Vm]
) -> dict[str, values.User]:
    owners = {vm.guest.user for vm in vms.values()}
    return {
        name: users.get(name, values.User(name))
        for name in [*users, *sorted(owners - set(users))]
    }


def _vms(
    value: yaml.Value,
    nodes: dict[str, values.NodeSpec],
    users: dict[str, values.User],
) -> dict[str, values.Vm]:
    vms: dict[str, values.Vm] = {}
    for group, entry in value.entries().items():
        for vm in _group(entry.check_name(group), entry, nodes, users):
            if vm.name in vms:
                raise entry.wrong(f'names that differ, {vm.name} exists')
            vms[vm.name] = vm
    if not vms or len(vms) > _MOST_VMS:
        raise value.wrong(f'1 to {_MOST_VMS} VMs')
    return vms


def _group(
    group: str,
    value: yaml.Value,
    nodes: dict[str, values.NodeSpec],
    users: dict[str, values.User],
) -> list[values.Vm]:
    section = value.section()
    node = section.take('node', lambda v: v.one_of(tuple(nodes)), '')
    count = section.take('count', lambda v: v.integer(1, _MOST_VMS), 0)
    spec = domain.GuestSpec(
        group,
        user=section.need('user', lambda v: _owner(v, users)),
        vcpus=section.take('vcpus', lambda v: v.integer(1, 64), 1),
        memory_mib=section.take(
            'memory_mib', _memory, domain.SMALLEST_MEMORY_MIB
        ),
        disks=section.take('disks', _disks, ()),
        nics=section.take('nics', lambda v: v.integer(0, 4), 0),
    )
    section.finish()
    if not node and len(nodes) > 1:
        raise value.wrong(f'a node out of {", ".join(nodes)}')
    copies = [f'{group}-{n}' for n in range(1, count + 1)] or [group]
    return [
        values.Vm(
            dataclasses.replace(spec, name=name),
            node or next(iter(nodes)),
            group,
        )
        for name in copies
    ]


def _owner(value: yaml.Value, users: dict[str, values.User]) -> str:
    if users:
        return value.one_of(tuple(users))
    return value.name()


def _disks(value: yaml.Value) -> tuple[domain.Disk, ...]:
    items = value.items()
    if len(items) > 8:
        raise value.wrong('at most 8 disks')
    return tuple(_disk(item) for item in items)


def _disk(value: yaml.Value) -> domain.Disk:
    section = value.section()
    disk = domain.Disk(
        section.take('size_mib', lambda v: v.integer(1, 1 << 20), 64),
        section.take('cache', lambda v: v.one_of(domain.CACHE_MODES), 'none'),
        section.take('io', lambda v: v.one_of(domain.IO_MODES), ''),
    )
    section.finish()
    return disk
