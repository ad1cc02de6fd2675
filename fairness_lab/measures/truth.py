# SPDX-License-Identifier: Apache-2.0


"""Compare recorded runs of the laboratory with simulated ones.

The simulator reads the laboratory's own scenario files; metric, policy,
interval and length are those of the recording.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import pathlib
from typing import Any

from fairness_lab.measures import files
from fairness_lab.measures import running
from fairness_lab.measures import summary
from fairness_lab.node_sim import model
from fairness_lab.node_sim import references
from fairness_lab.scenario import experiment
from fairness_lab.scenario import programs

SCENARIOS = (
    'one-node-cpu',
    'many-against-one',
    'closed-loops',
    'two-nodes-cpu',
)
"""Of the laboratory, that are compared."""

LARGEST_DIFFERENCE = 0.1
"""Relative, of a user's part of the CPU time."""


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """Part of one user, in the laboratory and the simulator.

    :ivar recording: name of the recorded run.
    :ivar scenario: name of the scenario.
    :ivar metric: of the agents.
    :ivar policy: of the agents; ``none`` without them.
    :ivar user: who.
    :ivar laboratory: recorded part of the CPU time, 0..1, settled.
    :ivar simulator: the same, simulated.
    """

    recording: str
    scenario: str
    metric: str
    policy: str
    user: str
    laboratory: float
    simulator: float

    @property
    def difference(self) -> float:
        """Difference of the laboratory, relative to the simulator."""
        return self.laboratory / self.simulator - 1


def compare(recorded: pathlib.Path) -> tuple[Row, ...]:
    """Simulate every recording of the scenarios that are compared.

    :param recorded: directory with a directory for each recording.
    :raises SimError: if a recording cannot be read.
    """
    found: list[Row] = []
    for path in sorted(recorded.glob(f'*/{files.RESULT}')):
        result = files.read_json(path)
        if result['scenario'] in SCENARIOS:
            found.extend(_rows(path.parent.name, result))
    return tuple(found)


def _rows(name: str, result: dict[str, Any]) -> Iterator[Row]:
    policy = result['policy'] if result['agents'] else references.NONE
    simulated = _simulate(result, policy)
    for user, entry in sorted(result['users'].items()):
        yield Row(
            recording=name,
            scenario=result['scenario'],
            metric=result['metric'],
            policy=policy,
            user=user,
            laboratory=entry['cpu_share'],
            simulator=simulated[user],
        )


def _simulate(result: dict[str, Any], policy: str) -> dict[str, float]:
    """Simulate: fraction of the CPU time by user in the second half."""
    scenario = experiment.read(
        programs.LABORATORY.folder / f'{result["scenario"]}.yaml',
        {
            'interval': str(result['interval_s']),
            'duration': str(result['duration_s']),
            'max_weight_ratio': str(result['max_weight_ratio']),
        },
    )
    choice = running.RunOptions(metric=result['metric'], policy=policy)
    total: model.Observer = summary.Summary(scenario.cloud)
    running.observe(scenario.cloud, running.setup(scenario, choice), [total])
    got = {
        user: float(entry['received']['cpu_time'])
        for user, entry in total.result()['users'].items()
    }
    whole = sum(got.values())
    return {user: amount / whole for user, amount in got.items()}


def table(rows: Sequence[Row]) -> dict[str, Any]:
    """Rows as JSON."""
    return {
        'version': 1,
        'largest_difference': LARGEST_DIFFERENCE,
        'rows': [
            {
                **dataclasses.asdict(row),
                'laboratory': round(row.laboratory, 4),
                'simulator': round(row.simulator, 4),
                'difference': round(row.difference, 4),
            }
            for row in rows
        ],
    }


def page(rows: Sequence[Row]) -> str:
    """Rows as a table of the documents."""
    cells = [('Recording', 'User', 'Laboratory', 'Simulator', 'Difference')]
    cells += [
        (
            row.recording,
            row.user,
            f'{100 * row.laboratory:.1f} %',
            f'{100 * row.simulator:.1f} %',
            f'{100 * row.difference:+.1f} %',
        )
        for row in rows
    ]
    lines = ['.. list-table::', '   :header-rows: 1', '']
    for first, *others in cells:
        lines.append(f'   * - {first}')
        lines += [f'     - {other}' for other in others]
    return '\n'.join(lines) + '\n'
