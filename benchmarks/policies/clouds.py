# SPDX-License-Identifier: Apache-2.0
"""Random clouds without tuning: how much of the ideal users lack.

    python -m benchmarks.policies.clouds --out benchmarks/results/sim/clouds
    python -m benchmarks.policies.clouds --out DIR --fresh --count 50
    python -m benchmarks.policies.clouds --out DIR --only tiny --seed 7

Each kind has ``--count`` clouds: sizes, degrees, quotas, loads, speeds and
losses are drawn. Each is simulated with the default policy, with feedback and
without agents. ``--fresh`` draws with a new seed and prints it, so that
the default cannot be tuned to these clouds. The results are ``clouds.json``,
with a row for each cloud, and ``clouds.csv``, which sums up. Clouds that are
in ``clouds.json`` with the same seed are not simulated again, so that a run
can be continued. ``strict`` is the lack of the worst user in the last round
beside the ideal that raises the poorest as far as weights can, where that is
another one (:mod:`fairness_lab.ideal.bounded`).

    python -m benchmarks.policies.clouds --out DIR --remedies FILE

looks again at the clouds of FILE, a ``clouds.json``, in which a user lacks
more than 5 % with the default policy. ``remedies.json`` says beside what is
lacking how much of it weights could give back without harm to poorer users
(:mod:`fairness_lab.ideal.remedy`).
"""

import argparse
from collections.abc import Iterator
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

from benchmarks.policies import runs
from fairness_lab.ideal import columns
from fairness_lab.ideal import ideal
from fairness_lab.ideal import remedy
from fairness_lab.measures import distance
from fairness_lab.measures import measures
from fairness_lab.measures import running
from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import values as scenario_module
from nova_fairness.model import resources
from nova_fairness.shares import grouping

ROUNDS = 30
SETTLED = 5
"""Of the rounds at the end, in which the worst counts."""

WITHIN, NEAR = 0.05, 0.10
QUICK = 5
"""Rounds in which users should be within the first."""

WORSE = 0.02
"""By so much users may lack more than with what it is compared with."""

METRIC = 'DominantShareMetric'
POLICIES = ('foresight', 'feedback', 'none')

_MIB = 2**20
_CPU = resources.RESOURCES.index('cpu_time')
_MEMORY = resources.RESOURCES.index('memory')


@dataclasses.dataclass(frozen=True)
class Kind:
    """Parameters of what is drawn.

    :ivar nodes: fewest and most.
    :ivar sizes: CPUs of nodes; drawn for each node, or once where ``equal``.
    :ivar equal: whether all nodes of a cloud have one size and speed.
    :ivar degrees: fewest and most nodes of a user.
    :ivar vms: fewest and most of a user on a node.
    :ivar vcpus: of a VM.
    :ivar wants: least and largest part of its vCPUs that a VM wants.
    :ivar idle: part of the VMs that want 2 % only.
    :ivar lost: largest part of reports that get lost; they also tarry then,
        and agents act at different times.
    :ivar exempt: part of the VMs that agents leave alone.
    """

    nodes: tuple[int, int] = (2, 12)
    sizes: tuple[int, ...] = (1, 2, 4, 8)
    equal: bool = True
    degrees: tuple[int, int] = (1, 4)
    vms: tuple[int, int] = (1, 4)
    vcpus: tuple[int, ...] = (1, 2, 4)
    wants: tuple[float, float] = (1.0, 1.0)
    idle: float = 0.0
    lost: float = 0.0
    exempt: float = 0.0


KINDS: Mapping[str, Kind] = {
    'one-node': Kind(nodes=(1, 1), wants=(0.1, 1.0)),
    'full': Kind(vcpus=(1,)),
    'partial': Kind(wants=(0.1, 1.0)),
    'heterogeneous': Kind(equal=False, degrees=(3, 3)),
    'tiny': Kind(vms=(4, 40), vcpus=(1,), wants=(0.05, 0.2)),
    'partly-idle': Kind(idle=0.5),
    'lossy': Kind(wants=(0.1, 1.0), lost=1 / 3),
    'exempt': Kind(wants=(0.1, 1.0), exempt=0.2),
}


