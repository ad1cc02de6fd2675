# SPDX-License-Identifier: Apache-2.0

"""What attacks bring to users who make them, and what they take from others.

    python -m benchmarks.policies.incentives --out benchmarks/results/sim
    python -m benchmarks.policies.incentives --out DIR --seed 7 --count 100
    python -m benchmarks.policies.incentives --out DIR --only spread

Of each attack small clouds are drawn, and simulated as they are and with the
attack: with the default metric and policy, with feedback and without agents.
What counts is the work that programs got done, not what was burnt. Written are
``incentives.json``, with a row for each cloud, and ``incentives.csv``.
"""

import argparse
from collections.abc import Mapping
from collections.abc import Sequence
import concurrent.futures
import functools
import pathlib
import statistics
from typing import Any

import numpy as np

from benchmarks.policies import incentives_attacks as attacks
from benchmarks.policies import runs
from fairness_lab.measures import running
from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness.model import defaults
from nova_fairness.model import resources

POLICIES = (defaults.POLICY, 'feedback', 'none')

SETTLED = 8
"""Rounds of the agents at the begin that do not count."""

MUCH = 0.02
"""A larger gain is told for how many clouds there is one."""

SMALLEST = 0.05
"""CPUs; what users do who get less is not compared."""

_CPU = resources.RESOURCES.index('cpu_time')


class Work:
    """Sums what the programs of each VM got done.

    :param cloud: that is simulated.
    :param made: the same for the simulator.
    """

    def __init__(self, cloud: attacks.Cloud, made: cloud_module.Cloud) -> None:
        self._cloud = cloud
        self._speed = made.speed
        self._burns = np.array([vm.spins > 0 for vm in cloud.vms])
        self._done = np.zeros(len(cloud.vms))
        self._counted = 0

    def see(self, moment: model.RoundMoment) -> None:
        """Look at a round."""
        if moment.round < SETTLED * self._cloud.parts:
            return
        got = moment.received[:, _CPU] / self._speed[moment.node]
        wanted = attacks.works(self._cloud, moment.round)
        self._done += np.where(self._burns, np.minimum(got, wanted), got)
        self._counted += 1

    def result(self) -> Mapping[str, Any]:
        """The mean of each VM and user."""
        mean = self._done / self._counted
        user = [vm.user for vm in self._cloud.vms]
        return {'users': np.bincount(user, mean, self._cloud.users)}


@functools.lru_cache(maxsize=1024)
def worked(cloud: attacks.Cloud, policy: str) -> np.ndarray:
    """Simulate a cloud.

    :returns: (u,) CPUs of work that each user got done, the attackers' all
        with the first.
    """
    scenario = attacks.scenario(cloud)
    made = running.setup(
        scenario, running.RunOptions(metric=defaults.METRIC, policy=policy)
    )
    work = Work(cloud, scenario.cloud)
    running.observe(scenario.cloud, made, [work])
    users = work.result()['users']
    users[attacks.ATTACKER] = users[list(cloud.attackers)].sum()
    users.setflags(write=False)
    return np.asarray(users)


def compared(before: np.ndarray, after: np.ndarray) -> dict[str, float]:
    """Say what an attack brings and takes.

    :param before: (u,) of the honest cloud.
    :param after: of the attacked, of the same users and maybe more.
    :returns: by what part the attacker has more, all others together have
        less, and the one of them has less who loses most.
    """
    others = np.delete(before, attacks.ATTACKER)
    left = np.delete(after[: len(before)], attacks.ATTACKER)
    counts = others > SMALLEST
    lost = 1 - left[counts] / others[counts]
    mine = attacks.ATTACKER
    return {
        'gain': float(after[mine] / before[mine] - 1),
        'lost': float(1 - left.sum() / others.sum()),
        'worst': float(lost.max(initial=0.0)),
    }


def tried(name: str, seed: int, number: int) -> dict[str, Any]:
    """Simulate a pair with each policy."""
    honest, attacked = attacks.pair(name, seed, number)
    return {
        'attack': name,
        'number': number,
        **{
            policy: compared(worked(honest, policy), worked(attacked, policy))
            for policy in POLICIES
        },
    }


def tried_all(
    names: Sequence[str], seed: int, number: int
) -> list[dict[str, Any]]:
    """Try attacks on the clouds of one number, many of which are alike."""
    found = [tried(name, seed, number) for name in names]
    print(f'cloud {number}', flush=True)
    return found


HEAD = (
    'attack',
    'median gain %',
    'mean gain %',
    'largest gain %',
    'clouds with more than 2 %',
    'others lose %',
    'worst other loses %',
    *(
        f'{policy}: {what} gain %'
        for policy in POLICIES[1:]
        for what in ('mean', 'largest')
    ),
)
"""The first are the default policy's; what others lose are means."""


def summed(name: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sum up the clouds of an attack."""
    mine = [row[POLICIES[0]] for row in rows]
    gains = {
        policy: [row[policy]['gain'] for row in rows] for policy in POLICIES
    }
    first = gains[POLICIES[0]]
    much = sum(gain > MUCH for gain in first)
    return [
        name,
        _percent(statistics.median(first)),
        _percent(statistics.fmean(first)),
        _percent(max(first)),
        f'{much} of {len(rows)}',
        _percent(statistics.fmean(row['lost'] for row in mine)),
        _percent(statistics.fmean(row['worst'] for row in mine)),
        *(
            _percent(found(gains[policy]))
            for policy in POLICIES[1:]
            for found in (statistics.fmean, max)
        ),
    ]


def _percent(value: float) -> str:
    """Write a part; what is nothing has no sign."""
    return runs.percent(round(value, 3) + 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--count', type=int, default=30, help='of each')
    parser.add_argument(
        '--seed', type=int, default=12, help='of what is drawn'
    )
    parser.add_argument('--only', choices=list(attacks.ATTACKS))
    parser.add_argument('--processes', type=int, default=1)
    options = parser.parse_args()
    names = [options.only] if options.only else list(attacks.ATTACKS)
    every = functools.partial(tried_all, names, options.seed)
    with concurrent.futures.ProcessPoolExecutor(options.processes) as pool:
        clouds = list(pool.map(every, range(options.count)))
    rows: list[dict[str, Any]] = []
    table: list[Sequence[str]] = [HEAD]
    for found in zip(*clouds, strict=True):
        rows += found
        table.append(summed(found[0]['attack'], found))
        print(*table[-1], flush=True)
    runs.write(options.out / 'incentives.json', rows)
    runs.write_csv(options.out / 'incentives.csv', table)


if __name__ == '__main__':
    main()
