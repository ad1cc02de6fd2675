# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
