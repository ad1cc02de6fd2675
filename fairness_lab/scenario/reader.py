# SPDX-License-Identifier: Apache-2.0

"""Read scenario files: YAML becomes a checked scenario.

Laboratory and simulator read the same files. Some keys are for only one of
them. The other refuses these. Keys that say how real machines do a thing are
checked and passed over. Errors name the file, the line and what was expected
there.
"""

from collections.abc import Mapping
import dataclasses
import functools
import math
import pathlib
import types

from fairness_lab.results import checks
from fairness_lab.scenario import agents
from fairness_lab.scenario import demand
from fairness_lab.scenario import expectations
from fairness_lab.scenario import load as scenario_load
from fairness_lab.scenario import programs
from fairness_lab.scenario import recipes
from fairness_lab.scenario import values
from fairness_lab.scenario import yaml
from nova_fairness import exception

SCHEDULERS = ('bfq', 'mq-deadline', 'kyber', 'none')
"""Of a node's own disk."""

_AS_WRITTEN: Mapping[str, str] = types.MappingProxyType({})
_MOST_ROUNDS = 1_000_000
_LARGEST_CPU = 4095
_NODE_MIB: float = 4096
_SIMULATED_ONLY = ('generate', 'trace', *agents.SIMULATED_ONLY)
_TOLD = ('vms', 'load', 'events', 'expect')
_NOT_BESIDE = {'generate': ('nodes', 'users', 'trace', *_TOLD), 'trace': _TOLD}
"""Sections that say what another one says."""


def find(
    name: str,
    program: programs.Program,
    overrides: Mapping[str, str] = _AS_WRITTEN,
) -> values.Scenario:
    """Read a scenario that comes with a program, or one in a file.

    :param name: its name, or the path of a YAML file.
    :param overrides: see :func:`read`.
    :raises BadScenario: if there is none, or it is wrong.
    """
    if name in program.names():
        return read(program.folder / f'{name}.yaml', program, overrides)
    path = pathlib.Path(name)
    if path.suffix in {'.yaml', '.yml'} or path.is_file():
        return read(path, program, overrides)
    raise exception.BadScenario(
        f'there is no scenario {name}: expected one of '
        f'{", ".join(program.names())}, or the path of a YAML file'
    )


def read(
    path: pathlib.Path,
    program: programs.Program,
    overrides: Mapping[str, str] = _AS_WRITTEN,
) -> values.Scenario:
    """Read a scenario file.

    :param program: that is to run it.
    :param overrides: YAML by key (``reports.loss``), instead of what the file
        says or beside it.
    :raises BadScenario: with file, line and what was expected.
    """
    whole = yaml.load(path)
    for key, text in overrides.items():
        yaml.override(whole, key, text)
    top = whole.section()
    if program.real:
        top.leave_to(programs.SIMULATOR.command, *_SIMULATED_ONLY)
    result = _Reader(top, program).scenario()
    top.finish()
    return result


