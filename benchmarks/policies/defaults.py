# SPDX-License-Identifier: Apache-2.0


"""Pairs of metric and policy, by how well off users are with them."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import pathlib
import statistics

from benchmarks.policies import runs
from fairness_lab.measures import running
from fairness_lab.node_sim import references
from fairness_lab.scenario import experiment
from fairness_lab.scenario import programs

POLICIES = ('foresight', 'feedback', 'thesis')

LEFT_OUT = ('heterogeneous', 'random-1000')
"""Scenarios that take minutes; ``table`` has them."""

WORSE = 0.02
"""Users who lack so much more than without agents are worse off with them."""

Pair = tuple[str, str]
"""A metric and a policy."""

Lacking = Mapping[Pair, float]
"""Lack of the settled worst user below the bounded ideal, 0..1, by pair."""

Found = Mapping[str, tuple[Lacking, float]]
"""That, and what he lacks without agents, by scenario."""


def defaults(out: pathlib.Path, only: str) -> None:
    """Run the scenarios with all pairs and without agents; write tables.

    :param only: part of the names of scenarios.
    """
    names = [
        name
        for name in programs.SIMULATOR.names()
        if only in name and name not in LEFT_OUT
    ]
    found = {name: lacks_by_pair(name) for name in names}
    out.mkdir(parents=True, exist_ok=True)
    runs.write_csv(out / 'defaults.csv', scenario_rows(found))
    runs.write_csv(out / 'defaults-pairs.csv', pair_rows(found))


def lacks_by_pair(name: str) -> tuple[dict[Pair, float], float]:
    """Lack of the worst user with each pair, and with none, 0..1."""
    scenario = experiment.find(name)

    def settled(metric: str, policy: str) -> float:
        choice = running.RunOptions(metric=metric, policy=policy)
        result = runs.simulate(scenario, choice)
        runs.print_result(result)
        return float(result['measures']['bounded']['worst']['settled'])

    found = {
        (metric, policy): settled(metric, policy)
        for metric in runs.METRICS
        for policy in POLICIES
    }
    return found, settled(runs.METRICS[0], references.NONE)


def scenario_rows(found: Found) -> list[list[str]]:
    """A row per scenario and pair."""
    return [
        ['scenario', 'metric', 'policy', 'lacking', 'none', 'worse'],
        *(
            [
                scenario,
                *pair,
                runs.percent(value),
                runs.percent(none),
                'yes' if is_worse(value, none) else 'no',
            ]
            for scenario, (by_pair, none) in found.items()
            for pair, value in by_pair.items()
        ),
    ]


def pair_rows(found: Found) -> list[list[str]]:
    """A row per pair: the means, and where users are worse off."""
    return [
        ['metric', 'policy', 'lacking', 'none', 'worse in', 'scenarios'],
        *(
            [*pair, *summary_of_pair(values)]
            for pair, values in by_pair(found)
        ),
    ]


def by_pair(
    found: Found,
) -> Iterator[tuple[Pair, dict[str, tuple[float, float]]]]:
    """Yield pairs, and by scenario what is lacking with and without."""
    chosen = next(iter(found.values()), ({}, 0.0))[0]
    for pair in chosen:
        yield (
            pair,
            {name: (by[pair], none) for name, (by, none) in found.items()},
        )


def summary_of_pair(values: Mapping[str, Sequence[float]]) -> list[str]:
    """Means with and without agents, and the scenarios that are worse."""
    worse = [name for name, both in values.items() if is_worse(*both)]
    return [
        runs.percent(statistics.mean(both[0] for both in values.values())),
        runs.percent(statistics.mean(both[1] for both in values.values())),
        f'{len(worse)} of {len(values)}',
        ' '.join(worse) or '-',
    ]


def is_worse(value: float, none: float) -> bool:
    return value > none + WORSE
