# SPDX-License-Identifier: Apache-2.0

"""Whether weights do anything for the disks of the VMs that run."""

from collections.abc import Iterable
from collections.abc import Mapping
import pathlib

from nova_fairness.apply.cgroup import disk as disk_control
from nova_fairness.collect import block_devices
from nova_fairness.model import cgroup
from nova_fairness.model import instance
from nova_fairness.model import pressure


def availability(
    vms: Iterable[instance.Instance],
    mountinfo_path: str,
    blocks: block_devices.BlockDevices,
) -> tuple[bool, str]:
    """Judge the devices below the disks of VMs as an agent does.

    :param mountinfo_path: says where the hierarchies are mounted.
    :param blocks: of this host.
    :returns: whether a weight has an effect for any disk, and which files
        hold it or why none has; without disks, what this host may have.
    :raises ControlUnavailable: if this host has no block I/O controller.
    :raises OSError: if the mounts cannot be read.
    """
    text = pathlib.Path(mountinfo_path).read_text('utf-8')
    mounts = cgroup.mounts(text)
    files = disk_control.file_names(mounts)
    disks = [disk for vm in vms for disk in blocks.disks(vm)]
    if not disks:
        return True, ' or '.join(files)
    devices = _devices(disks, mounts, blocks)
    whys = []
    used = set()
    for disk in disks:
        own = [f for f in files if pressure.is_weighed(disk, devices, f)]
        used.update(own[:1])
        if not own:
            whys.append(pressure.why_unweighed(disk, devices))
    told = [' or '.join(f for f in files if f in used)] if used else []
    told += [f'without effect: {why}' for why in sorted(set(whys))]
    return bool(used), '; '.join(told)


def _devices(
    disks: Iterable[pressure.DiskPath],
    mounts: Mapping[str, cgroup.Mount],
    blocks: block_devices.BlockDevices,
) -> Mapping[str, pressure.DeviceTotals]:
    by_cost = block_devices.cost_models(mounts)
    found = {
        number: blocks.totals(number, number in by_cost)
        for disk in disks
        for number in disk.devices
    }
    return {number: it for number, it in found.items() if it is not None}
