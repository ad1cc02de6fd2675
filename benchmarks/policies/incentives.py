# SPDX-License-Identifier: Apache-2.0

"""Gains of users from attacks, and losses of others.

    python -m benchmarks.policies.incentives --out benchmarks/results/sim
    python -m benchmarks.policies.incentives --out DIR --seed 7 --count 100
    python -m benchmarks.policies.incentives --out DIR --only spread
    python -m benchmarks.policies.incentives --out DIR --max-weight-ratio 200

For each attack small clouds are drawn, and simulated as they are and with the
attack: with the default metric and policy, with feedback and without agents.
The gain counts the work that programs got done, without burnt CPU time. Where
it is more than 2 %, the table tells in how many clouds the largest weight of a
node was ``max_weight_ratio`` times the smallest, in either of the two. The
results are ``incentives.json``, with a row for each cloud, and
``incentives.csv``.
"""

import argparse
from collections.abc import Mapping
from collections.abc import Sequence
import concurrent.futures
import dataclasses
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
"""CPUs; work of users who get less is not compared."""

AT_END = 0.99
"""Part of the largest ratio from which weights are at their ends."""

_CPU = resources.RESOURCES.index('cpu_time')
_CONTROL = 0
"""Place of CPU weights among controls."""


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


class WeightRatios:
    """The largest ratio of CPU weights of a node in settled rounds.

    :param cloud: that is simulated.
    """

    def __init__(self, cloud: attacks.Cloud) -> None:
        self._begins = SETTLED * cloud.parts
        self._nodes = len(cloud.cpus)
        self._most = 1.0

    def see(self, moment: model.RoundMoment) -> None:
        """Look at a round."""
        if moment.round < self._begins:
            return
        weights = moment.weights[:, _CONTROL]
        for node in range(self._nodes):
            own = weights[moment.node == node]
            if len(own):
                self._most = max(self._most, float(own.max() / own.min()))

    def result(self) -> Mapping[str, Any]:
        """The largest."""
        return {'ratio': self._most}


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """Of a simulated cloud.

    :ivar users: (u,) CPUs of work that each user got done, the attackers' all
        with the first.
    :ivar at_end: whether weights of a node differed as much as they may.
    """

    users: np.ndarray
    at_end: bool


@functools.lru_cache(maxsize=1024)
def simulate_work(
    cloud: attacks.Cloud, policy: str, most_ratio: float
) -> Outcome:
    """Simulate a cloud.

    :param most_ratio: of the largest to the smallest weight of a node, >= 1.
    """
    scenario = attacks.scenario(cloud)
    made = running.setup(
        scenario, running.RunOptions(metric=defaults.METRIC, policy=policy)
    )
    made = dataclasses.replace(made, max_weight_ratio=most_ratio)
    work, ratios = Work(cloud, scenario.cloud), WeightRatios(cloud)
    running.observe(scenario.cloud, made, [work, ratios])
    users = work.result()['users']
    users[attacks.ATTACKER] = users[list(cloud.attackers)].sum()
    users.setflags(write=False)
    at_end = ratios.result()['ratio'] >= AT_END * most_ratio
    return Outcome(np.asarray(users), at_end)


def gain_and_losses(honest: Outcome, attacked: Outcome) -> dict[str, Any]:
    """Say what an attack brings and takes.

    :param attacked: of the same users and maybe more.
    :returns: by what part the attacker has more, all others together have
        less, and the one of them has less who loses most; whether weights
        were at their ends in one of the two.
    """
    before, after = honest.users, attacked.users
    others = np.delete(before, attacks.ATTACKER)
    left = np.delete(after[: len(before)], attacks.ATTACKER)
    counts = others > SMALLEST
    lost = 1 - left[counts] / others[counts]
    mine = attacks.ATTACKER
    return {
        'gain': float(after[mine] / before[mine] - 1),
        'lost': float(1 - left.sum() / others.sum()),
        'worst': float(lost.max(initial=0.0)),
        'at_end': honest.at_end or attacked.at_end,
    }


def simulate_attack(
    name: str, seed: int, most_ratio: float, number: int
) -> dict[str, Any]:
    """Simulate a pair with each policy."""
    pair = attacks.pair(name, seed, number)
    return {
        'attack': name,
        'number': number,
        **{
            policy: gain_and_losses(
                *(simulate_work(cloud, policy, most_ratio) for cloud in pair)
            )
            for policy in POLICIES
        },
    }


def simulate_attacks(
    names: Sequence[str], seed: int, most_ratio: float, number: int
) -> list[dict[str, Any]]:
    """Try attacks on the clouds of one number; many of them are alike."""
    found = [simulate_attack(name, seed, most_ratio, number) for name in names]
    print(f'cloud {number}', flush=True)
    return found


HEAD = (
    'attack',
    'median gain %',
    'mean gain %',
    'largest gain %',
    'clouds with more than 2 %',
    'of these with weights at their ends',
    'others lose %',
    'worst other loses %',
    *(
        f'{policy}: {what} gain %'
        for policy in POLICIES[1:]
        for what in ('mean', 'largest')
    ),
)
"""The first are the default policy's; losses of others are means."""


def summary_of_attack(
    name: str, rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Sum up the clouds of an attack."""
    mine = [row[POLICIES[0]] for row in rows]
    gains = {
        policy: [row[policy]['gain'] for row in rows] for policy in POLICIES
    }
    first = gains[POLICIES[0]]
    much = [row for row in mine if row['gain'] > MUCH]
    return [
        name,
        _percent(statistics.median(first)),
        _percent(statistics.fmean(first)),
        _percent(max(first)),
        f'{len(much)} of {len(rows)}',
        f'{sum(row["at_end"] for row in much)}',
        _percent(statistics.fmean(row['lost'] for row in mine)),
        _percent(statistics.fmean(row['worst'] for row in mine)),
        *(
            _percent(found(gains[policy]))
            for policy in POLICIES[1:]
            for found in (statistics.fmean, max)
        ),
    ]


def _percent(value: float) -> str:
    """Write a part; zero has no sign."""
    return runs.percent(round(value, 3) + 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument(
        '--count', type=int, default=30, help='clouds of each kind'
    )
    parser.add_argument(
        '--seed', type=int, default=12, help='seed of the random clouds'
    )
    parser.add_argument(
        '--max-weight-ratio', type=float, default=defaults.MAX_WEIGHT_RATIO
    )
    parser.add_argument('--only', choices=list(attacks.ATTACKS))
    parser.add_argument('--processes', type=int, default=1)
    options = parser.parse_args()
    names = [options.only] if options.only else list(attacks.ATTACKS)
    every = functools.partial(
        simulate_attacks, names, options.seed, options.max_weight_ratio
    )
    with concurrent.futures.ProcessPoolExecutor(options.processes) as pool:
        clouds = list(pool.map(every, range(options.count)))
    rows: list[dict[str, Any]] = []
    table: list[Sequence[str]] = [HEAD]
    for found in zip(*clouds, strict=True):
        rows += found
        table.append(summary_of_attack(found[0]['attack'], found))
        print(*table[-1], flush=True)
    runs.write(options.out / 'incentives.json', rows)
    runs.write_csv(options.out / 'incentives.csv', table)


if __name__ == '__main__':
    main()
