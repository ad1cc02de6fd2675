# SPDX-License-Identifier: Apache-2.0

"""The guests of a run, on whichever node each of them is."""

from collections.abc import Callable
from collections.abc import Mapping
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
from typing import Any

import libvirt

from fairness_lab.results import reading
from fairness_lab.results import recording
from fairness_lab.scenario import demand
from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed import backend
from fairness_lab.testbed.guests import guest
from fairness_lab.testbed.guests import image
from fairness_lab.testbed.nodes import far_end
from fairness_lab.testbed.nodes import namespace
from fairness_lab.testbed.nodes import node as node_module
from nova_fairness import exception
from nova_fairness.model import cgroup

PROGRAM = 'fio'
_GROUP = 'fio-{}'
_PATIENCE_S = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class VmLoad:
    """The load of one VM.

    :ivar vm: its name.
    :ivar weight: of its block I/O, kernel units.
    :ivar path: of the image of its disk, as seen from outside of the node.
    :ivar reads: whether it reads; ``False`` for writing, ``None`` for both.
    :ivar block_kib: size of a request, KiB.
    :ivar depth: requests under way at once.
    """

    vm: str
    weight: int
    path: pathlib.Path
    reads: bool | None
    block_kib: int
    depth: int

    def command(self, seconds: float) -> list[str]:
        """Command line."""
        kinds = {True: 'read', False: 'write', None: 'rw'}
        kind = kinds[self.reads]
        return [
            *(PROGRAM, '--output-format=json', f'--name={self.vm}'),
            f'--filename={self.path}',
            f'--rw=rand{kind}' if self.depth > 1 else f'--rw={kind}',
            f'--bs={self.block_kib}k',
            f'--iodepth={self.depth}',
            *('--ioengine=libaio', '--direct=1', '--time_based'),
            *(f'--runtime={seconds:g}', '--ramp_time=3', '--norandommap'),
            '--overwrite=0',
        ]


def run_fio(
    jobs: list[VmLoad], parent: Mapping[str, pathlib.Path], seconds: float
) -> dict[str, dict[str, float]]:
    """Run jobs side by side, each in a group of its own.

    :param parent: directory of the group in which VMs' groups are, by
        controller, as :data:`cgroup.UNIFIED` for v2.
    :param seconds: that are measured.
    :returns: by VM: ``weight``, and ``bytes_per_s`` that fio moved.
    :raises LabError: if fio does not work.
    """
    with contextlib.ExitStack() as last:
        running = []
        for job in jobs:
            group = _fio_group(parent, job)
            last.callback(group.rmdir)
            command = namespace.joining(
                [group / 'cgroup.procs'], job.command(seconds)
            )
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            last.callback(process.wait)
            last.callback(process.kill)
            running.append((job, process))
        return {
            job.vm: {
                'weight': float(job.weight),
                'bytes_per_s': _bytes_moved(process, seconds),
            }
            for job, process in running
        }


def _fio_group(
    parent: Mapping[str, pathlib.Path], job: VmLoad
) -> pathlib.Path:
    for controller, name in (
        ('blkio', 'blkio.bfq.weight'),
        (cgroup.UNIFIED, 'io.bfq.weight'),
    ):
        if controller in parent:
            group = parent[controller] / _GROUP.format(job.vm)
            group.mkdir(exist_ok=True)
            (group / name).write_text(str(job.weight))
            return group
    raise exception.LabError('fio needs a controller of block I/O')


def _bytes_moved(process: subprocess.Popen[bytes], seconds: float) -> float:
    """Bytes per second that a process moved."""
    said, error = process.communicate(timeout=seconds + _PATIENCE_S)
    try:
        # Before the result, fio may print remarks.
        (job,) = json.loads(said[said.index(b'{') :])['jobs']
        return float(job['read']['bw_bytes'] + job['write']['bw_bytes'])
    except (ValueError, KeyError) as wrong:
        text = error.decode(errors='replace').strip()[-500:]
        raise exception.LabError(f'fio failed: {text or wrong}') from None


_MIB = 1 << 20


