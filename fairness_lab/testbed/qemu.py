# SPDX-License-Identifier: Apache-2.0

"""Real nodes and guests behind the contract of a backend."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import json
import os
import pathlib
import platform
import secrets
import shutil
import subprocess
import tempfile
import time
from typing import Any

from fairness_lab.results import recording
from fairness_lab.scenario import demand
from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed import backend
from fairness_lab.testbed.guests import domain
from fairness_lab.testbed.guests import fleet
from fairness_lab.testbed.guests import image
from fairness_lab.testbed.nodes import agent
from fairness_lab.testbed.nodes import disk
from fairness_lab.testbed.nodes import far_end
from fairness_lab.testbed.nodes import groups
from fairness_lab.testbed.nodes import node
from fairness_lab.testbed.nodes import processes
from fairness_lab.testbed.nodes import redis_server
from fairness_lab.testbed.nodes import wiring
from nova_fairness import exception

STATE = pathlib.Path('/var/lib/nova-fairness-lab')
"""Where runs keep the files of their nodes while they last."""

_OWNER = 'owner.json'


def begin_run(pid: int, state: pathlib.Path = STATE) -> pathlib.Path:
    """Start a run: make its directory, whose name is the run's identifier.

    :param pid: the process that owns the run.
    :param state: where the runs are.
    :raises LabEnvironmentError: if the directory cannot be made.
    """
    owner = processes.identify(pid)
    if owner is None:
        raise exception.LabError(f'process {pid} cannot own a run: it is gone')
    name = f'r{secrets.token_hex(4)}'
    text = json.dumps(
        {
            'pid': owner.pid,
            'start_ticks': owner.start_ticks,
            'boot_id': processes.boot_id(),
        }
    )
    try:
        new = state / f'new-{name}'
        new.mkdir(parents=True)
        (new / _OWNER).write_text(text)
        return new.rename(state / name)
    except OSError as error:
        raise exception.LabEnvironmentError(
            f'{state} cannot be written (the laboratory needs root): {error}'
        ) from None


def finish_run(run: pathlib.Path) -> None:
    """End a run: nothing of it is left.

    :param run: what :func:`begin` returned.
    :raises LabError: if something does not go away.
    """
    groups.remove_group(groups.NodeGroups(run.name, '').relative)
    disk.remove(run)
    shutil.rmtree(run, ignore_errors=True)


def remove_dead_runs(state: pathlib.Path = STATE) -> list[str]:
    """Remove what runs left whose owner is dead.

    :returns: the identifiers of those runs.
    :raises LabError: if something does not go away.
    """
    dead = sorted(_dead_runs(state))
    for name in dead:
        finish_run(state / name)
    return dead


def living_runs(state: pathlib.Path = STATE) -> dict[pathlib.Path, int]:
    """Process number of the owner of each run that goes on."""
    return {
        path: json.loads((path / _OWNER).read_text())['pid']
        for path in sorted(state.glob('r*'))
        if _is_owned(path)
    }


def other_runs(run: pathlib.Path) -> list[str]:
    """Other runs that go on; each takes CPU time from the other.

    :param run: what :func:`begin` returned.
    """
    return sorted(
        path.name
        for path in run.parent.glob('r*')
        if path.name != run.name and _is_owned(path)
    )


def _dead_runs(state: pathlib.Path) -> Iterator[str]:
    known = {path.name for path in state.glob('*') if path.is_dir()}
    # groups without a directory are left by a removal that was cut off
    yield from groups.runs_with_groups() - known
    for name in known:
        if not name.startswith('new-') and not _is_owned(state / name):
            yield name


def _is_owned(run: pathlib.Path) -> bool:
    try:
        owner = json.loads((run / _OWNER).read_text())
        identity = processes.Identity(owner['pid'], owner['start_ticks'])
        same_boot = owner['boot_id'] == processes.boot_id()
    except (OSError, ValueError, KeyError):
        return False
    return same_boot and processes.is_alive(identity)


KVM = 'kvm'
TCG = 'tcg'
QEMU = 'qemu-system-x86_64'

_DEVICE = pathlib.Path('/dev/kvm')
_READY = 'guest ready'


def choose_accelerator(
    boot: image.GuestImage, cache: pathlib.Path, patience_s: float = 20.0
) -> str:
    """:data:`KVM` if the guest boots with it, else :data:`TCG`.

    :param boot: what the guest boots from.
    :param cache: directory in which the answer is kept.
    :param patience_s: seconds that the guest may take.
    :raises LabEnvironmentError: if there is no QEMU.
    """
    if not shutil.which(QEMU):
        raise exception.LabEnvironmentError(
            f'the laboratory needs {QEMU}, which is not installed'
        )
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return TCG
    known = cache / f'accelerator-{processes.boot_id()}'
    if known.is_file():
        return known.read_text()
    answer = KVM if _boots_under_kvm(boot, patience_s) else TCG
    for old in cache.glob('accelerator-*'):
        old.unlink()
    known.write_text(answer)
    return answer


def _boots_under_kvm(boot: image.GuestImage, patience_s: float) -> bool:
    with tempfile.TemporaryDirectory() as directory:
        console = pathlib.Path(directory) / 'console'
        console.touch()
        command = [
            # Ends the guest, too, where nobody is left to end it.
            *('timeout', '--kill-after=2', f'{patience_s + 5:g}'),
            *(QEMU, '-accel', 'kvm', '-nodefaults', '-display', 'none'),
            *('-machine', 'pc'),
            *('-m', str(scenario_module.SMALLEST_MEMORY_MIB)),
            *('-kernel', str(boot.kernel), '-initrd', str(boot.initrd)),
            *('-append', domain.COMMAND_LINE, '-no-reboot'),
            *('-serial', f'file:{console}', '-serial', 'null'),
        ]
        guest = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            processes.wait_until(
                lambda: (
                    _READY in console.read_text(errors='replace')
                    or guest.poll() is not None
                ),
                patience_s,
                step_s=0.1,
            )
            return _READY in console.read_text(errors='replace')
        finally:
            guest.terminate()
            guest.wait()


class QemuBackend:
    """Real nodes and guests.

    :param scenario: what to run.
    :param out: directory of the recording.
    :param cache: directory kept between runs.
    :param wanted: ``kvm``, ``tcg`` or ``None`` to choose what works.
    :param weight: of the laboratory's programs, as :data:`groups.WEIGHT`.
    """

    def __init__(
        self,
        scenario: scenario_module.Scenario,
        out: pathlib.Path,
        cache: pathlib.Path,
        wanted: str | None = None,
        weight: float = groups.WEIGHT,
    ) -> None:
        self._scenario = scenario
        self._out = out
        self._cache = cache
        self._wanted = wanted
        self._weight = weight
        self._accelerator = wanted or TCG
        self._run: pathlib.Path | None = None
        self._nodes: dict[str, node.TestNode] = {}
        self._disks: list[disk.NodeDisk] = []
        self._fleet = fleet.GuestFleet(scenario)
        self._agents = agent.NodeAgents(scenario.interval_s)
        self._wiring: wiring.Wiring | None = None
        self._far: far_end.FarEnd | None = None

    @property
    def name(self) -> str:
        """Name of the backend in the result."""
        return f'qemu-{self._accelerator}'

    def open(self, say: Callable[[str], None]) -> None:
        """Bring up nodes and those VMs that do not start late.

        :raises LabError: if something does not come up.
        """
        _require_root()
        for dead in remove_dead_runs():
            say(f'removed what the dead run {dead} left')
        say('preparing the image of the guests')
        boot = image.ensure(self._cache)
        if self._wanted is None:
            self._accelerator = choose_accelerator(boot, self._cache)
        self._run = begin_run(os.getpid())
        for other in other_runs(self._run):
            say(f'run {other} goes on, too: both will measure worse')
        self._start_nodes(say)
        groups.set_cpu_weight_of_runs(self._weight)
        say(f'booting {self._fleet.count_at_start} guests ({self.name})')
        self._fleet.boot(boot)
        for made in self._nodes.values():
            made.set_cpus()

    def close(self) -> None:
        """End everything; nothing is left.

        :raises LabError: if something does not go away.
        """
        with contextlib.ExitStack() as last:
            # in reverse order, and each even if one before it fails
            if self._run is not None:
                last.callback(finish_run, self._run)
            if self._wiring is not None:
                last.callback(self._wiring.close)
            if self._far is not None:
                last.callback(self._far.close)
            for running in self._nodes.values():
                last.callback(running.stop)
                last.callback(self._copy_logs, running)
            for own in self._disks:
                last.callback(own.close)
            last.callback(self._fleet.close)
            last.callback(self._agents.close)

    def now(self) -> float:
        """Seconds of the machine's monotonic clock."""
        return time.monotonic()

    def sleep_until(self, when: float) -> None:
        """Let time pass."""
        time.sleep(max(0.0, when - time.monotonic()))

    def load(self, vm: str, step: demand.DemandStep) -> None:
        """Tell a VM what it wants from now on; it may be gone."""
        self._fleet.load(vm, step)

    def start_vm(self, vm: str, ready: Callable[[], None]) -> None:
        """Start a VM; ``ready`` is called when it takes commands."""
        self._fleet.start(vm, ready)

    def destroy_vm(self, vm: str) -> None:
        """End a VM."""
        self._fleet.destroy(vm)

    def move_vm(self, vm: str, node: str, ready: Callable[[], None]) -> None:
        """End a VM and start it on another node; ``ready`` as above."""
        self._fleet.move(vm, node, ready)

    def freeze_vm(self, vm: str) -> None:
        """Stop a VM's process."""
        self._fleet.freeze(vm)

    def thaw_vm(self, vm: str) -> None:
        """Let a VM's process go on."""
        self._fleet.thaw(vm)

    def start_agents(self, nodes: Iterable[str], *, wait: bool) -> None:
        """Start agents; with ``wait``, until each has made a round.

        :raises LabError: if one does not.
        """
        self._agents.start(nodes, wait=wait)

    def stop_agents(self, nodes: Iterable[str], *, kill: bool) -> None:
        """End agents, cleanly or as a crash would."""
        self._agents.stop(nodes, kill=kill)

    def restart_agent(self, node: str) -> None:
        """End an agent cleanly, then start it; returns at once."""
        self._agents.restart(node)

    def hold_agents(self, nodes: Iterable[str]) -> None:
        """Stop the agents' processes where they are."""
        self._agents.hold(nodes)

    def release_agents(self, nodes: Iterable[str]) -> None:
        """Let held agents go on."""
        self._agents.release(nodes)

    def cut(self, node: str) -> None:
        """Take the link of a node down."""
        self._network_between_nodes().cut(node)

    def heal(self, node: str) -> None:
        """Take it up again."""
        self._network_between_nodes().heal(node)

    def redis(self) -> redis_server.RedisServer:
        """Redis of the run.

        :raises LabError: if the scenario has none.
        """
        return self._network_between_nodes().redis()

    def _network_between_nodes(self) -> wiring.Wiring:
        if self._wiring is None:
            raise exception.LabError(
                'no network or Redis was started between the nodes'
            )
        return self._wiring

    def state(self, vm: str) -> backend.VmState | None:
        """Read a VM; ``None`` if it does not exist."""
        return self._fleet.state(vm)

    def fio(self, seconds: float) -> Mapping[str, Mapping[str, float]]:
        """Repeat the present disk load with fio.

        :raises LabError: if fio does not work.
        """
        return self._fleet.fio(seconds)

    def machine(self) -> dict[str, Any]:
        """Say on what it runs."""
        found: dict[str, Any] = {
            'kernel': platform.release(),
            'cpus': os.cpu_count(),
            'memory_bytes': os.sysconf('SC_PHYS_PAGES')
            * os.sysconf('SC_PAGE_SIZE'),
        }
        return {**found, **self._fleet.versions()}

    def _start_nodes(self, say: Callable[[str], None]) -> None:
        if self._run is None:
            raise exception.LabError('nodes belong to a run')
        if wiring.needed(self._scenario):
            say('starting the network between the nodes')
            self._wiring = wiring.Wiring(self._run, redis=self._scenario.redis)
            self._wiring.open()
        names = self._scenario.nodes if self._scenario.keys else ()
        owned = agent.make_keys(self._run, names)
        for index, spec in enumerate(self._scenario.nodes.values()):
            say(
                f'starting node {spec.name} on CPU'
                f' {_cpu_list_text(spec.cpu_numbers)}'
            )
            made = node.TestNode(
                spec.name,
                self._run,
                self._cache,
                spec.cpu_numbers,
                index,
                self._accelerator,
            )
            self._nodes[spec.name] = made
            made.start()
            self._add_disk(made, spec)
            self._add_uplink(made, spec)
            if self._wiring is not None:
                self._wiring.link(made)
            self._fleet.add(made)
            directory = self._out / recording.AGENTS / spec.name
            options = agent.configuration(
                self._scenario, spec.name, directory, owned.get(spec.name)
            )
            self._agents.add(
                spec.name, agent.NodeAgent(made, directory, options)
            )

    def _add_disk(
        self, made: node.TestNode, spec: scenario_module.NodeSpec
    ) -> None:
        if not spec.disk_scheduler:
            return
        size_mib = sum(
            own.size_mib
            for vm in self._scenario.vms.values()
            for own in vm.disks
        )
        added = disk.NodeDisk(
            made, size_mib, spec.disk_mib_s, spec.disk_scheduler
        )
        self._disks.append(added)
        added.open()
        made.has_disk = True

    def _add_uplink(
        self, made: node.TestNode, spec: scenario_module.NodeSpec
    ) -> None:
        if not spec.uplink or self._run is None:
            return
        if self._far is None:
            self._far = self._fleet.far = far_end.FarEnd(self._run)
            self._far.open()
        self._far.link(made)
        made.has_uplink = True

    def _copy_logs(self, running: node.TestNode) -> None:
        log = running.directory / 'var/log/libvirt/libvirtd.log'
        directory = self._out / recording.AGENTS / running.name
        if log.is_file() and log.stat().st_size:
            directory.mkdir(parents=True, exist_ok=True)
            (directory / 'libvirtd.log').write_bytes(log.read_bytes())


def _require_root() -> None:
    if os.geteuid():
        raise exception.LabEnvironmentError(
            'guests need root; nova-fairness-sim needs none'
        )


def _cpu_list_text(cpus: Iterable[int]) -> str:
    return ', '.join(map(str, cpus))
