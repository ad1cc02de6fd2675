# SPDX-License-Identifier: Apache-2.0

"""Repeats the disk load of guests with fio, at the weights that they have.

What fio gets is what the kernel's scheduler makes of these weights, without
emulation between: the measure for what the guests got.
"""

from collections.abc import Mapping
import contextlib
import dataclasses
import json
import pathlib
import subprocess

from fairness_lab.testbed.nodes import namespace
from nova_fairness import exception
from nova_fairness.model import cgroup

PROGRAM = 'fio'
_GROUP = 'fio-{}'
_PATIENCE_S = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
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
        """Give the command line."""
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


def run(
    jobs: list[Job], parent: Mapping[str, pathlib.Path], seconds: float
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
            group = _made_group(parent, job)
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
                'bytes_per_s': _moved(process, seconds),
            }
            for job, process in running
        }


def _made_group(parent: Mapping[str, pathlib.Path], job: Job) -> pathlib.Path:
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


def _moved(process: subprocess.Popen[bytes], seconds: float) -> float:
    """Give the bytes per second that a process moved."""
    said, error = process.communicate(timeout=seconds + _PATIENCE_S)
    try:
        # Before the result, fio may print remarks.
        (job,) = json.loads(said[said.index(b'{') :])['jobs']
        return float(job['read']['bw_bytes'] + job['write']['bw_bytes'])
    except (ValueError, KeyError) as wrong:
        text = error.decode(errors='replace').strip()[-500:]
        raise exception.LabError(f'fio failed: {text or wrong}') from None