def draw_cloud(name: str, seed: int, number: int) -> cloud_module.Experiment:
    """Draw a cloud and its agents."""
    kind = KINDS[name]
    chance = np.random.default_rng([seed, number, *name.encode()])
    nodes = int(chance.integers(kind.nodes[0], kind.nodes[1] + 1))
    users = int(chance.integers(2, 3 * nodes + 5))
    cpus = chance.choice(kind.sizes, nodes).astype(float)
    speed = chance.choice([0.7, 1.0, 1.4], nodes)
    if kind.equal:
        cpus[:], speed[:] = cpus[0], 1.0
    unequal = chance.random() < 1 / 3
    quota = (
        chance.choice([1.0, 2.0, 4.0], users) if unequal else np.ones(users)
    )
    rows = list(_vms(kind, chance, cpus, users))
    node, user, vcpus, part = (
        np.array(row) for row in zip(*rows, strict=True)
    )
    made = cloud(
        f'{name}-{number}', cpus, speed, quota, node, user, vcpus, part * vcpus
    )
    if kind.exempt:
        exempt = chance.random(len(node)) < kind.exempt
        made = dataclasses.replace(made, exempt=exempt)
    return cloud_module.Experiment(made, _agents(kind, chance, number))


def _vms(
    kind: Kind, chance: np.random.Generator, cpus: np.ndarray, users: int
) -> Iterator[tuple[int, int, int, float]]:
    for user in range(users):
        most = min(kind.degrees[1], len(cpus))
        degree = int(chance.integers(min(kind.degrees[0], most), most + 1))
        for node in chance.choice(len(cpus), degree, replace=False):
            for _ in range(int(chance.integers(kind.vms[0], kind.vms[1] + 1))):
                vcpus = min(int(chance.choice(kind.vcpus)), int(cpus[node]))
                part = float(chance.uniform(*kind.wants))
                is_idle = chance.random() < kind.idle
                yield int(node), user, vcpus, 0.02 if is_idle else part


def cloud(
    name: str,
    cpus: np.ndarray,
    speed: np.ndarray,
    quota: np.ndarray,
    node: np.ndarray,
    user: np.ndarray,
    vcpus: np.ndarray,
    demand: np.ndarray,
) -> cloud_module.Cloud:
    """Bring nodes, users and VMs into the form of the simulator.

    :param cpus: (m,) of each node, with its ``speed``.
    :param quota: (u,) of each user.
    :param node: (n,) of each VM, as all that follow; users ascending.
    :param demand: CPUs that each wants.
    """
    specs, count = _specs(cpus, speed), len(node)
    wanted = np.zeros((count, len(resources.RESOURCES)))
    wanted[:, _CPU], wanted[:, _MEMORY] = demand, 64 * _MIB
    return cloud_module.Cloud(
        name=name,
        description='drawn',
        interval_s=10.0,
        rounds=ROUNDS,
        nodes=tuple(spec.name for spec in specs),
        cpus=cpus,
        speed=speed * scenario_module.SPEED,
        capacity=np.array([spec.capacity() for spec in specs]),
        users=tuple(f'user{place:02d}' for place in range(len(quota))),
        user_weight=quota,
        vms=tuple(f'vm{place:04d}' for place in range(count)),
        user_of_vm=user,
        vcpus=vcpus.astype(np.int64),
        memory_bytes=np.full(count, 512.0 * _MIB),
        coupled=np.zeros(wanted.shape, dtype=np.bool_),
        changes=cloud_module.VmChanges(
            np.zeros(count, np.intp), np.arange(count), node, wanted
        ),
    )


def _specs(
    cpus: np.ndarray, speed: np.ndarray
) -> list[scenario_module.NodeSpec]:
    return [
        scenario_module.NodeSpec(
            f'node{place:02d}',
            cpus=float(count),
            speed=float(factor),
            memory_mib=2**18,
            disk_mib_s=200.0,
            network_mbit_s=1000.0,
        )
        for place, (count, factor) in enumerate(zip(cpus, speed, strict=True))
    ]


def _agents(
    kind: Kind, chance: np.random.Generator, number: int
) -> scenario_module.AgentSpec:
    if not kind.lost:
        return scenario_module.AgentSpec()
    return scenario_module.AgentSpec(
        ticks=4,
        spread=True,
        view_max_age=6.0,
        seed=number,
        links=scenario_module.LinkSpec(
            loss=float(chance.uniform(0.0, kind.lost)),
            jitter=float(chance.uniform(0.0, 2.0)),
        ),
    )


