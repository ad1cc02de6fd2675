# SPDX-License-Identifier: Apache-2.0

"""Random clouds with exempt VMs: policies beside what weights can reach.

    python -m benchmarks.policies.exempt --out DIR --count 100 --fresh

Draws clouds of the kind *exempt* (:mod:`benchmarks.policies.clouds`): agents
leave a fifth of the VMs alone. Each policy is compared with two ideals of the
last rounds. The *bound* is the best that weights of the other VMs can reach.
The other ideal takes all VMs as steered, so that what the bound itself lacks
of it is the price of the exemption.

The bound is found by turns, and need not be the best. So it is also told in
how many clouds the lightest users have more than in the bound: the first of
all users, from the lightest on, whose shares differ by more than 2 %. Writes
``exempt.json``, with a row for each cloud, and ``exempt.csv``, which sums up.

    python -m benchmarks.policies.exempt --out DIR --worse FILE

looks again at the clouds of FILE, an ``exempt.json``, in which a user lacks
more of the bound with foresight than with feedback, by more than 2 %.
``worse.json`` tells with which of the two the lightest users have more.
"""

import argparse
from collections.abc import Mapping
from collections.abc import Sequence
import concurrent.futures
import dataclasses
import json
import pathlib
import secrets
import statistics
from typing import Any

import numpy as np

from benchmarks.policies import clouds
from benchmarks.policies import runs
from fairness_lab.ideal import columns
from fairness_lab.ideal import ideal
from fairness_lab.measures import measures
from fairness_lab.measures import running
from fairness_lab.node_sim import engine

BOUND = 'bound'
OF_BOUND, OF_STEERED = 'of the bound', 'if all were steered'
LIGHTEST = 'lightest have more'

HEAD = (
    'policy',
    'within 5 % of the bound',
    'within 10 %',
    *(
        f'{part} lacks {beside} %'
        for beside in (OF_BOUND, OF_STEERED)
        for part in ('median', 'most')
    ),
    'lightest have more than in the bound, % of clouds',
)

Row = Mapping[str, Any]


def simulate_policies(seed: int, number: int) -> dict[str, Any]:
    """Simulate one cloud with each policy.

    :returns: what the worst user lacks of either ideal, 0..1, and whether the
        lightest have more than in the bound, by policy.
    """
    scenario = clouds.draw_cloud('exempt', seed, number)
    steered = dataclasses.replace(scenario.cloud, exempt=None)
    row: dict[str, Any] = {'number': number}
    for policy in clouds.POLICIES:
        made = running.setup(
            scenario, running.RunOptions(metric=clouds.METRIC, policy=policy)
        )
        judges = {
            OF_BOUND: measures.Measures(scenario.cloud, made),
            OF_STEERED: measures.Measures(steered, made),
        }
        last = clouds.LastRoundObserver()
        running.observe(scenario.cloud, made, [*judges.values(), last])
        end = clouds.LastRound.seen(
            judges[OF_BOUND], last, made.max_weight_ratio
        )
        row[policy] = {
            **{
                beside: _lack_at_end(judge) for beside, judge in judges.items()
            },
            LIGHTEST: has_more(end.shares, end.ideal.share),
        }
    row[BOUND] = {
        OF_BOUND: 0.0,
        OF_STEERED: lack_by_exemption(seed, number),
        LIGHTEST: False,
    }
    print(row, flush=True)
    return row


def clouds_worse_than_feedback(path: pathlib.Path) -> list[dict[str, Any]]:
    """Compare foresight with feedback where the worst user lacks more.

    :param path: of an ``exempt.json``.
    :returns: the policy with which the lightest users have more, by number of
        the cloud; ``None`` if shares do not differ by more than 2 %.
    """
    (head, *rows) = json.loads(path.read_text('utf-8'))['results']
    return [
        {'number': row['number'], LIGHTEST: _lightest(head['seed'], row)}
        for row in rows
        if row['foresight'][OF_BOUND]
        > row['feedback'][OF_BOUND] + clouds.WORSE
    ]


