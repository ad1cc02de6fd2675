# SPDX-License-Identifier: Apache-2.0

"""The guests of a run, on whichever node each of them is."""

from collections.abc import Callable
from collections.abc import Mapping
import concurrent.futures
import contextlib
import os
import pathlib
from typing import Any

import libvirt

from fairness_lab.results import reading
from fairness_lab.results import recording
from fairness_lab.scenario import demand
from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed import backend
from fairness_lab.testbed.guests import fio
from fairness_lab.testbed.guests import guest
from fairness_lab.testbed.guests import image
from fairness_lab.testbed.guests import load
from fairness_lab.testbed.nodes import far_end
from fairness_lab.testbed.nodes import node as node_module
from nova_fairness import exception

BOOT_PATIENCE_S = 180.0
_PARALLEL_BOOTS = 2
_LATE_STARTS = 4


class Fleet:
    """Real guests on nodes that run.

    :param scenario: what to run.
    """

    def __init__(self, scenario: scenario_module.Scenario) -> None:
        self._scenario = scenario
        self._nodes: dict[str, node_module.Node] = {}
        self._connections: dict[str, libvirt.virConnect] = {}
        self._image: image.Image | None = None
        self._guests: dict[str, guest.Guest] = {}
        self._where = {vm.name: vm.node for vm in scenario.vms.values()}
        self._frozen: set[str] = set()
        self.far: far_end.FarEnd | None = None
        self._disk_load: dict[str, demand.Step] = {}
        self._starter = concurrent.futures.ThreadPoolExecutor(_LATE_STARTS)

    @property
    def early(self) -> int:
        """How many guests do not start late."""
        return sum(
            not self._scenario.starts_late(vm) for vm in self._scenario.vms
        )

    def add(self, node: node_module.Node) -> None:
        """Connect to a node that runs."""
        self._nodes[node.name] = node
        self._connections[node.name] = libvirt.open(node.libvirt_uri)

    def boot(self, boot: image.Image) -> None:
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
        self._guests.update((vm, self._made(vm)) for vm in early)
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

    def load(self, vm: str, step: demand.Step) -> None:
        """Tell a VM what it wants from now on; it may be gone."""
        made = self._guests[vm]
        if step.disk_read_mib_s or step.disk_write_mib_s:
            self._disk_load[vm] = step
        with contextlib.suppress(exception.LabError):
            uplink = self.far is not None and made.node.has_uplink
            for command in load.commands(made.node.index, step, uplink=uplink):
                made.line.tell(command)
            if self.far is not None and step.net_receive_mbit_s is not None:
                rate = step.net_receive_mbit_s * 1e6 / 8
                self.far.send(_host(made), rate)

    def start(self, vm: str, ready: Callable[[], None]) -> None:
        """Start a VM; ``ready`` is called when it takes commands."""
        self._guests[vm] = made = self._made(vm)
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
            {**made.more(), **self._arrived(made)},
        )

    def _arrived(self, made: guest.Guest) -> dict[str, float]:
        reaches = made.node.has_uplink and made.addresses
        if self.far is None or not reaches:
            return {}
        return {'arrived_bytes': self.far.came_from(_host(made))}

    def fio(self, seconds: float) -> dict[str, dict[str, float]]:
        """Let fio do what the guests do to their disks now, instead of them.

        :param seconds: that are measured.
        :returns: by VM: ``weight``, and ``bytes_per_s``.
        :raises LabError: if fio does not work.
        """
        jobs: dict[str, list[fio.Job]] = {}
        parents: dict[str, Mapping[str, pathlib.Path]] = {}
        still = demand.Step(0.0, disk_read_mib_s=0.0, disk_write_mib_s=0.0)
        for vm, step in self._disk_load.items():
            made = self._guests[vm]
            weight = reading.io_weight(made.pid)
            if weight is None:
                continue
            jobs.setdefault(made.node.name, []).append(
                fio.Job(
                    vm,
                    weight,
                    made.images[0],
                    _kind(step),
                    step.disk_block_kib,
                    step.disk_depth,
                )
            )
            parents[made.node.name] = reading.parents(made.pid)
            self.load(vm, still)
        found: dict[str, dict[str, float]] = {}
        for name, chosen in jobs.items():
            found.update(fio.run(chosen, parents[name], seconds))
        return found

    def versions(self) -> dict[str, Any]:
        """Give the versions of libvirt and QEMU."""
        found: dict[str, Any] = {}
        for connection in self._connections.values():
            found['libvirt'] = connection.getLibVersion()
            found['qemu'] = connection.getVersion()
        return found

    def _made(self, vm: str) -> guest.Guest:
        if self._image is None:
            raise exception.LabError('guests need an image')
        return guest.Guest(
            self._nodes[self._where[vm]],
            self._scenario.vms[vm].guest,
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


def _kind(step: demand.Step) -> bool | None:
    """Tell whether a step reads, writes (``False``) or both (``None``)."""
    if step.disk_read_mib_s and step.disk_write_mib_s:
        return None
    return bool(step.disk_read_mib_s)