def load_commands(
    index: int, step: demand.DemandStep, *, uplink: bool = False
) -> list[str]:
    """Guest's commands for what a step changes.

    :param index: number of the guest's node in its run.
    :param uplink: whether that node has an uplink.
    """
    found = []
    if step.cpu is not None:
        found.append(_cpu_command(step.cpu, step.cycle))
    if step.memory_mib is not None:
        found.append(f'memory {int(step.memory_mib * _MIB)}')
    if step.disk_read_mib_s is not None or step.disk_write_mib_s is not None:
        read = _amount_text((step.disk_read_mib_s or 0) * _MIB)
        write = _amount_text((step.disk_write_mib_s or 0) * _MIB)
        block = step.disk_block_kib << 10
        found.append(f'disk {read} {write} {block} {step.disk_depth}')
    if step.net_send_mbit_s is not None:
        host = namespace.FAR_ADDRESS
        if not uplink:
            host = namespace.addresses(index, 0, 0)[0].split('/')[0]
        rate = _amount_text(step.net_send_mbit_s * 1e6 / 8)
        found.append(f'net {host} {namespace.SINK_PORT} {rate}')
    for word, port, flows in (
        ('tcp-send', namespace.SINK_PORT, step.tcp_send_flows),
        ('tcp-receive', namespace.SOURCE_PORT, step.tcp_receive_flows),
    ):
        if flows is not None:
            found.append(f'{word} {namespace.FAR_ADDRESS} {port} {flows}')
    if step.wake_hz is not None:
        found.append(f'wake {step.wake_hz:.6f}')
    return found


def _cpu_command(cpu: float, cycle: demand.DemandCycle | None) -> str:
    if cycle is None or cycle.load is demand.CpuLoad.OPEN:
        return f'cpu {_amount_text(cpu)}'
    if cycle.load is demand.CpuLoad.CRON:
        return f'cron {cpu:.6f} {cycle.wait_s:.6f}'
    return f'closed {cpu:.6f} {cycle.threads} {cycle.wait_s:.6f}'


def _amount_text(value: float) -> str:
    return 'max' if value == demand.MAXIMUM else f'{value:.6f}'


BOOT_PATIENCE_S = 600.0
_PARALLEL_BOOTS = 2
_LATE_STARTS = 4


