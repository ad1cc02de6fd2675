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

"""Real nodes and guests behind the contract of a backend."""

from collections.abc import Callable
from collections.abc import Iterable
import concurrent.futures
import contextlib
import os
import pathlib
import platform
import time
from typing import Any

import libvirt

from nova_fairness import exception
from nova_fairness.lab import accelerator
from nova_fairness.lab import agent
from nova_fairness.lab import backend
from nova_fairness.lab import cleanup
from nova_fairness.lab import guest
from nova_fairness.lab import image
from nova_fairness.lab import load
from nova_fairness.lab import node
from nova_fairness.lab import recording
from nova_fairness.lab import scenario as scenario_module

BOOT_PATIENCE_S = 180.0
_PARALLEL_BOOTS = 2


class QemuBackend:
    """Real nodes and guests.

    :param scenario: what to run.
    :param out: directory of the recording.
    :param cache: directory kept between runs.
    :param wanted: ``kvm``, ``tcg`` or ``None`` to choose what works.
    """

    def __init__(
        self,
        scenario: scenario_module.Scenario,
        out: pathlib.Path,
        cache: pathlib.Path,
        wanted: str | None = None,
    ) -> None:
        self._scenario = scenario
        self._out = out
        self._cache = cache
        self._wanted = wanted
        self._accelerator = wanted or accelerator.TCG
        self._run: pathlib.Path | None = None
        self._image: image.Image | None = None
        self._nodes: dict[str, node.Node] = {}
        self._connections: dict[str, libvirt.virConnect] = {}
        self._agents: dict[str, agent.NodeAgent] = {}
        self._guests: dict[str, guest.Guest] = {}
        self._frozen: set[str] = set()
        self._starter: concurrent.futures.ThreadPoolExecutor | None = None

    @property
    def name(self) -> str:
        """Name of the backend in the result."""
        return f'qemu-{self._accelerator}'

    def open(self, say: Callable[[str], None]) -> None:
        """Bring up nodes and those VMs that do not start late.

        :raises LabError: if something does not come up.
        """
        _require_root()
        for dead in cleanup.remove_dead_runs():
            say(f'removed what the dead run {dead} left')
        say('preparing the image of the guests')
        self._image = image.ensure(self._cache)
        if self._wanted is None:
            self._accelerator = accelerator.choose(self._image, self._cache)
        self._run = cleanup.begin(os.getpid())
        self._start_nodes(say)
        self._boot_guests(say)
        for made in self._nodes.values():
            made.set_cpus()

    def close(self) -> None:
        """End everything; nothing is left.

        :raises LabError: if something does not go away.
        """
        with contextlib.ExitStack() as last:
            # in reverse order, and each even if one before it fails
            if self._run is not None:
                last.callback(cleanup.finish, self._run)
            for running in self._nodes.values():
                last.callback(running.stop)
                last.callback(self._keep_logs, running)
            for connection in self._connections.values():
                last.callback(_hang_up, connection)
            for made in self._guests.values():
                last.callback(made.hang_up)
            if self._starter is not None:
                last.callback(
                    self._starter.shutdown, wait=False, cancel_futures=True
                )
            for ending in self._agents.values():
                last.callback(ending.stop)

    def now(self) -> float:
        """Seconds of the machine's monotonic clock."""
        return time.monotonic()

    def sleep_until(self, when: float) -> None:
        """Let time pass."""
        time.sleep(max(0.0, when - time.monotonic()))

    def load(self, vm: str, step: scenario_module.Step) -> None:
        """Tell a VM what it wants from now on; it may be gone."""
        made = self._guests[vm]
        with contextlib.suppress(exception.LabError):
            for command in load.commands(made.node.index, step):
                made.line.tell(command)

    def start_vm(self, vm: str, ready: Callable[[], None]) -> None:
        """Start a VM; ``ready`` is called when it takes commands."""
        if self._starter is None:
            self._starter = concurrent.futures.ThreadPoolExecutor(4)
        self._guests[vm] = made = self._guest(vm)
        self._starter.submit(self._start_late, made, ready)

    def destroy_vm(self, vm: str) -> None:
        """End a VM."""
        made = self._guests[vm]
        self._frozen.discard(vm)
        made.destroy(self._connections[made.node.name])

    def freeze_vm(self, vm: str) -> None:
        """Stop a VM's process."""
        self._guests[vm].freeze()
        self._frozen.add(vm)

    def thaw_vm(self, vm: str) -> None:
        """Let a VM's process go on."""
        self._guests[vm].thaw()
        self._frozen.discard(vm)

    def start_agents(self, nodes: Iterable[str], *, wait: bool) -> None:
        """Start agents; with ``wait``, until each has made a round.

        :raises LabError: if one does not.
        """
        names = list(nodes)
        before = {name: self._agents[name].rounds() for name in names}
        for name in names:
            self._agents[name].start()
        if wait:
            patience_s = 30 + 3 * self._scenario.interval_s
            for name in names:
                self._agents[name].await_round(before[name], patience_s)

    def stop_agents(self, nodes: Iterable[str], *, kill: bool) -> None:
        """End agents, cleanly or as a crash would."""
        for name in nodes:
            if kill:
                self._agents[name].kill()
            else:
                self._agents[name].stop()

    def hold_agents(self, nodes: Iterable[str]) -> None:
        """Stop the agents' processes where they are."""
        for name in nodes:
            self._agents[name].hold()

    def release_agents(self, nodes: Iterable[str]) -> None:
        """Let held agents go on."""
        for name in nodes:
            self._agents[name].release()

    def state(self, vm: str) -> backend.VmState | None:
        """Read a VM; ``None`` if it does not exist."""
        made = self._guests.get(vm)
        if made is None or not made.is_running():
            return None
        return backend.VmState(
            made.cpu_seconds(),
            made.cpu_shares(),
            made.line.now('work'),
            'frozen' if vm in self._frozen else recording.RUNNING,
        )

    def machine(self) -> dict[str, Any]:
        """Say on what it runs."""
        found: dict[str, Any] = {
            'kernel': platform.release(),
            'cpus': os.cpu_count(),
            'memory_bytes': os.sysconf('SC_PHYS_PAGES')
            * os.sysconf('SC_PAGE_SIZE'),
        }
        for connection in self._connections.values():
            found['libvirt'] = connection.getLibVersion()
            found['qemu'] = connection.getVersion()
        return found

    def _start_nodes(self, say: Callable[[str], None]) -> None:
        if self._run is None:
            raise exception.LabError('nodes belong to a run')
        for index, spec in enumerate(self._scenario.nodes.values()):
            say(f'starting node {spec.name} on CPU {_listed(spec.cpus)}')
            made = node.Node(
                spec.name,
                self._run,
                self._cache,
                spec.cpus,
                index,
                self._accelerator,
            )
            self._nodes[spec.name] = made
            made.start()
            self._connections[spec.name] = libvirt.open(made.libvirt_uri)
            directory = self._out / recording.AGENTS / spec.name
            options = agent.configuration(self._scenario, spec.name, directory)
            self._agents[spec.name] = agent.NodeAgent(made, directory, options)

    def _boot_guests(self, say: Callable[[str], None]) -> None:
        early = [
            vm
            for vm in self._scenario.vms
            if not self._scenario.starts_late(vm)
        ]
        say(f'booting {len(early)} guests ({self.name})')
        self._guests.update((vm, self._guest(vm)) for vm in early)
        workers = _PARALLEL_BOOTS * (os.cpu_count() or 1)
        pool = concurrent.futures.ThreadPoolExecutor(workers)
        try:
            boots = [pool.submit(self._boot, self._guests[vm]) for vm in early]
            for done in concurrent.futures.as_completed(boots):
                done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _guest(self, vm: str) -> guest.Guest:
        if self._image is None:
            raise exception.LabError('guests need an image')
        wanted = self._scenario.vms[vm]
        return guest.Guest(self._nodes[wanted.node], wanted.guest, self._image)

    def _boot(self, made: guest.Guest) -> None:
        made.start(self._connections[made.node.name])
        made.await_ready(BOOT_PATIENCE_S)

    def _start_late(
        self, made: guest.Guest, ready: Callable[[], None]
    ) -> None:
        # one that was destroyed while it booted is not ready, nor an error
        with contextlib.suppress(exception.LabError):
            self._boot(made)
            ready()

    def _keep_logs(self, running: node.Node) -> None:
        log = running.directory / 'var/log/libvirt/libvirtd.log'
        directory = self._out / recording.AGENTS / running.name
        if log.is_file() and log.stat().st_size:
            directory.mkdir(parents=True, exist_ok=True)
            (directory / 'libvirtd.log').write_bytes(log.read_bytes())


def _hang_up(connection: libvirt.virConnect) -> None:
    with contextlib.suppress(libvirt.libvirtError):
        connection.close()


def _require_root() -> None:
    if os.geteuid():
        raise exception.LabEnvironmentError(
            'real guests need root; --backend fake runs without'
        )


def _listed(cpus: Iterable[int]) -> str:
    return ', '.join(map(str, cpus))