class LastRoundObserver:
    """Observer that keeps the last round."""

    def __init__(self) -> None:
        self.moment: model.RoundMoment | None = None

    def see(self, moment: model.RoundMoment) -> None:
        self.moment = moment

    def result(self) -> Mapping[str, Any]:
        return {}


@dataclasses.dataclass(frozen=True, eq=False)
class LastRound:
    """Last round of a simulated cloud.

    :ivar wishes: of its VMs.
    :ivar received: (n, r) what each VM received.
    :ivar ratio: of the largest to the smallest weight, >= 1.
    """

    wishes: columns.Wishes
    received: np.ndarray
    ratio: float

    @classmethod
    def of(cls, scenario: cloud_module.Experiment, policy: str) -> 'LastRound':
        """Simulate a cloud."""
        made = running.setup(
            scenario, running.RunOptions(metric=METRIC, policy=policy)
        )
        last = LastRoundObserver()
        running.observe(scenario.cloud, made, [last])
        judge = measures.Measures(scenario.cloud, made)
        return cls.seen(judge, last, made.max_weight_ratio)

    @classmethod
    def seen(
        cls, judge: measures.Measures, last: LastRoundObserver, ratio: float
    ) -> 'LastRound':
        """Return the last round that was observed."""
        assert last.moment is not None
        wishes = judge.wishes(last.moment)
        return cls(wishes, last.moment.received, ratio)

    @property
    def shares(self) -> np.ndarray:
        """Shares that users have, (u,)."""
        quota = self.wishes.quota
        used = grouping.sum_by(self.wishes.user, self.received, len(quota))
        return np.asarray(columns.fractions_of_quota(quota, used).max(axis=1))

    @property
    def ideal(self) -> ideal.Ideal:
        """The bounded ideal."""
        return ideal.cached_ideal(ideal.DOMINANT, self.ratio)(self.wishes)

    def strict_shares(self) -> np.ndarray | None:
        """Shares of the strict ideal; ``None`` if it is the same ideal.

        It raises the poorest as far as weights can, however little that is.
        """
        if self.ideal.is_strict:
            return None
        strict = ideal.cached_ideal(ideal.DOMINANT, self.ratio, 0.0)
        return strict(self.wishes).share


def worst_lack(had: np.ndarray, best: np.ndarray) -> float:
    """The most that a user lacks of an ideal.

    :param had: (u,) shares; so is ``best``.
    """
    return float(distance.largest_lack(had[np.newaxis], best[np.newaxis])[0])


def simulate_policies(name: str, seed: int, number: int) -> dict[str, Any]:
    """Simulate a cloud with each policy."""
    scenario = draw_cloud(name, seed, number)
    row: dict[str, Any] = {'kind': name, 'number': number}
    for policy in POLICIES:
        made = running.setup(
            scenario, running.RunOptions(metric=METRIC, policy=policy)
        )
        last, judge = (
            LastRoundObserver(),
            measures.Measures(scenario.cloud, made),
        )
        running.observe(scenario.cloud, made, [judge, last])
        table = judge.result()['series']['measures']
        place = table['columns'].index('worst_bounded')
        lacks = [each[place] or 0.0 for each in table['rows']]
        late = [place for place, part in enumerate(lacks) if part > WITHIN]
        end = LastRound.seen(judge, last, made.max_weight_ratio)
        strict = end.strict_shares()
        row[policy] = {
            'lacks': max(lacks[-SETTLED:]),
            'rounds': late[-1] + 1 if late else 0,
            'strict': None
            if strict is None
            else worst_lack(end.shares, strict),
        }
    return row


def find_remedies(
    name: str, seed: int, number: int, policy: str
) -> dict[str, Any]:
    """Work out the lack of users at the end, and their remedy.

    All are parts of an ideal, and the largest of any user: ``lacks`` of the
    ideal, ``strict`` and ``remedy`` of the strict one.
    """
    end = LastRound.of(draw_cloud(name, seed, number), policy)
    best, strict = end.ideal.share, end.strict_shares()
    strict = best if strict is None else strict
    had, could = remedy.harmless_shares(end.wishes, end.received, end.ratio)
    return {
        'lacks': worst_lack(had, best),
        'strict': worst_lack(had, strict),
        'remedy': worst_lack(had, np.minimum(could, strict)),
    }


