# SPDX-License-Identifier: Apache-2.0

"""The two programs that run scenarios, and what each can do."""

import dataclasses
import pathlib

_FOLDER = pathlib.Path(__file__).parents[1] / 'scenarios'


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """A program that runs scenarios.

    :ivar command: its name.
    :ivar folder: of the scenarios that come with it.
    :ivar real: whether nodes and VMs are real, and bound by the machine.
    :ivar nodes: how many there can be.
    :ivar vms: how many there can be.
    :ivar vcpus: most of a VM.
    :ivar threads: most of a pool.
    :ivar memory_mib: of a VM if nothing is said, MiB.
    """

    command: str
    folder: pathlib.Path
    real: bool
    nodes: int
    vms: int
    vcpus: int
    threads: int
    memory_mib: float

    def names(self) -> tuple[str, ...]:
        """Names of the scenarios that come with it."""
        return tuple(sorted(path.stem for path in self.folder.glob('*.yaml')))


LABORATORY = Program(
    command='nova-fairness-lab',
    folder=_FOLDER / 'testbed',
    real=True,
    nodes=30,
    vms=200,
    vcpus=64,
    threads=64,
    memory_mib=96,
)
SIMULATOR = Program(
    command='nova-fairness-sim',
    folder=_FOLDER / 'simulator',
    real=False,
    nodes=1_000_000,
    vms=1_000_000,
    vcpus=1024,
    threads=1024,
    memory_mib=128.0,
)
