# SPDX-License-Identifier: Apache-2.0

"""What a thread got of the CPU, and how long it stood in line for it."""

import dataclasses
import pathlib

_TASKS = pathlib.Path('/proc/self/task')
_NS = 1e-9


@dataclasses.dataclass(frozen=True)
class Turns:
    """What the scheduler tells of a thread, since it began.

    :ivar ran_s: CPU time, seconds.
    :ivar waited_s: for which it could have run and another did, seconds;
        the wait that it is in now is not counted.
    :ivar runnable: whether it runs, or waits only for a CPU.
    """

    ran_s: float
    waited_s: float
    runnable: bool


def of_thread(native_id: int) -> Turns:
    """Read what the kernel tells of a thread of this process.

    :param native_id: its number in the kernel.
    :returns: no time, and not runnable, where the kernel does not tell.
    """
    task = _TASKS / str(native_id)
    try:
        ran, waited, _ = (task / 'schedstat').read_text('ascii').split()
        _, _, after_name = (task / 'stat').read_text('utf-8').rpartition(')')
        return Turns(
            int(ran) * _NS, int(waited) * _NS, after_name.split()[0] == 'R'
        )
    except (OSError, ValueError, IndexError):
        return Turns(0.0, 0.0, runnable=False)
