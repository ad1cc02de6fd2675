# SPDX-License-Identifier: Apache-2.0

"""Finds since when the VMs of this node are idle."""

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

CHECK_INTERVAL_S = 60.0
"""Seconds between two checks; the activity in between is summed."""

SAVE_INTERVAL_S = 600.0
"""Seconds between two saves; a crash loses the time since the last one."""

_CPU = resources.RESOURCES.index('cpu_time')
_TRAFFIC = [
    resources.RESOURCES.index(name)
    for name in ('disk_read', 'disk_written', 'net_sent')
]
"""Resources that count as traffic. Received traffic does not count, because
broadcasts reach idle VMs, too."""


class IdleMemory:
    """Stores since when VMs are idle, also over restarts of the agent.

    :param file: of the stored state; need not be durable.
    :param limits: largest activity of an idle VM.
    :param speed_factor: of the node's CPUs.
    :param clock: seconds since the epoch.
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
            _parse_quiet_states, {}, 'all VMs count as busy until now'
        )
        self._vms: tuple[instance.Incarnation, ...] = ()
        self._work = np.zeros((2, 0))
        self._known = np.zeros(0, dtype=np.bool_)
        self._looked = self._saved = clock()
        self._since: Mapping[str, float] = {}

    def add(self, used: usage_model.Usage) -> Mapping[str, float]:
        """Add an interval.

        :returns: start of the idle time of each idle VM, seconds since the
            epoch, by UUID; of the last check.
        """
        now = self._clock()
        if used.incarnations != self._vms:
            self._judge(now)
            self._vms = used.incarnations
            self._clear_work()
            self._judge(now)
        self._work += self._work_of_interval(used)
        self._known &= used.known
        if not 0 <= now - self._looked < CHECK_INTERVAL_S:
            self._judge(now)
            self._clear_work()
        if not 0 <= now - self._saved < SAVE_INTERVAL_S:
            self.save()
        return self._since

    def save(self) -> None:
        """Write the stored state to the file."""
        self._saved = self._clock()
        self._file.write(
            json.dumps(
                {
                    uuid: dataclasses.asdict(each)
                    for uuid, each in self._quiet.items()
                }
            )
        )

    def _work_of_interval(
        self, used: usage_model.Usage
    ) -> usage_model.Scalars:
        """Return CPU seconds per vCPU and bytes of traffic, (2, n)."""
        vcpus = np.array([vm.instance.vcpus for vm in used.incarnations])
        cpu_s = used.newest[:, _CPU] / self._speed / np.maximum(vcpus, 1)
        stall = np.nan_to_num(used.cpu_stall)
        most = np.full(len(vcpus), used.interval_s)
        wanted = waiting.use_without_waits(cpu_s, stall, most)
        return np.stack([wanted, used.newest[:, _TRAFFIC].sum(axis=1)])

    def _clear_work(self) -> None:
        self._work = np.zeros((2, len(self._vms)))
        self._known = np.ones(len(self._vms), dtype=np.bool_)

    def _judge(self, now: float) -> None:
        """Judge the activity that was summed since the last check."""
        self._looked = now
        for row, vm in enumerate(self._vms):
            # One that could not be read is out of sight.
            if self._known[row]:
                uuid = vm.instance.uuid
                before = self._quiet.get(uuid) or idleness.Quiet.fresh(now)
                work = idleness.VmWork(*self._work[:, row].tolist())
                self._quiet[uuid] = before.updated(work, now, self._limits)
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


def _parse_quiet_states(told: Mapping[str, Any]) -> dict[str, idleness.Quiet]:
    return {str(uuid): _parse_entry(each) for uuid, each in told.items()}


def _parse_entry(entry: Mapping[str, Any]) -> idleness.Quiet:
    work = entry['work']
    return idleness.Quiet(
        float(entry['since']),
        float(entry['begun']),
        float(entry['seen']),
        idleness.VmWork(float(work['cpu_s']), float(work['moved'])),
    )
