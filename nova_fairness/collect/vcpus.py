# SPDX-License-Identifier: Apache-2.0

"""How long a VM's vCPUs waited for a CPU, where no group of its own tells."""

import math
import pathlib

from nova_fairness.collect import files
from nova_fairness.collect import kernel_text

# Names that QEMU gives to the threads in which vCPUs run.
_VCPU_THREADS = ('CPU ', 'ALL CPUs')


class VcpuStall:
    """Mean time that the vCPU threads of a VM waited to be scheduled.

    A thread's ``schedstat`` counts the time it was ready to run and did not.
    The mean over the vCPUs never exceeds the time in which at least one of
    them waited, which is what pressure of a v2 group counts.

    :param own: ``/proc/PID`` of the VM.
    :param descriptors: budget of kept descriptors.
    """

    __slots__ = ('_files',)

    def __init__(
        self, own: pathlib.Path, descriptors: files.Descriptors
    ) -> None:
        self._files: list[files.KeptFile] = []
        try:
            for thread in _vcpu_threads(own):
                path = str(thread / 'schedstat')
                self._files.append(files.KeptFile(path, descriptors))
        except OSError:
            self.close()

    @property
    def kept(self) -> bool:
        """Whether all descriptors stay open between readings."""
        return all(file.kept for file in self._files)

    def read(self) -> float:
        """Read the present value.

        :returns: seconds; NaN if no thread of a vCPU was found.
        :raises OSError: if a thread has ended.
        """
        if not self._files:
            return math.nan
        waited = sum(
            kernel_text.waited_seconds(file.read()) for file in self._files
        )
        return waited / len(self._files)

    def close(self) -> None:
        """Close the descriptors."""
        for file in self._files:
            file.close()
        self._files = []


def _vcpu_threads(own: pathlib.Path) -> list[pathlib.Path]:
    """Find the threads of the vCPUs.

    :raises OSError: if the process or one of its threads ended meanwhile.
    """
    return [
        thread
        for thread in sorted((own / 'task').iterdir())
        if (thread / 'comm').read_text().startswith(_VCPU_THREADS)
    ]