class GuestFleet:
    """Real guests on nodes that run.

    :param scenario: what to run.
    """

    def __init__(self, scenario: scenario_module.Scenario) -> None:
        self._scenario = scenario
        self._nodes: dict[str, node_module.TestNode] = {}
        self._connections: dict[str, libvirt.virConnect] = {}
        self._image: image.GuestImage | None = None
        self._guests: dict[str, guest.Guest] = {}
        self._where = {vm.name: vm.node for vm in scenario.vms.values()}
        self._frozen: set[str] = set()
        self.far: far_end.FarEnd | None = None
        self._disk_load: dict[str, demand.DemandStep] = {}
        self._starter = concurrent.futures.ThreadPoolExecutor(_LATE_STARTS)

    @property
    def count_at_start(self) -> int:
        """How many guests do not start late."""
        return sum(
            not self._scenario.starts_late(vm) for vm in self._scenario.vms
        )

    def add(self, node: node_module.TestNode) -> None:
        """Connect to a node that runs."""
        self._nodes[node.name] = node
        self._connections[node.name] = libvirt.open(node.libvirt_uri)

    def boot(self, boot: image.GuestImage) -> None:
        """Boot those guests that do not start late.

        :param boot: what they boot from.
        :raises LabError: if one does not come up.
        """
        self._image = boot
        early = [
            vm
            for vm in self._scenario.vms
            if not self._scenario.starts_late(vm)
        ]
        self._guests.update((vm, self._create_guest(vm)) for vm in early)
        workers = _PARALLEL_BOOTS * (os.cpu_count() or 1)
        pool = concurrent.futures.ThreadPoolExecutor(workers)
        try:
            boots = [pool.submit(self._boot, self._guests[vm]) for vm in early]
            for done in concurrent.futures.as_completed(boots):
                done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Hang up; guests end with their nodes."""
        self._starter.shutdown(wait=False, cancel_futures=True)
        for made in self._guests.values():
            made.hang_up()
        for connection in self._connections.values():
            with contextlib.suppress(libvirt.libvirtError):
                connection.close()

    def load(self, vm: str, step: demand.DemandStep) -> None:
        """Tell a VM what it wants from now on; it may be gone."""
        made = self._guests[vm]
        if step.disk_read_mib_s or step.disk_write_mib_s:
            self._disk_load[vm] = step
        with contextlib.suppress(exception.LabError):
            uplink = self.far is not None and made.node.has_uplink
            for command in load_commands(made.node.index, step, uplink=uplink):
                made.line.tell(command)
            if self.far is not None and step.net_receive_mbit_s is not None:
                rate = step.net_receive_mbit_s * 1e6 / 8
                self.far.send(_host(made), rate)

    def start(self, vm: str, ready: Callable[[], None]) -> None:
        """Start a VM; ``ready`` is called when it takes commands."""
        self._guests[vm] = made = self._create_guest(vm)
        self._starter.submit(self._start_late, made, ready)

    def move(self, vm: str, node: str, ready: Callable[[], None]) -> None:
        """End a VM and start it on another node; ``ready`` as above."""
        self.destroy(vm)
        self._where[vm] = node
        self.start(vm, ready)

    def destroy(self, vm: str) -> None:
        """End a VM."""
        made = self._guests[vm]
        self._frozen.discard(vm)
        made.destroy(self._connections[made.node.name])

    def freeze(self, vm: str) -> None:
        """Stop a VM's process."""
        self._guests[vm].freeze()
        self._frozen.add(vm)

    def thaw(self, vm: str) -> None:
        """Let a VM's process go on."""
        self._guests[vm].thaw()
        self._frozen.discard(vm)

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
            {**made.more(), **self._received_bytes(made)},
        )

    def _received_bytes(self, made: guest.Guest) -> dict[str, float]:
        reaches = made.node.has_uplink and made.addresses
        if self.far is None or not reaches:
            return {}
        return {'arrived_bytes': self.far.bytes_received_from(_host(made))}

    def fio(self, seconds: float) -> dict[str, dict[str, float]]:
        """Let fio do what the guests do to their disks now, instead of them.

        :param seconds: that are measured.
        :returns: by VM: ``weight``, and ``bytes_per_s``.
        :raises LabError: if fio does not work.
        """
        jobs: dict[str, list[VmLoad]] = {}
        parents: dict[str, Mapping[str, pathlib.Path]] = {}
        still = demand.DemandStep(
            0.0, disk_read_mib_s=0.0, disk_write_mib_s=0.0
        )
        for vm, step in self._disk_load.items():
            made = self._guests[vm]
            weight = reading.io_weight(made.pid)
            if weight is None:
                continue
            jobs.setdefault(made.node.name, []).append(
                VmLoad(
                    vm,
                    weight,
                    made.images[0],
                    _disk_direction(step),
                    step.disk_block_kib,
                    step.disk_depth,
                )
            )
            parents[made.node.name] = reading.parent_groups(made.pid)
            self.load(vm, still)
        found: dict[str, dict[str, float]] = {}
        for name, chosen in jobs.items():
            found.update(run_fio(chosen, parents[name], seconds))
        return found

    def versions(self) -> dict[str, Any]:
        """Versions of libvirt and QEMU."""
        found: dict[str, Any] = {}
        for connection in self._connections.values():
            found['libvirt'] = connection.getLibVersion()
            found['qemu'] = connection.getVersion()
        return found

    def _create_guest(self, vm: str) -> guest.Guest:
        if self._image is None:
            raise exception.LabError('guests need an image')
        return guest.Guest(
            self._nodes[self._where[vm]],
            self._scenario.vms[vm],
            self._image,
            number=1 + list(self._scenario.vms).index(vm),
        )

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


def _host(made: guest.Guest) -> str:
    return made.addresses[0][0].split('/')[0]


def _disk_direction(step: demand.DemandStep) -> bool | None:
    """Tell whether a step reads, writes (``False``) or both (``None``)."""
    if step.disk_read_mib_s and step.disk_write_mib_s:
        return None
    return bool(step.disk_read_mib_s)