def find_all_remedies(path: pathlib.Path) -> list[dict[str, Any]]:
    """Look again at clouds in which users lack more than :data:`WITHIN`.

    :param path: of a ``clouds.json``.
    """
    (head, *rows) = json.loads(path.read_text('utf-8'))['results']
    return [
        {
            'kind': row['kind'],
            'number': row['number'],
            'seed': head['seed'],
            **{
                policy: find_remedies(
                    row['kind'], head['seed'], row['number'], policy
                )
                for policy in POLICIES
            },
        }
        for row in rows
        if max(row['foresight']['lacks'], row['foresight'].get('strict') or 0)
        > WITHIN
    ]


def summary_of_kind(name: str, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Sum up the clouds of a kind."""
    lacks = {
        policy: [row[policy]['lacks'] for row in rows] for policy in POLICIES
    }
    mine = lacks['foresight']

    def part(chosen: Sequence[bool]) -> str:
        return runs.percent(sum(chosen) / len(rows))

    worse = [
        part([a > b + WORSE for a, b in zip(mine, lacks[other], strict=True)])
        for other in ('none', 'feedback')
    ]
    return [
        name,
        len(rows),
        part([value <= WITHIN for value in mine]),
        part([value <= NEAR for value in mine]),
        part([row['foresight']['rounds'] <= QUICK for row in rows]),
        *(runs.percent(statistics.median(lacks[each])) for each in POLICIES),
        *(runs.percent(max(lacks[each])) for each in POLICIES),
        *worse,
        sum(row['foresight']['strict'] is not None for row in rows),
        part([strict <= NEAR for strict in lacks_of_strict_ideal(rows)]),
        runs.percent(max(lacks_of_strict_ideal(rows))),
    ]


def read_rows(
    path: pathlib.Path, seed: int
) -> dict[tuple[str, int], dict[str, Any]]:
    """Rows of an earlier run, by kind and number; none of another seed."""
    if not path.exists():
        return {}
    (head, *rows) = json.loads(path.read_text('utf-8'))['results']
    if head['seed'] != seed:
        return {}
    return {(row['kind'], row['number']): row for row in rows}


SAVED = 10
"""Clouds after which what was found is written."""


def lacks_of_strict_ideal(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Lacks with foresight beside the strict ideal."""
    mine = [row['foresight'] for row in rows]
    return [
        row['lacks'] if row['strict'] is None else row['strict']
        for row in mine
    ]


HEAD = (
    'kind',
    'clouds',
    'within 5 %',
    'within 10 %',
    f'within 5 % in {QUICK} rounds',
    *(f'{policy}: median lacks %' for policy in POLICIES),
    *(f'{policy}: most lacks %' for policy in POLICIES),
    'worse than without agents',
    'worse than feedback',
    'clouds with another strict ideal',
    'within 10 % of the strict ideal',
    'most lacks of the strict ideal %',
)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument(
        '--count', type=int, default=500, help='clouds of each kind'
    )
    parser.add_argument(
        '--seed', type=int, default=12, help='seed of the random clouds'
    )
    parser.add_argument('--fresh', action='store_true', help='use a new seed')
    parser.add_argument(
        '--only', choices=list(KINDS), nargs='+', help='only these kinds'
    )
    parser.add_argument(
        '--remedies',
        type=pathlib.Path,
        help='compute remedies of the clouds in this clouds.json',
    )
    parser.add_argument('--processes', type=int, default=2)
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    if options.remedies:
        found = find_all_remedies(options.remedies)
        runs.write(options.out / 'remedies.json', found)
        return
    seed = secrets.randbelow(2**31) if options.fresh else options.seed
    print(f'seed {seed}', flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / 'clouds.json'
    known = read_rows(path, seed)
    rows: list[dict[str, Any]] = []
    table = [HEAD]
    with concurrent.futures.ProcessPoolExecutor(options.processes) as pool:
        for name in options.only or KINDS:
            numbers = range(options.count)
            found = [known[name, n] for n in numbers if (name, n) in known]
            missing = [n for n in numbers if (name, n) not in known]
            for row in pool.map(
                simulate_policies,
                [name] * len(missing),
                [seed] * len(missing),
                missing,
            ):
                found.append(row)
                if len(found) % SAVED == 0:
                    runs.write(path, [{'seed': seed}, *rows, *found])
            found.sort(key=lambda row: int(row['number']))
            rows += found
            table.append(summary_of_kind(name, found))
            print(*table[-1], flush=True)
            runs.write(path, [{'seed': seed}, *rows])
            runs.write_csv(options.out / 'clouds.csv', table)


if __name__ == '__main__':
    main()
