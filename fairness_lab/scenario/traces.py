# SPDX-License-Identifier: Apache-2.0


"""Read traces of VMs and their demands, as CSV or Parquet.

A row says what a VM wants from a moment on. Columns that are not there are
zero; a VM ends with a row without a node.
"""

from collections.abc import Mapping
import dataclasses
import math
import pathlib

from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import programs
from fairness_lab.scenario import trace_rows
from fairness_lab.scenario import values
from nova_fairness import exception
from nova_fairness.model import resources

LOAD: Mapping[str, tuple[str, float]] = {
    'cpu': ('cpu_time', 1.0),
    'memory_mib': ('memory', values.MIB),
    'disk_read_mib_s': ('disk_read', values.MIB),
    'disk_write_mib_s': ('disk_written', values.MIB),
    'net_receive_mbit_s': ('net_received', values.MBIT),
    'net_send_mbit_s': ('net_sent', values.MBIT),
}
"""Resource and unit by column, which is the key of a step of a load, too."""

NEEDED = ('time_s', 'vm', 'user', 'node')
OF_VM = ('vcpus', 'vm_memory_mib')
COLUMNS = (*NEEDED, *OF_VM, *LOAD)
"""All that a trace can say."""

Row = trace_rows.Row
_HEADER = trace_rows.Header(NEEDED, COLUMNS[len(NEEDED) :])


def add(
    story: cloud_module.ScenarioDraft, path: pathlib.Path
) -> cloud_module.ScenarioDraft:
    """Add the VMs of a trace to a draft that has nodes.

    :param path: of a ``.csv`` or ``.parquet`` file.
    :raises BadTrace: with file, line, column and what was expected.
    """
    vms: dict[str, values.Vm] = {}
    changes: list[cloud_module.VmChange] = []
    nodes = {spec.name for spec in story.nodes}
    for place, row in trace_rows.read(path, _HEADER):
        name = trace_rows.text(place, row, 'vm')
        when = _read_round(place, row, story)
        node = str(row['node'] or '').strip()
        if node and node not in nodes:
            some = ', '.join(sorted(nodes)[:10])
            raise place.error('node', node, f'a node, such as {some}')
        if name not in vms:
            vms[name] = _read_vm(place, row, name, story)
        if when < story.rounds:
            demand = _read_demand(place, row, node)
            changes.append(cloud_module.VmChange(when, name, node, demand))
    if not vms:
        raise exception.BadTrace(f'{path}: expected at least one row')
    return dataclasses.replace(
        story, vms=tuple(vms.values()), changes=tuple(changes)
    )


def _read_round(
    place: trace_rows.RowPlace, row: Row, story: cloud_module.ScenarioDraft
) -> int:
    at_s = trace_rows.number(place, row, 'time_s', math.nan)
    if not math.isfinite(at_s):
        raise place.error('time_s', row['time_s'], 'seconds')
    return math.ceil(at_s / story.interval_s - 1e-9)


def _read_vm(
    place: trace_rows.RowPlace,
    row: Row,
    name: str,
    story: cloud_module.ScenarioDraft,
) -> values.Vm:
    """Read a VM from its first row."""
    user = trace_rows.text(place, row, 'user')
    if story.user_weight and user not in story.user_weight:
        some = ', '.join(list(story.user_weight)[:10])
        raise place.error('user', user, f'a user out of {some}')
    plain = values.Vm(name, user, memory_mib=programs.SIMULATOR.memory_mib)
    vcpus = trace_rows.number(place, row, 'vcpus', plain.vcpus, 1.0)
    memory = trace_rows.number(
        place, row, 'vm_memory_mib', plain.memory_mib, 1.0
    )
    if not math.isfinite(vcpus) or vcpus != int(vcpus):
        raise place.error('vcpus', row['vcpus'], 'a whole number, at least 1')
    if not math.isfinite(memory):
        raise place.error('vm_memory_mib', row['vm_memory_mib'], 'MiB')
    return dataclasses.replace(plain, vcpus=int(vcpus), memory_mib=memory)


def _read_demand(
    place: trace_rows.RowPlace, row: Row, node: str
) -> resources.Vector:
    amounts = {
        name: trace_rows.number(place, row, key, 0.0) * unit
        for key, (name, unit) in LOAD.items()
    }
    if not node:
        amounts = {}
    return resources.RESOURCES.vector(**amounts)