class _Reader:
    """Reads a scenario part by part; later parts refer to earlier ones.

    :param top: the whole file.
    :param program: that is to run it.
    """

    def __init__(self, top: yaml.Section, program: programs.Program) -> None:
        self._top = top
        self._program = program
        self._interval_s = top.take('interval', lambda v: v.number(0.2), 10.0)
        self._duration_s = self._length_s()
        self._seed = top.take('seed', agents.seed, 0)
        recipe = functools.partial(recipes.recipe, seed=self._seed)
        self._drawn = top.take('generate', recipe, None)
        self._trace = top.take('trace', _read_path, None)
        self._refuse_contradiction()
        self._nodes = self._listed_nodes()
        nobody: dict[str, values.User] = {}
        self._users = top.take('users', _read_users, nobody)
        self._vms = self._listed_vms()

    def _length_s(self) -> float:
        """Length of the load; in the simulator it is whole rounds."""
        top = self._top
        rounds = top.take('rounds', lambda v: v.integer(1, _MOST_ROUNDS), 0)
        told_s = top.take('duration', yaml.YamlValue.positive, 0.0)
        if bool(rounds) == bool(told_s):
            raise top.value.wrong(
                'exactly one of the keys rounds and duration'
            )
        if told_s and self._program.real:
            return told_s
        found = rounds or math.ceil(told_s / self._interval_s)
        return min(found, _MOST_ROUNDS) * self._interval_s

    def _refuse_contradiction(self) -> None:
        """Refuse nodes or VMs that are also drawn, or come from a trace."""
        for word, found in (
            ('generate', self._drawn),
            ('trace', self._trace),
        ):
            for key in _NOT_BESIDE[word] if found else ():
                refuse = functools.partial(_refuse_beside, word=word)
                self._top.take(key, refuse, None)

    def _listed_nodes(self) -> dict[str, values.NodeSpec]:
        if self._drawn:
            return {}
        return self._top.need(
            'nodes', functools.partial(_read_nodes, program=self._program)
        )

    def _listed_vms(self) -> dict[str, values.Vm]:
        if self._drawn or self._trace:
            return {}
        read = functools.partial(
            _read_vms,
            nodes=self._nodes,
            users=self._users,
            program=self._program,
        )
        return self._top.need('vms', read)

    def scenario(self) -> values.Scenario:
        """Read the other parts, and put all of them together."""
        top = self._top
        redis = top.take(
            'redis', yaml.YamlValue.yes_or_no, len(self._nodes) > 1
        )
        nodes = self._drawn.node_names() if self._drawn else (*self._nodes,)
        result = values.Scenario(
            name=top.take('name', yaml.YamlValue.text, top.value.path.stem),
            description=top.need('description', yaml.YamlValue.text),
            duration_s=self._duration_s,
            interval_s=self._interval_s,
            agents=agents.agents(top, nodes, self._seed),
            nodes=self._nodes,
            users=_with_owners(self._users, self._vms),
            vms=self._vms,
            load=self._load(),
            events=self._events(),
            drawn=self._drawn,
            trace=self._trace,
            settle_s=top.take('settle', yaml.YamlValue.number, 2.0),
            pairs=top.take('pairs', lambda v: v.integer(0, 1000), 0),
            redis=redis,
            keys=top.take('keys', yaml.YamlValue.yes_or_no, redis),
            fio_s=top.take('fio', yaml.YamlValue.number, 0.0),
        )
        _check_redis(top, result)
        return dataclasses.replace(
            result, expect=_read_expectations(top, result)
        )

    def _load(self) -> dict[str, scenario_load.Steps]:
        nothing: dict[str, scenario_load.Steps] = {}
        read = functools.partial(
            scenario_load.load,
            vms=self._vms,
            duration_s=self._duration_s,
            program=self._program,
        )
        return self._top.take('load', read, nothing)

    def _events(self) -> tuple[values.ScenarioEvent, ...]:
        nothing: tuple[values.ScenarioEvent, ...] = ()
        read = functools.partial(
            scenario_load.events,
            vms=self._vms,
            nodes=self._nodes,
            duration_s=self._duration_s,
            program=self._program,
        )
        return self._top.take('events', read, nothing)


def _read_path(value: yaml.YamlValue) -> pathlib.Path | None:
    return value.path.parent / value.text()


def _refuse_beside(value: yaml.YamlValue, word: str) -> None:
    raise value.wrong(f'no such section beside "{word}"')


def _read_expectations(
    top: yaml.Section, found: values.Scenario
) -> tuple[checks.Expectation, ...]:
    read = functools.partial(
        expectations.expectations, members=_names_of_members(found)
    )
    nothing: tuple[checks.Expectation, ...] = ()
    return top.take('expect', read, nothing)


def _names_of_members(found: values.Scenario) -> expectations.Members:
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


def _read_nodes(
    value: yaml.YamlValue, program: programs.Program
) -> dict[str, values.NodeSpec]:
    nodes: dict[str, values.NodeSpec] = {}
    for name, entry in value.entries().items():
        for node in _read_node(entry.check_name(name), entry, program):
            if node.name in nodes:
                raise entry.wrong(f'names that differ, {node.name} exists')
            nodes[node.name] = node
    if not nodes or len(nodes) > program.nodes:
        raise value.wrong(f'1 to {program.nodes} nodes')
    return nodes


def _read_node(
    name: str, value: yaml.YamlValue, program: programs.Program
) -> list[values.NodeSpec]:
    section = value.section()
    if program.real:
        section.leave_to(programs.SIMULATOR.command, 'count', 'speed')
    positive = yaml.YamlValue.positive
    cpus, numbers = section.need(
        'cpus', functools.partial(_read_cpus, program=program)
    )
    node = values.NodeSpec(
        name,
        cpus=cpus,
        cpu_numbers=numbers,
        speed=section.take('speed', positive, 1.0),
        memory_mib=section.take(
            'memory_mib',
            functools.partial(_read_memory, program=program),
            _NODE_MIB,
        ),
        disk_mib_s=section.take('disk_mib_s', positive, 200.0),
        disk_scheduler=section.take(
            'disk_scheduler', lambda v: v.one_of(SCHEDULERS), ''
        ),
        network_mbit_s=section.take('network_mbit_s', positive, 1000.0),
        uplink=section.take('uplink', yaml.YamlValue.yes_or_no, False),
    )
    names = _names_of_copies(section, name, program.nodes)
    section.finish()
    return [dataclasses.replace(node, name=copy) for copy in names]


