# SPDX-License-Identifier: Apache-2.0

"""Nodes, VMs and users of a run, read off the scenario in ``meta.json``."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_fairness import exception


@dataclasses.dataclass(frozen=True, slots=True)
class VmPlace:
    """Node, owner and size of a VM."""

    node: str
    user: str
    vcpus: int


@dataclasses.dataclass(frozen=True, slots=True)
class ScenarioLayout:
    """The unchanging part of a scenario.

    :ivar capacity: number of CPUs of each node.
    :ivar user_weight: > 0 of each user that has one.
    :ivar places: of each VM, those that start later among them.
    """

    capacity: Mapping[str, float]
    user_weight: Mapping[str, float]
    places: Mapping[str, VmPlace]


def layout(meta: Mapping[str, Any]) -> ScenarioLayout:
    """Read the layout.

    :param meta: content of ``meta.json``.
    :raises LabError: if the scenario lacks something; the message names it.
    """
    scenario = meta.get('scenario')
    if not isinstance(scenario, Mapping):
        raise exception.LabError('meta.json: expected the scenario as object')
    capacity = {
        name: _cpu_count(name, node.get('cpus', 1))
        for name, node in _named(scenario, 'nodes')
    }
    weights = {
        name: float(user.get('weight', 1))
        for name, user in _named(scenario, 'users')
    }
    places = {
        name: _place(name, vm, capacity)
        for name, vm in _named(scenario, 'vms')
    }
    return ScenarioLayout(capacity, weights, places)


def _named(
    scenario: Mapping[str, Any], key: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield entries with their names, from a list or from a mapping."""
    entries = scenario.get(key, ())
    if isinstance(entries, Mapping):
        for name, entry in entries.items():
            yield str(name), entry or {}
        return
    for entry in entries:
        if isinstance(entry, str):
            yield entry, {}
        elif isinstance(entry, Mapping) and 'name' in entry:
            yield str(entry['name']), entry
        else:
            raise exception.LabError(
                f'meta.json: scenario: {key}: expected a name in {entry!r}'
            )


def _cpu_count(node: str, cpus: object) -> float:
    """Count CPUs given as a number, as a list, or like ``0-1,3``."""
    try:
        if isinstance(cpus, str):
            return float(sum(map(_span, cpus.split(','))))
        if isinstance(cpus, (list, tuple)):
            return float(len(cpus))
        return float(cpus)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise exception.LabError(
            f'meta.json: scenario: nodes: {node}: expected CPUs, got {cpus!r}'
        ) from None


def _span(text: str) -> int:
    first, _, last = text.partition('-')
    return int(last or first) - int(first) + 1


def _place(
    name: str, vm: Mapping[str, Any], capacity: Mapping[str, float]
) -> VmPlace:
    node = vm.get('node') or next(iter(capacity), '')
    user = vm.get('user', '')
    if node not in capacity or not user:
        raise exception.LabError(
            f'meta.json: scenario: vms: {name}: expected a user and one of '
            f'the nodes {", ".join(capacity)}, got {user!r} and {node!r}'
        )
    return VmPlace(str(node), str(user), int(vm.get('vcpus', 1)))
