# SPDX-License-Identifier: Apache-2.0

"""Simulated nodes, VMs and agents behind the contract of a backend.

Only on explicit request: what it shows is arithmetic, not a machine.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import pathlib
from typing import Any

from fairness_lab.figures import progress
from fairness_lab.figures import report
from fairness_lab.results import recording
from fairness_lab.scenario import demand
from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed import backend as backend_module
from fairness_lab.testbed import driver
from fairness_lab.testbed import running
from fairness_lab.testbed.nodes import agent
from nova_fairness.model import resources
from tests.unit.fairness_lab.testbed import fake_agent
from tests.unit.fairness_lab.testbed import fake_mesh
from tests.unit.fairness_lab.testbed import fake_node

_BOOT_S = 3.0
_WORK_PER_S = 1000.0


def changed_scenario(found, **changes):
    """A scenario with other values, those of its agents by their names."""
    of_agents = {
        field.name
        for field in dataclasses.fields(found.agents)
        if field.name in changes
    }
    agents = {name: changes.pop(name) for name in of_agents}
    return dataclasses.replace(
        found, agents=dataclasses.replace(found.agents, **agents), **changes
    )


def result_of(found, out, *, agents=True):
    """Whether a scenario passed on simulated guests, and its result."""
    driver.Driver(
        found,
        FakeBackend(found, out),
        out,
        agents=agents,
        progress=progress.RunProgress(),
    ).run()
    report.write(out, out)
    result = report.load(out)
    return report.has_passed(result), result


def use_fake_backend(monkeypatch):
    """Let ``nova-fairness-lab run`` use the fake backend."""
    monkeypatch.setattr(
        running.qemu,
        'QemuBackend',
        lambda scenario, out, *others: FakeBackend(scenario, out),
    )


class FakeBackend:
    """A simulated cloud with a clock of its own.

    :param scenario: what to run.
    :param out: directory of the recording.
    """

    def __init__(
        self, scenario: scenario_module.Scenario, out: pathlib.Path
    ) -> None:
        self._scenario = scenario
        self._out = out
        self._now_s = 0.0
        self._nodes = {
            spec.name: fake_node.FakeNode(spec)
            for spec in scenario.nodes.values()
        }
        self._agents: dict[str, fake_agent.FakeAgent] = {}
        self._held: set[str] = set()
        self._mesh = fake_mesh.FakeMesh()
        self._where = {vm.name: vm.node for vm in scenario.vms.values()}
        self._booting: list[tuple[float, str, Callable[[], None]]] = []

    @property
    def name(self) -> str:
        """Name of the backend in the result."""
        return 'fake'

    def open(self, say: Callable[[str], None]) -> None:
        """Bring up nodes and those VMs that do not start late."""
        say('simulating: these are no real guests')
        for vm in self._scenario.vms.values():
            if not self._scenario.starts_late(vm.name):
                self._nodes[vm.node].add(vm)

    def close(self) -> None:
        """End everything."""
        self.stop_agents(list(self._agents), kill=False)

    def now(self) -> float:
        """Seconds of the simulated clock."""
        return self._now_s

    def sleep_until(self, when: float) -> None:
        """Let simulated time pass, with what is due in it."""
        while (due_s := self._next_due_s()) <= when:
            self._advance(due_s)
            self._do_due()
        self._advance(when)

    def load(self, vm: str, step: demand.DemandStep) -> None:
        """Tell a VM what it wants from now on; it may be gone."""
        node = self._node_of(vm)
        if vm in node.vms:
            node.load(vm, step)

    def start_vm(self, vm: str, ready: Callable[[], None]) -> None:
        """Start a VM; ``ready`` is called when it takes commands."""
        node = self._node_of(vm)
        node.add(self._scenario.vms[vm])
        node.load(vm, demand.DemandStep(0, demand.MAXIMUM))
        self._booting.append((self._now_s + _BOOT_S, vm, ready))

    def destroy_vm(self, vm: str) -> None:
        """End a VM."""
        self._node_of(vm).vms.pop(vm, None)

    def move_vm(self, vm: str, node: str, ready: Callable[[], None]) -> None:
        """End a VM and start it on another node; ``ready`` as above."""
        self.destroy_vm(vm)
        self._where[vm] = node
        self.start_vm(vm, ready)

    def freeze_vm(self, vm: str) -> None:
        """Let a VM stand still."""
        self._node_of(vm).vms[vm].frozen = True

    def thaw_vm(self, vm: str) -> None:
        """Let a VM go on."""
        self._node_of(vm).vms[vm].frozen = False

    def start_agents(self, nodes: Iterable[str], *, wait: bool) -> None:
        """Start agents; with ``wait``, until each has made a round."""
        for name in nodes:
            if name in self._agents:
                continue
            directory = self._out / recording.AGENTS / name
            self._agents[name] = fake_agent.FakeAgent(
                self._nodes[name],
                agent.configuration(self._scenario, name, directory),
                self._mesh,
                directory / recording.ROUNDS,
            )
        if wait:
            self.sleep_until(self._now_s)

    def stop_agents(self, nodes: Iterable[str], *, kill: bool) -> None:
        """End agents, cleanly or as a crash would."""
        for name in nodes:
            self._held.discard(name)
            ending = self._agents.pop(name, None)
            if ending is None:
                continue
            if kill:
                ending.kill()
            else:
                ending.stop()

    def restart_agent(self, node: str) -> None:
        """End an agent cleanly and start it."""
        self.stop_agents([node], kill=False)
        self.start_agents([node], wait=False)

    def hold_agents(self, nodes: Iterable[str]) -> None:
        """Stop the agents where they are."""
        self._held.update(nodes)

    def release_agents(self, nodes: Iterable[str]) -> None:
        """Let held agents go on, with the round that is due now."""
        for name in nodes:
            self._held.discard(name)
            agent_of_node = self._agents[name]
            agent_of_node.next_s = max(agent_of_node.next_s, self._now_s)

    def cut(self, node: str) -> None:
        """Cut a node off from all others and from Redis."""
        self._mesh.cut.add(node)

    def heal(self, node: str) -> None:
        """Undo that."""
        self._mesh.cut.discard(node)

    def redis(self) -> fake_mesh.FakeRedis:
        """Simulated Redis."""
        return self._mesh.redis

    def state(self, vm: str) -> backend_module.VmState | None:
        """Read a VM; ``None`` if it does not exist."""
        made = self._node_of(vm).vms.get(vm)
        if made is None:
            return None
        cpu_s = float(made.counters[resources.RESOURCES.index('cpu_time')])
        return backend_module.VmState(
            cpu_s,
            made.shares,
            cpu_s * _WORK_PER_S,
            'frozen' if made.frozen else recording.RUNNING,
            {'wait_s': made.stall_s},
        )

    def fio(self, seconds: float) -> Mapping[str, Mapping[str, float]]:
        """Move nothing: simulated VMs have no disks."""
        return {}

    def machine(self) -> dict[str, Any]:
        """Say on what it runs."""
        return {'simulated': True}

    def _node_of(self, vm: str) -> fake_node.FakeNode:
        return self._nodes[self._where[vm]]

    def _awake(self) -> list[fake_agent.FakeAgent]:
        return [
            made
            for name, made in self._agents.items()
            if name not in self._held
        ]

    def _next_due_s(self) -> float:
        times = [ready_s for ready_s, _, _ in self._booting]
        times += [made.next_s for made in self._awake()]
        return min(times, default=float('inf'))

    def _do_due(self) -> None:
        for entry in list(self._booting):
            ready_s, vm, ready = entry
            if ready_s <= self._now_s:
                self._booting.remove(entry)
                if vm in self._node_of(vm).vms:
                    self.load(vm, demand.DemandStep(0, 0.0))
                    ready()
        for made in self._awake():
            if made.next_s <= self._now_s:
                made.round()

    def _advance(self, to_s: float) -> None:
        for node in self._nodes.values():
            node.advance(to_s)
        self._now_s = max(self._now_s, to_s)