def _names_of_copies(section: yaml.Section, name: str, most: int) -> list[str]:
    count = section.take('count', lambda v: v.integer(1, most), 0)
    return [f'{name}-{n}' for n in range(1, count + 1)] or [name]


def _read_memory(value: yaml.YamlValue, program: programs.Program) -> float:
    if program.real:
        return value.integer(values.SMALLEST_MEMORY_MIB)
    return value.positive()


def _read_cpus(
    value: yaml.YamlValue, program: programs.Program
) -> tuple[float, tuple[int, ...]]:
    """Read which CPUs of the machine a node has, or how many."""
    if not program.real and not value.is_list():
        return value.positive(), ()
    cpus = {item.integer(0, _LARGEST_CPU) for item in value.items()}
    if not cpus:
        raise value.wrong('numbers of CPUs, such as [0]')
    return float(len(cpus)), tuple(sorted(cpus))


def _read_users(value: yaml.YamlValue) -> dict[str, values.User]:
    return {
        name: _read_user(entry.check_name(name), entry)
        for name, entry in value.entries().items()
    }


def _read_user(name: str, value: yaml.YamlValue) -> values.User:
    section = value.section()
    weight = section.take('weight', yaml.YamlValue.positive, 1.0)
    section.finish()
    return values.User(name, weight)


def _with_owners(
    users: dict[str, values.User], vms: dict[str, values.Vm]
) -> dict[str, values.User]:
    owners = {vm.user for vm in vms.values()}
    return {
        name: users.get(name, values.User(name))
        for name in [*users, *sorted(owners - set(users))]
    }


def _read_vms(
    value: yaml.YamlValue,
    nodes: dict[str, values.NodeSpec],
    users: dict[str, values.User],
    program: programs.Program,
) -> dict[str, values.Vm]:
    vms: dict[str, values.Vm] = {}
    for group, entry in value.entries().items():
        entry.check_name(group)
        for vm in _read_vm_group(group, entry, nodes, users, program):
            if vm.name in vms:
                raise entry.wrong(f'names that differ, {vm.name} exists')
            vms[vm.name] = vm
    if not vms or len(vms) > program.vms:
        raise value.wrong(f'1 to {program.vms} VMs')
    return vms


def _read_vm_group(
    group: str,
    value: yaml.YamlValue,
    nodes: dict[str, values.NodeSpec],
    users: dict[str, values.User],
    program: programs.Program,
) -> list[values.Vm]:
    section = value.section()
    if program.real:
        section.leave_to(
            programs.SIMULATOR.command, 'coupled', 'loop', 'threads'
        )
    node = section.take('node', lambda v: v.one_of(tuple(nodes)), '')
    memory = functools.partial(_read_memory, program=program)
    vm = values.Vm(
        group,
        user=section.need('user', lambda v: _read_owner(v, users)),
        node=node or next(iter(nodes)),
        group=group,
        vcpus=section.take('vcpus', lambda v: v.integer(1, program.vcpus), 1),
        memory_mib=section.take('memory_mib', memory, program.memory_mib),
        disks=section.take('disks', _read_disks, ()),
        nics=section.take('nics', lambda v: v.integer(0, 4), 0),
        coupled=section.take('coupled', recipes.resource_names, ()),
        loop=section.take('loop', recipes.read_loop, demand.CpuLoad.CLOSED),
        threads=section.take(
            'threads', lambda v: v.integer(1, program.threads), 1
        ),
    )
    names = _names_of_copies(section, group, program.vms)
    section.finish()
    if vm.coupled and vm.loop is not demand.CpuLoad.CLOSED:
        raise value.wrong('no key "loop" beside "coupled"')
    if not node and len(nodes) > 1:
        raise value.wrong(f'a node out of {", ".join(list(nodes)[:10])}')
    return [dataclasses.replace(vm, name=name) for name in names]


def _read_owner(value: yaml.YamlValue, users: dict[str, values.User]) -> str:
    if users:
        return value.one_of(tuple(users))
    return value.name()


def _read_disks(value: yaml.YamlValue) -> tuple[values.GuestDisk, ...]:
    items = value.items()
    if len(items) > 8:
        raise value.wrong('at most 8 disks')
    return tuple(_read_disk(item) for item in items)


def _read_disk(value: yaml.YamlValue) -> values.GuestDisk:
    section = value.section()
    disk = values.GuestDisk(
        section.take('size_mib', lambda v: v.integer(1, 1 << 20), 64),
        section.take('cache', lambda v: v.one_of(values.CACHE_MODES), 'none'),
        section.take('io', lambda v: v.one_of(values.IO_MODES), ''),
    )
    section.finish()
    return disk
