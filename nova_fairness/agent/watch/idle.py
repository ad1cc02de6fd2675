# SPDX-License-Identifier: Apache-2.0

"""Watches since when the VMs of this node do next to nothing."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import json
import logging
import time
from typing import Any

import numpy as np

from nova_fairness.measure import idleness
from nova_fairness.model import instance
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.runtime import state_file
from nova_fairness.shares import waiting

LOG = logging.getLogger(__name__)

EVERY_S = 60.0
"""Activity of VMs is read this often, and added up meanwhile."""

SAVE_S = 600.0
"""It is written this often; a crash loses at most an hour's mean."""

_CPU = resources.RESOURCES.index('cpu_time')
_MOVED = [
    resources.RESOURCES.index(name)
    for name in ('disk_read', 'disk_written', 'net_sent')
]
"""Received traffic does not count: broadcasts reach idle VMs, too."""


class IdleMemory:
    """Remembers since when VMs are idle, over restarts of the agent.

    :param file: of what is remembered; need not be durable.
    :param limits: of what an idle VM does.
    :param speed_factor: of the node's CPUs.
    :param clock: seconds of the epoch.
    """

    def __init__(
        self,
        file: state_file.StateFile,
        limits: idleness.QuietLimits,
        speed_factor: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._limits = limits
        self._speed = speed_factor
        self._clock = clock
        self._quiet: dict[str, idleness.Quiet] = file.kept(
            _quiet, {}, 'all VMs count as busy until now'
        )
        self._vms: tuple[instance.Incarnation, ...] = ()
        self._work = np.zeros((2, 0))
        self._known = np.zeros(0, dtype=np.bool_)
        self._looked = self._saved = clock()
        self._since: Mapping[str, float] = {}

    def add(self, used: usage_model.Usage) -> Mapping[str, float]:
        """Take note of an interval.

        :returns: since when VMs are idle, seconds of the epoch, by UUID; as
            of the last look.
        """
        now = self._clock()
        if used.incarnations != self._vms:
            self._look(now)
            self._vms = used.incarnations
            self._begin()
            self._look(now)
        self._work += self._done(used)
        self._known &= used.known
        if not 0 <= now - self._looked < EVERY_S:
            self._look(now)
            self._begin()
        if not 0 <= now - self._saved < SAVE_S:
            self.save()
        return self._since

    def save(self) -> None:
        """Write what is remembered."""
        self._saved = self._clock()
        self._file.write(
            json.dumps(
                {
                    uuid: dataclasses.asdict(each)
                    for uuid, each in self._quiet.items()
                }
            )
        )

    def _done(self, used: usage_model.Usage) -> usage_model.Scalars:
        """CPU seconds per vCPU and bytes that VMs moved, (2, n)."""
        vcpus = np.array([vm.instance.vcpus for vm in used.incarnations])
        cpu_s = used.newest[:, _CPU] / self._speed / np.maximum(vcpus, 1)
        stall = np.nan_to_num(used.cpu_stall)
        most = np.full(len(vcpus), used.interval_s)
        wanted = waiting.closed(cpu_s, stall, most)
        return np.stack([wanted, used.newest[:, _MOVED].sum(axis=1)])

    def _begin(self) -> None:
        self._work = np.zeros((2, len(self._vms)))
        self._known = np.ones(len(self._vms), dtype=np.bool_)

    def _look(self, now: float) -> None:
        """Judge what was added up since the last look."""
        self._looked = now
        for row, vm in enumerate(self._vms):
            # One that could not be read is out of sight.
            if self._known[row]:
                uuid = vm.instance.uuid
                before = self._quiet.get(uuid) or idleness.Quiet.fresh(now)
                work = idleness.VmWork(*self._work[:, row].tolist())
                self._quiet[uuid] = before.after(work, now, self._limits)
        self._quiet = {
            uuid: each
            for uuid, each in self._quiet.items()
            if 0 <= now - each.seen <= idleness.WINDOW_S
        }
        here = {vm.instance.uuid for vm in self._vms}
        self._since = {
            uuid: each.since
            for uuid, each in self._quiet.items()
            if uuid in here
        }


def _quiet(told: Mapping[str, Any]) -> dict[str, idleness.Quiet]:
    return {str(uuid): _read(each) for uuid, each in told.items()}


def _read(told: Mapping[str, Any]) -> idleness.Quiet:
    work = told['work']
    return idleness.Quiet(
        float(told['since']),
        float(told['begun']),
        float(told['seen']),
        idleness.VmWork(float(work['cpu_s']), float(work['moved'])),
    )
