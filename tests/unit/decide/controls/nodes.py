# SPDX-License-Identifier: Apache-2.0

"""Nodes whose VMs wait for disks or memory."""

import dataclasses

import numpy as np

from nova_fairness.model import instance
from nova_fairness.model import pressure as pressure_model


def vm(number, *, paused=False):
    return instance.Incarnation(
        instance.Instance(f'uuid-{number}', f'vm-{number}', 1, 1 << 30),
        number,
        1,
        paused,
    )


def pressed(devices, paths, **changes):
    count = len(paths)
    vms = tuple(vm(number) for number in range(1, count + 1))
    return dataclasses.replace(
        pressure_model.Pressure(
            interval_s=1.0,
            incarnations=vms,
            fault_rate=np.full(count, np.nan),
            memory_stall=np.full(count, np.nan),
            held_bytes=np.full(count, 1e9),
            disks=tuple(
                (pressure_model.DiskPath('vda', path),) for path in paths
            ),
            reclaim_rate=0.0,
            devices=devices,
        ),
        **changes,
    )
