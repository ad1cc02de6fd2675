# SPDX-License-Identifier: Apache-2.0

"""Clouds in which a VM starts or is deleted in every round.

    python -m benchmarks.policies.churn --out benchmarks/results/churn.json
    python -m benchmarks.policies.churn --out build/churn.json --nodes 1000

One agent of a large cloud foresees from reports of all nodes, as it does in
production. Recorded are the part of the rounds in which foresight decides, the
CPU time of a round and of the longest one, and how far the agent's result is
from that of a whole search of the same reports: the lack of the worst user,
the users who lack more than 5 %, and the part that would have to change hands.
``steady`` is the same cloud without starts and deletions. In ``noisy`` all VMs
also want 2 % more or less in every round; in ``exempt`` a fifth of the VMs of
``churn`` is exempt.

Smaller clouds are simulated, with churn and without it, and charged for the
search as if they had 1,000 nodes. Recorded are the lack of the worst user
below the bounded ideal, and the part that would have to change hands. No agent
can know of a change in the same round. So the lack of the worst user is also
recorded for each round since, where changes are eight rounds apart.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import statistics
import time
import types
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.policies import clouds
from benchmarks.policies import runs
from benchmarks.queue import recorded
from fairness_lab.measures import measures
from fairness_lab.measures import running
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import values as scenario_module
from nova_fairness.agent.round import foresight as agent_foresight
from nova_fairness.decide import foresight as decide_foresight
from nova_fairness.decide.policies import foresight as policy_module
from nova_fairness.measure import demand_buckets
from nova_fairness.measure import foresight as measure_foresight
from nova_fairness.measure import totals
from nova_fairness.measure.metrics import dominant_share
from nova_fairness.model import defaults
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import node as node_model
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.runtime import guard as guard_module
from nova_fairness.shares import filling
from nova_fairness.shares import grouping

EACH = 20
"""Users of every node."""

DEGREE = 4
"""Nodes of every user, with one VM on each."""

CPUS = (2, 4, 8)
"""Of nodes."""

VCPUS = (1, 2, 4)
"""Of VMs."""

WANTS = (0.1, 1.0)
"""Part of its vCPUs that a VM wants: 20 VMs want about 26 CPUs."""

INTERVAL_S = 10.0
NOISE = 0.02
EXEMPT = 0.2
"""Part of the VMs, in such clouds."""

EVERY = 10
"""Of so many rounds one is compared with what follows without haste."""

METRIC = 'DominantShareMetric'
CPU = resources.RESOURCES.index('cpu_time')
MEMORY = resources.RESOURCES.index('memory')
RATIO = defaults.MAX_WEIGHT_RATIO
MIB = 2.0**20

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass
class Vms:
    """VMs of a cloud: rows that come and go.

    :ivar wants: CPUs.
    :ivar exempt: whether the VM always has weight 1.
    """

    node: npt.NDArray[np.intp]
    user: npt.NDArray[np.intp]
    vcpus: Floats
    wants: Floats
    exempt: npt.NDArray[np.bool_]

    @classmethod
    def drawn(
        cls, chance: np.random.Generator, cpus: Floats, users: int
    ) -> 'Vms':
        """Draw one VM on each of some nodes of each user."""
        nodes = len(cpus)
        node = np.concatenate([chance.permutation(nodes) for _ in range(EACH)])
        user = np.arange(len(node)) // DEGREE % users
        vcpus = np.minimum(chance.choice(VCPUS, len(node)), cpus[node])
        part = chance.uniform(*WANTS, len(node))
        exempt = np.zeros(len(node), dtype=np.bool_)
        return cls(node, user, vcpus, part * vcpus, exempt)

    def exempt_some(self, chance: np.random.Generator) -> None:
        """Draw the VMs that are exempt."""
        self.exempt = chance.random(len(self.node)) < EXEMPT

    def change(self, chance: np.random.Generator, cpus: Floats) -> int:
        """Start or delete a VM, with equal chance.

        :returns: its node.
        """
        if chance.random() < 0.5:
            at = int(chance.integers(len(self.node)))
            node = int(self.node[at])
            for name in ('node', 'user', 'vcpus', 'wants', 'exempt'):
                setattr(self, name, np.delete(getattr(self, name), at))
            return node
        node = int(chance.integers(len(cpus)))
        vcpus = min(float(chance.choice(VCPUS)), cpus[node])
        user = int(chance.integers(self.user.max() + 1))
        self.node = np.append(self.node, node)
        self.user = np.append(self.user, user)
        self.vcpus = np.append(self.vcpus, vcpus)
        self.wants = np.append(self.wants, vcpus * chance.uniform(*WANTS))
        self.exempt = np.append(self.exempt, False)
        return node


class Cloud:
    """Reports of all nodes; a few nodes change in a round."""

    def __init__(self, nodes: int, seed: int) -> None:
        self.chance = np.random.default_rng([seed, nodes])
        self.cpus = self.chance.choice(CPUS, nodes).astype(float)
        self.vms = Vms.drawn(self.chance, self.cpus, nodes * EACH // DEGREE)
        self._hosts = [f'node{place:05d}' for place in range(nodes)]
        self._reports: dict[str, report.NodeReport] = {}
        self.tell(range(nodes))

    def change(self) -> None:
        """Start or delete a VM."""
        self.tell([self.vms.change(self.chance, self.cpus)])

    def vary_demands(self) -> None:
        """Let all VMs want a little more or less than at first."""
        kept = self.vms.wants
        noise = np.exp(self.chance.normal(0.0, NOISE, len(kept)))
        self.vms.wants = np.minimum(kept * noise, self.vms.vcpus)
        self.tell(range(len(self.cpus)))
        self.vms.wants = kept

    def tell(self, nodes: Sequence[int]) -> None:
        """Let some nodes report."""
        order = np.argsort(self.vms.node, kind='stable')
        ends = np.searchsorted(
            self.vms.node[order], np.arange(len(self.cpus) + 1)
        )
        for node in nodes:
            rows = order[ends[node] : ends[node + 1]]
            made = self._report(node, rows)
            self._reports[made.host] = made

    def _report(
        self, node: int, rows: npt.NDArray[np.intp]
    ) -> report.NodeReport:
        vms, host = self.vms, self._hosts[node]
        users, owner = np.unique(vms.user[rows], return_inverse=True)
        cell, count = owner.reshape(-1), len(users)
        width = len(resources.RESOURCES)
        wants, vcpus = vms.wants[rows], vms.vcpus[rows]
        grades, exempt = demand_buckets.sum_by_grade_with_exempt(
            cell, vcpus, wants, count, vms.exempt[rows]
        )
        got, _ = filling.fill(
            self.cpus[node : node + 1], np.zeros_like(rows), wants, vcpus
        )
        used, wanted = np.zeros((2, len(rows), width))
        used[:, CPU], wanted[:, CPU] = got * INTERVAL_S, wants * INTERVAL_S
        used[:, MEMORY] = wanted[:, MEMORY] = 64 * MIB
        capacity = np.zeros(width)
        capacity[CPU], capacity[MEMORY] = self.cpus[node], 2**18 * MIB
        return report.NodeReport(
            host=host,
            boot_id='churn',
            sequence=1,
            interval_s=INTERVAL_S,
            metric=METRIC,
            resources=node_model.NodeResources(
                host, tuple(range(int(self.cpus[node]))), 1.0, capacity
            ),
            users=report.UserTable(
                ids=tuple(f'user{user:06d}' for user in users),
                instance_heaviness=np.zeros(count),
                endowment=grouping.sum_by(cell, used, count),
                usage=grouping.sum_by(cell, used, count),
                instances=np.bincount(cell, minlength=count),
                wanted=grouping.sum_by(cell, wanted, count),
                grades=grades,
                exempt=exempt if vms.exempt[rows].any() else None,
            ),
        )

    def knowledge(self) -> foresight_model.NodeKnowledge:
        """Knowledge of the first node, as its agent works it out."""
        view = report.View(dict(self._reports), {}, {})
        combined = totals.combine_reports(view, INTERVAL_S, METRIC)
        known = measure_foresight.knowledge(
            view,
            INTERVAL_S,
            dominant_share.DominantShareMetric(),
            METRIC,
            combined.totals,
        )
        known = dataclasses.replace(
            known, hosts=self._hosts, users=combined.users
        )
        none = np.zeros(0, dtype=np.intp)
        return foresight_model.NodeKnowledge(known, 0, none)


class Agent:
    """Foresight of one agent, and what it costs."""

    def __init__(self) -> None:
        # What agents load once, in their first round, is no cost of a search.
        np.median(np.zeros(1))
        # In the very thread: its CPU time is all that is spent.
        guard = guard_module.Guard(defaults.METRIC_DEADLINE_S)
        self._foreseer = agent_foresight.Foreseer(guard)
        self._policy = policy_module.ForesightPolicy()
        self._ratios = np.full(len(resources.CONTROLS), RATIO)

    def round(
        self, knowledge: Callable[[], foresight_model.NodeKnowledge]
    ) -> tuple[foresight_model.SharedView | None, float, float]:
        """Foresee.

        :returns: by what the node decides, ``None`` for feedback; and CPU
            time of all threads, seconds: with the knowledge, and without it.
        """
        began_s = time.process_time()
        known = knowledge()
        knew_s = time.process_time()
        nothing = np.zeros((0, len(resources.RESOURCES)))
        found = self._foreseer.of_node(
            types.SimpleNamespace(  # type: ignore[arg-type]
                knowledge=lambda: known,
                weighed=types.SimpleNamespace(newest=nothing),
                wanted=nothing,
            ),
            self._policy,
            self._ratios,
            np.zeros(0, dtype=np.bool_),
        )
        end_s = time.process_time()
        view = None if found is None else found.views[0]
        if view is not None and view.end.sharpness > decide_foresight.SHARP:
            view = None
        return view, end_s - began_s, end_s - knew_s


def _shares(
    known: foresight_model.CpuKnowledge, end: foresight_model.CpuTarget
) -> Floats:
    """CPU that users get with weights, (u,)."""
    demand = known.demand
    log = np.where(demand.exempt, 0.0, end.log[demand.cell])
    got, _ = filling.fill(
        known.supply[:, CPU],
        known.node[demand.cell],
        demand.wanted,
        demand.vcpus * np.exp(log),
    )
    return np.bincount(known.user[demand.cell], got)


DISTANCES = ('lacks_%', 'unfair_%', 'distance_%')
UNFAIR = 0.05
"""Lack of a user that counts as unfair."""


def _distance_from_whole_search(
    view: foresight_model.SharedView, known: foresight_model.CpuKnowledge
) -> dict[str, float]:
    """Compare the agent's result with that of a whole search, per cent.

    :returns: lack of the worst user, users who lack more than
        :data:`UNFAIR`, and the part of all CPU time that would have to change
        hands.
    """
    search = decide_foresight.search_division(known, RATIO)
    while not search.is_over:
        search = decide_foresight.search_division(known, RATIO, search)
    best, mine = _shares(known, search.end), _shares(known, view.end)
    lack = 1 - mine / best.clip(1e-9)
    moved = np.maximum(best - mine, 0.0).sum() / best.sum()
    return {
        'lacks_%': 100 * float(lack.max()),
        'unfair_%': 100 * float((lack > UNFAIR).mean()),
        'distance_%': 100 * float(moved),
    }


KINDS = ('steady', 'churn', 'noisy', 'exempt')


def measure_agent(
    nodes: int, seed: int, kind: str, rounds: int
) -> dict[str, Any]:
    """Let an agent foresee for some rounds from a cold start.

    :param kind: one of :data:`KINDS`.
    """
    cloud, agent = Cloud(nodes, seed), Agent()
    if kind == 'exempt':
        cloud.vms.exempt_some(cloud.chance)
        cloud.tell(range(nodes))
    decides, spent_s, alone_s, distances = [], [], [], []
    for number in range(rounds):
        if kind != 'steady':
            cloud.change()
        if kind == 'noisy':
            cloud.vary_demands()
        view, round_s, foresight_s = agent.round(cloud.knowledge)
        decides.append(view is not None)
        spent_s.append(round_s)
        alone_s.append(foresight_s)
        if view is not None and number % EVERY == EVERY - 1:
            known = cloud.knowledge().knowledge
            distances.append(_distance_from_whole_search(view, known))
    first = decides.index(True) if True in decides else None
    warm = slice(0 if first is None else first, None)
    return {
        'first_usable_round': None if first is None else first + 1,
        'decides_%': 100 * statistics.fmean(decides[warm]),
        'ms': 1000 * statistics.median(spent_s[warm]),
        'most_ms': 1000 * max(spent_s),
        'foresight_ms': 1000 * statistics.median(alone_s[warm]),
        **{
            name: statistics.median(each[name] for each in distances)
            if distances
            else None
            for name in DISTANCES
        },
    }


CHURN_FROM = 10
"""Round of the first start or deletion; the lack just before is that without
churn."""

APART = 8
"""Rounds between two of them, where it is seen how they pass."""


def _draw_small_cloud(
    seed: int, nodes: int, rounds: int, apart: int
) -> cloud_module.Experiment:
    """Draw a small cloud for the simulator.

    :param apart: rounds between two changes.
    """
    chance = np.random.default_rng([seed, nodes])
    cpus = chance.choice(CPUS, nodes).astype(float)
    users = nodes * EACH // DEGREE
    vms, others = (Vms.drawn(chance, cpus, users) for _ in range(2))
    times = range(CHURN_FROM, rounds, apart)
    made = clouds.cloud(
        f'churn-{nodes}-{seed}',
        cpus,
        np.ones(nodes),
        np.ones(users),
        *(
            np.append(getattr(vms, name), getattr(others, name)[: len(times)])
            for name in ('node', 'user', 'vcpus', 'wants')
        ),
    )
    born, living = made.changes, list(range(len(vms.node)))
    rows = [(0, vm, int(born.node[vm]), born.demand[vm]) for vm in living]
    for vm, when in enumerate(times, len(vms.node)):
        if chance.random() < 0.5:
            gone = living.pop(int(chance.integers(len(living))))
            idle = np.zeros_like(born.demand[gone])
            rows.append((when, gone, cloud_module.ABSENT, idle))
        else:
            living.append(vm)
            rows.append((when, vm, int(born.node[vm]), born.demand[vm]))
    changes = cloud_module.VmChanges(
        *(np.array(column) for column in zip(*rows, strict=True))
    )
    made = dataclasses.replace(made, rounds=rounds, changes=changes)
    return cloud_module.Experiment(made, scenario_module.AgentSpec())


def _distances_from_ideal(
    experiment: cloud_module.Experiment, policy: str, large: int
) -> dict[str, Floats]:
    """Distance from the bounded ideal, round by round, per cent.

    :param large: nodes of the cloud as which it is charged for the search; 0
        if it is not charged for rows.
    :returns: lack of the worst user, and part that would have to change hands.
    """
    made = running.setup(
        experiment, running.RunOptions(metric=METRIC, policy=policy)
    )
    part = large / len(experiment.cloud.nodes)
    made = dataclasses.replace(made, stands_for=part)
    judge = measures.Measures(experiment.cloud, made)
    running.observe(experiment.cloud, made, [judge])
    table = judge.result()['series']['measures']
    return {
        name: 100
        * np.array(
            [row[table['columns'].index(column)] for row in table['rows']]
        )
        for name, column in (
            ('worst', 'worst_bounded'),
            ('distance', 'distance_bounded'),
        )
    }


AFTER = 4
"""Rounds since a change that are told."""

LARGE = 1000
"""Nodes of the cloud as which small ones are charged for the search."""

TRIED = (
    ('foresight', 'foresight', LARGE),
    ('foresight, searched at once', 'foresight', 0),
    ('feedback', 'feedback', 0),
    ('none', 'none', 0),
)
"""Name, policy, and nodes of the cloud as which it is charged."""


def simulate_small_cloud(seed: int, nodes: int, rounds: int) -> dict[str, Any]:
    """Simulate a small cloud that searches as slowly as one of 1,000 nodes."""
    row: dict[str, Any] = {}
    for label, policy, large in TRIED:
        found = _distances_from_ideal(
            _draw_small_cloud(seed, nodes, rounds, 1), policy, large
        )
        row[label] = {
            name: {
                'without_churn_%': values[CHURN_FROM - 1],
                'churn_%': statistics.median(values[CHURN_FROM:]),
                'most_%': values[CHURN_FROM:].max(),
            }
            for name, values in found.items()
        }
        count = (rounds - CHURN_FROM) // APART
        end = CHURN_FROM + count * APART
        few = _draw_small_cloud(seed, nodes, end, APART)
        worst = _distances_from_ideal(few, policy, large)['worst'][CHURN_FROM:]
        after = np.median(worst.reshape(count, APART), axis=0)
        row[label]['worst_by_rounds_since_a_change_%'] = {
            str(since): part for since, part in enumerate(after[:AFTER])
        }
    return row


def _spread(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Least, middle and largest of each number over seeds."""
    found: dict[str, Any] = {}
    for name, value in rows[0].items():
        values = [row[name] for row in rows]
        if isinstance(value, dict):
            found[name] = _spread(values)
        elif None in values:
            found[name] = values
        else:
            found[name] = [
                round(float(pick(values)), 3)
                for pick in (min, statistics.median, max)
            ]
    return found


