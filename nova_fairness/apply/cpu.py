# SPDX-License-Identifier: Apache-2.0

"""CPU shares of VMs: ``cpu.shares`` (cgroup v1), ``cpu.weight`` (v2)."""

from collections.abc import Mapping
import pathlib

from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import control
from nova_fairness.apply.cgroup import files
from nova_fairness.model import cgroup
from nova_fairness.model import resources


class CpuShares(control.GroupControl):
    """Steers the group of each VM; all of its threads share one value.

    A controller is in one hierarchy only: where v1 has ``cpu``, v1 it is,
    also if a v2 tree without it is mounted beside.

    :param proc: where procfs is mounted.
    :param mountinfo_path: says where the hierarchies are mounted.
    :param writer: as :func:`privileged.write_controls`.
    :param max_open: at most so many descriptors are kept between reads.
    :raises ControlUnavailable: if this host has no CPU controller.
    """

    kind = resources.Control.CPU

    def __init__(
        self,
        proc: str = '/proc',
        mountinfo_path: str = '/proc/self/mountinfo',
        writer: control.Writer = privileged.write_controls,
        max_open: int = 4096,
    ) -> None:
        mounts = cgroup.mounts(pathlib.Path(mountinfo_path).read_text('utf-8'))
        super().__init__(
            proc, mounts, _name_of_control(mounts), writer, max_open
        )


def _name_of_control(mounts: Mapping[str, cgroup.Mount]) -> str:
    """Give the name of the file that steers the CPU on this host."""
    version = control.version_of(
        mounts,
        files.FILES[files.CPU_SHARES].controller,
        files.CPU_CONTROLLER,
        'no CPU controller is mounted; expected it in a cgroup v1 hierarchy '
        'or in cgroup.controllers of the v2 hierarchy',
    )
    return files.CPU_SHARES if version == 1 else files.CPU_WEIGHT
