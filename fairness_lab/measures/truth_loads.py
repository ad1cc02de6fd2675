# SPDX-License-Identifier: Apache-2.0

"""Compare readings of a real kernel with the simulator, by kind of load.

``run_delay`` of the vCPUs' threads is all that agents know of what VMs lack.
How long the simulator's VMs wait follows from the way of their work
(:mod:`.loops`). The laboratory's recording of ``kinds-of-load`` says how true
that is.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import pathlib
from typing import Any

import numpy as np

from fairness_lab.measures import files
from fairness_lab.measures import running
from fairness_lab.node_sim import loops
from fairness_lab.node_sim import model
from fairness_lab.node_sim import references
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import experiment
from fairness_lab.scenario import programs
from nova_fairness.model import resources

RECORDING = 'kinds-of-load-without'
"""Name of the recorded run; it has no agents that steer."""

_FILE = programs.LABORATORY.folder / 'kinds-of-load.yaml'


@dataclasses.dataclass(frozen=True, slots=True)
class TrueLoad:
    """Use and waits of one VM.

    :ivar vm: its name.
    :ivar wanted: CPUs that it would use of a plenty, as it was told.
    :ivar used: CPUs, on the real kernel.
    :ivar waited: part of the time, on the real kernel.
    :ivar simulated_used: CPUs, in the simulator.
    :ivar simulated_waited: part of the time, in the simulator.
    """

    vm: str
    wanted: float
    used: float
    waited: float
    simulated_used: float
    simulated_waited: float

    @property
    def judged(self) -> float:
        """CPUs that the VM wants if its load is a closed loop."""
        return self.used / (1 - self.waited)


class WaitObserver:
    """An observer that averages the use and the waiting of VMs.

    :param cloud: that is simulated.
    """

    def __init__(self, cloud: cloud_module.Cloud) -> None:
        self._cloud = cloud
        self._from = cloud.rounds // 2
        self._used: list[model.Scalars] = []
        self._waited: list[model.Scalars] = []

    def see(self, moment: model.RoundMoment) -> None:
        """Add a round, if it counts."""
        if moment.round < self._from:
            return
        cloud, cpu = self._cloud, resources.RESOURCES.index('cpu_time')
        speed = cloud.speed[moment.node]
        tick = loops.Tick(
            node=moment.node,
            wanted=moment.demand[:, cpu] / speed,
            received=moment.received[:, cpu] / speed,
            vcpus=cloud.vcpus.astype(np.float64),
            share=moment.shares[:, cpu],
            cpus=cloud.cpus,
        )
        self._used.append(tick.received)
        self._waited.append(tick.stall(_loops(cloud)))

    def result(self) -> Mapping[str, Any]:
        """CPUs and part of the time by VM."""
        used = np.mean(self._used, axis=0)
        waited = np.mean(self._waited, axis=0)
        return {
            vm: (float(used[row]), float(waited[row]))
            for row, vm in enumerate(self._cloud.vms)
        }


def _loops(cloud: cloud_module.Cloud) -> cloud_module.Loops:
    if cloud.loops is not None:
        return cloud.loops
    count = len(cloud.vms)
    return cloud_module.Loops(np.zeros(count, dtype=np.bool_), np.ones(count))


def compare(recorded: pathlib.Path) -> tuple[TrueLoad, ...]:
    """Simulate what was recorded.

    :param recorded: directory with a directory for each recording.
    :raises SimError: if the recording cannot be read.
    """
    result = files.read_json(recorded / RECORDING / files.RESULT)
    length_s = result['window']['to_s'] - result['window']['from_s']
    simulated = _simulate(result)
    return tuple(
        TrueLoad(
            vm=name,
            wanted=vm['demand_cpu_s'] / length_s,
            used=vm['cpu_s'] / length_s,
            waited=vm['waited_part'],
            simulated_used=simulated[name][0],
            simulated_waited=simulated[name][1],
        )
        for name, vm in sorted(result['instances'].items())
    )


def _simulate(result: Mapping[str, Any]) -> Mapping[str, Any]:
    options = {
        'interval': str(result['interval_s']),
        'duration': str(result['duration_s']),
    }
    scenario = experiment.read(_FILE, options)
    choice = running.RunOptions(
        metric=result['metric'], policy=references.NONE
    )
    waits = WaitObserver(scenario.cloud)
    running.observe(scenario.cloud, running.setup(scenario, choice), [waits])
    return waits.result()


def table(rows: Sequence[TrueLoad]) -> list[dict[str, Any]]:
    """The rows as JSON."""
    return [
        {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in (
                *dataclasses.asdict(row).items(),
                ('judged', row.judged),
            )
        }
        for row in rows
    ]


_HEADER = (
    'VM',
    'Wants',
    'Used',
    'Waited',
    'Used / (1 - waited)',
    'Simulator: used',
    'Simulator: waited',
)


def page(rows: Sequence[TrueLoad]) -> str:
    """The rows as a table of the documents."""
    lines = ['.. list-table::', '   :header-rows: 1', '']
    for first, *others in (_HEADER, *map(_cells, rows)):
        lines.append(f'   * - {first}')
        lines += [f'     - {other}' for other in others]
    return '\n'.join(lines) + '\n'


def _cells(row: TrueLoad) -> tuple[str, ...]:
    return (
        row.vm,
        f'{row.wanted:.2f}',
        f'{row.used:.2f}',
        f'{100 * row.waited:.0f} %',
        f'{row.judged:.2f}',
        f'{row.simulated_used:.2f}',
        f'{100 * row.simulated_waited:.0f} %',
    )