def _middle_and_largest(values: Sequence[float | None]) -> str:
    """The middle one of several seeds, and the largest."""
    if None in values:
        return 'never'
    _, middle, most = values
    return f'{middle:.3g} ({most:.3g})'


def pages(found: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    """Tables of what was found, by what is added to the name of the file."""
    agent = [
        [
            'nodes',
            'cloud',
            'first usable round',
            'foresight decides, %',
            'CPU ms of a round',
            'of these foresight',
            'CPU ms of the longest round',
            'worst user lacks, %',
            'users who lack over 5 %, %',
            'distance, %',
        ]
    ]
    for row in found.get('agent', ()):
        names = (
            'first_usable_round',
            'decides_%',
            'ms',
            'foresight_ms',
            'most_ms',
            *DISTANCES,
        )
        told = [_middle_and_largest(row[name]) for name in names]
        agent.append([str(row['nodes']), row['kind'], *told])
    small = [
        [
            'nodes',
            'agents',
            'worst before churn, %',
            'worst in churn, %',
            'distance before, %',
            'distance in churn, %',
            *(f'worst {n} rounds after, %' for n in range(AFTER)),
        ]
    ]
    for row in found.get('simulated', ()):
        for label, _, _ in TRIED:
            told = [
                _middle_and_largest(row[label][name][when])
                for name in ('worst', 'distance')
                for when in ('without_churn_%', 'churn_%')
            ]
            after = row[label]['worst_by_rounds_since_a_change_%'].values()
            told += [_middle_and_largest(part) for part in after]
            small.append([str(row['nodes']), label, *told])
    tables = {'agent': agent, 'simulated': small}
    return {name: rows for name, rows in tables.items() if name in found}


def main() -> None:
    parser = recorded.parser(__doc__)
    parser.add_argument('--nodes', type=int, nargs='*', default=[1000, 5000])
    parser.add_argument(
        '--kinds',
        choices=KINDS,
        nargs='*',
        default=KINDS,
        help='kinds of clouds',
    )
    parser.add_argument('--small', type=int, nargs='*', default=[4, 10, 30])
    parser.add_argument('--rounds', type=int, default=60)
    parser.add_argument('--seeds', type=int, default=3, help='number of seeds')
    options = parser.parse_args()
    seeds = range(1, options.seeds + 1)
    found: dict[str, Any] = {'seeds': list(seeds), 'rounds': options.rounds}
    for nodes in options.nodes:
        for kind in options.kinds:
            rows = [
                measure_agent(nodes, seed, kind, options.rounds)
                for seed in seeds
            ]
            found.setdefault('agent', []).append(
                {'nodes': nodes, 'kind': kind, **_spread(rows)}
            )
            print(found['agent'][-1], flush=True)
    for nodes in options.small:
        rows = [
            simulate_small_cloud(seed, nodes, options.rounds) for seed in seeds
        ]
        found.setdefault('simulated', []).append(
            {'nodes': nodes, **_spread(rows)}
        )
        print(found['simulated'][-1], flush=True)
    recorded.write(options.out, found)
    for name, rows in pages(found).items():
        beside = options.out.with_name(f'{options.out.stem}-{name}.csv')
        runs.write_csv(beside, rows)


if __name__ == '__main__':
    main()