def _lightest(seed: int, row: Row) -> str | None:
    """Policy with which the lightest users of a cloud have more, if any."""
    scenario = clouds.draw_cloud('exempt', seed, row['number'])
    mine, other = (
        clouds.LastRound.of(scenario, policy).shares
        for policy in ('foresight', 'feedback')
    )
    if has_more(mine, other):
        return 'foresight'
    return 'feedback' if has_more(other, mine) else None


def _lack_at_end(judge: measures.Measures) -> float:
    """The most that a user lacks in one of the last rounds."""
    table = judge.result()['series']['measures']
    place = table['columns'].index('worst_bounded')
    return max(row[place] for row in table['rows'][-clouds.SETTLED :])


def _bounded_shares(wishes: columns.Wishes, ratio: float) -> np.ndarray:
    """Shares of users in the bounded ideal, (u,)."""
    return ideal.cached_ideal(ideal.DOMINANT, ratio)(wishes).share


def has_more(shares: np.ndarray, than: np.ndarray) -> bool:
    """Tell whether the first have more whose shares differ.

    :param shares: (u,), in any order; so is ``than``.
    """
    one, other = np.sort(shares), np.sort(than)
    differ = np.abs(one - other) > clouds.WORSE * other
    first = int(np.argmax(differ))
    return bool(differ[first] and one[first] > other[first])


def lack_by_exemption(seed: int, number: int) -> float:
    """Part that the worst user loses because VMs are exempt."""
    scenario = clouds.draw_cloud('exempt', seed, number)
    made = running.setup(scenario, running.RunOptions(policy='none'))
    moment = next(iter(engine.simulate(scenario.cloud, made)))
    wishes = measures.Measures(scenario.cloud, made).wishes(moment)
    steered = dataclasses.replace(wishes, exempt=np.zeros_like(wishes.exempt))
    bound, best = (
        _bounded_shares(each, made.max_weight_ratio)
        for each in (wishes, steered)
    )
    return clouds.worst_lack(bound, best)


def summary_rows(rows: Sequence[Row]) -> list[list[str]]:
    """A line for each policy, and one for the bound."""
    return [_summed(name, rows) for name in (*clouds.POLICIES, BOUND)]


def _summed(name: str, rows: Sequence[Row]) -> list[str]:
    mine, steered = (
        [row[name][beside] for row in rows]
        for beside in (OF_BOUND, OF_STEERED)
    )
    near = [
        sum(value <= most for value in mine) / len(rows)
        for most in (clouds.WITHIN, clouds.NEAR)
    ]
    lacks = [
        part(values)
        for values in (mine, steered)
        for part in (statistics.median, max)
    ]
    more = sum(row[name][LIGHTEST] for row in rows) / len(rows)
    return [name, *map(runs.percent, [*near, *lacks, more])]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument(
        '--seed', type=int, default=12, help='seed of the random clouds'
    )
    parser.add_argument('--fresh', action='store_true', help='use a new seed')
    parser.add_argument(
        '--worse',
        type=pathlib.Path,
        help='explain the worse clouds of this exempt.json',
    )
    parser.add_argument('--processes', type=int, default=2)
    options = parser.parse_args()
    if options.worse:
        runs.write(
            options.out / 'worse.json',
            clouds_worse_than_feedback(options.worse),
        )
        return
    seed = secrets.randbelow(2**31) if options.fresh else options.seed
    print(f'seed {seed}')
    with concurrent.futures.ProcessPoolExecutor(options.processes) as pool:
        rows = list(
            pool.map(
                simulate_policies, [seed] * options.count, range(options.count)
            )
        )
    runs.write(options.out / 'exempt.json', [{'seed': seed}, *rows])
    runs.write_csv(options.out / 'exempt.csv', [HEAD, *summary_rows(rows)])


if __name__ == '__main__':
    main()
