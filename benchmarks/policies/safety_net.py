# SPDX-License-Identifier: Apache-2.0
"""The safety net: quiet in ordinary clouds, and what it saves from faults.

    python -m benchmarks.policies.safety_net --out DIR
    python -m benchmarks.policies.safety_net --out DIR --fresh --count 50
    python -m benchmarks.policies.safety_net --out DIR --cost

Clouds of each kind of ``clouds.py`` and of each family of ``worst_clouds.py``
are simulated with and without the net: no node should ever return to neutral.
Then faults are planted: a policy that gives to the heavy, a foresight that
sees no change or only means, and a node that lies. Written is ``net.json``,
with a row for each cloud, and ``net.csv``, which sums up. ``--cost`` measures
instead what an agent pays for it: ``cost.json``.
"""

import argparse
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import concurrent.futures
import contextlib
import dataclasses
import pathlib
import secrets
import time
from typing import Any
from unittest import mock

import numpy as np
from oslo_config import cfg

from benchmarks.policies import clouds
from benchmarks.policies import runs
from benchmarks.policies import worst_clouds
from fairness_lab.ideal import ideal
from fairness_lab.measures import measures
from fairness_lab.measures import running
from fairness_lab.node_sim import knowledge
from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness import plugins
from nova_fairness.agent import settings as settings_module
from nova_fairness.agent.round import safety_net as agent_net
from nova_fairness.conf import opts
from nova_fairness.decide import policy as policy_base
from nova_fairness.decide.controls import cpu
from nova_fairness.decide.controls import scale as scale_module
from nova_fairness.decide.policies import foresight as foresight_policy
from nova_fairness.measure import demand_buckets
from nova_fairness.model import allocation
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import instance
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model
from nova_fairness.runtime import guard

ROUNDS = 60
"""Of clouds without a fault ..."""

FAULTY_ROUNDS = 100
"""... and with one: so many that a node rests for the second time."""

LIE = 10.0
"""Times of what a lying node has that it says it has."""

_TIME = resources.RESOURCES.index('cpu_time')
Plant = contextlib.AbstractContextManager[Any]


class Inverted(policy_base.Policy):
    """Gives heavier users more."""

    description = 'A fault.'

    def __call__(
        self,
        situation: policy_base.Situation,
        previous: Any,
        memory: policy_base.Memory,
        elapsed_s: float,
    ) -> tuple[Any, policy_base.Memory]:
        """Decide the opposite of what ``proportional`` does."""
        heavy = situation.heaviness
        weights = np.exp((heavy - heavy.mean()).clip(-20.0, 20.0))
        return np.repeat(weights[:, np.newaxis], previous.shape[1], 1), {}


def _foresight_without_changes() -> Plant:
    """Foresight that sees no change of what is wanted."""
    same = foresight_model.CpuKnowledge.has_cells_of
    return mock.patch.object(foresight_model.CpuKnowledge, 'is_like', same)


def _reports_of_means() -> Plant:
    """Reports that tell the mean of what the vCPUs of a user want."""

    def graded(
        cell: Any, vcpus: Any, wanted: Any, cells: int
    ) -> resources.Vector:
        told = np.zeros((cells, 2 * report.GRADES))
        told[:, 0] = np.bincount(cell, vcpus, cells)
        told[:, report.GRADES] = np.bincount(cell, wanted, cells)
        return told

    return mock.patch.object(demand_buckets, 'sum_by_grade', graded)


def _ignored_small_vms() -> Plant:
    """Small VMs that wait do not count, as foresight once had it."""
    scene: Any = foresight_policy._SteeredVms  # noqa: SLF001

    def average(self: Any) -> Any:
        count = np.bincount(self.node, minlength=self.nodes)
        total = np.bincount(self.node, self.wanted_cpus, self.nodes)
        return (total / np.maximum(count, 1))[self.node]

    made = scene.of.__func__

    def of(*given: Any) -> Any:
        found = made(scene, *given)
        active = found.wanted_cpus > foresight_policy.ACTIVE * average(found)
        return dataclasses.replace(found, node_lacks=found.node_lacks & active)

    return mock.patch.multiple(scene, average_want=average, of=of)


def _false_first_report(
    change: Callable[[Any, Any, resources.Mask], Any],
) -> Plant:
    """A first node that lies about its first user.

    :param change: of what is told, for the rows of that user.
    """
    honest = knowledge.SimulatedKnowledge.newest

    def newest(self: Any, rows: Any) -> Any:
        told = honest(self, rows)
        here = told.node == 0
        if here.any():
            here &= told.user == told.user[here].min()
        return change(self, told, here)

    return mock.patch.object(knowledge.SimulatedKnowledge, 'newest', newest)


def _false_wants() -> Plant:
    """The first node has far more CPUs than it has, and its users want all."""

    def change(_known: Any, told: Any, _here: resources.Mask) -> Any:
        wanted = told.wanted.copy()
        wanted[told.node == 0, _TIME] *= LIE
        vcpus = np.where(told.node == 0, LIE * told.vcpus, told.vcpus)
        return dataclasses.replace(told, wanted=wanted, vcpus=vcpus)

    made = knowledge.Searches.compute_knowledge

    def make(self: Any, *given: Any) -> Any:
        honest = self._cloud
        capacity = honest.capacity.copy()
        capacity[0] *= LIE
        self._cloud = dataclasses.replace(honest, capacity=capacity)
        try:
            return made(self, *given)
        finally:
            self._cloud = honest

    both = contextlib.ExitStack()
    both.enter_context(_false_first_report(change))
    both.enter_context(
        mock.patch.object(knowledge.Searches, 'compute_knowledge', make)
    )
    return both


def _false_use() -> Plant:
    """The first user has all of the first node."""

    def change(known: Any, told: Any, here: resources.Mask) -> Any:
        used = told.usage.copy()
        whole = known.cloud.capacity[0, _TIME] * known.cloud.interval_s
        used[here, _TIME] = whole / max(1, np.count_nonzero(here))
        return dataclasses.replace(told, usage=used)

    return _false_first_report(change)


@dataclasses.dataclass(frozen=True)
class Fault:
    """Something that is wrong.

    :ivar plant: makes it so; ``None``: the policy is the fault.
    :ivar kinds: of clouds in which it is planted.
    """

    plant: Callable[[], Plant] | None
    kinds: tuple[str, ...]


FAULTS: Mapping[str, Fault] = {
    'gives to the heavy': Fault(None, ('partial', 'full')),
    'sees no change': Fault(
        _foresight_without_changes, ('case user-stops', 'user-stops')
    ),
    'sees means only': Fault(
        _reports_of_means, ('case unlike-vms', 'unlike-vms')
    ),
    'leaves out small VMs': Fault(
        _ignored_small_vms, ('case wide-and-small', 'wide-and-small')
    ),
    'node lies about wants': Fault(_false_wants, ('partial', 'full')),
    'node lies about use': Fault(_false_use, ('partial', 'full')),
}


def draw_cloud(
    kind: str, seed: int, number: int, rounds: int = FAULTY_ROUNDS
) -> cloud_module.Experiment:
    """Draw a cloud, or take a known one."""
    family = kind.removeprefix('case ')
    if kind in clouds.KINDS:
        scenario = clouds.draw_cloud(kind, seed, number)
    elif family != kind:
        scenario = worst_clouds.CASES[family].experiment(kind)
    else:
        chance = np.random.default_rng([seed, number, *kind.encode()])
        scenario = worst_clouds.FAMILIES[kind](chance).experiment(kind)
    longer = dataclasses.replace(scenario.cloud, rounds=rounds)
    return dataclasses.replace(scenario, cloud=longer)


class _NeutralNodesObserver:
    """Sees which nodes ever return to neutral."""

    def __init__(self, nodes: int) -> None:
        self.ever = np.zeros(nodes, dtype=np.bool_)

    def see(self, moment: model.RoundMoment) -> None:
        self.ever |= moment.resting

    def result(self) -> Mapping[str, Any]:
        return {}


def simulate_policy(
    scenario: cloud_module.Experiment,
    policy: str,
    *,
    net: bool,
    plugin: policy_base.Policy | None = None,
) -> tuple[float, int]:
    """Lack of the worst user at the end, 0..1, and nodes that return.

    :param plugin: instead of the policy.
    """
    choice = running.RunOptions(metric=clouds.METRIC, policy=policy)
    made = running.setup(scenario, choice)
    made = dataclasses.replace(made, safety_net=net)
    if plugin is not None:
        made = dataclasses.replace(made, policy_plugin=plugin)
    judge = measures.Measures(scenario.cloud, made, ideal.DOMINANT)
    watch = _NeutralNodesObserver(len(scenario.cloud.nodes))
    running.observe(scenario.cloud, made, [judge, watch])
    table = judge.result()['series']['measures']
    place = table['columns'].index('worst_bounded')
    lacks = [row[place] or 0.0 for row in table['rows']]
    return max(lacks[-clouds.SETTLED :]), int(watch.ever.sum())


def simulate_with_and_without(
    job: tuple[str, str, str, int, int],
) -> dict[str, Any]:
    """Simulate a cloud without agents, without the net, and with it."""
    fault, policy, kind, seed, number = job
    rounds = FAULTY_ROUNDS if fault else ROUNDS
    scenario = draw_cloud(kind, seed, number, rounds)
    none, _ = simulate_policy(scenario, 'none', net=False)
    known = FAULTS.get(fault)
    plugin = Inverted() if known and known.plant is None else None
    plant = known.plant() if known and known.plant else mock.MagicMock()
    with plant:
        without, _ = simulate_policy(
            scenario, policy, net=False, plugin=plugin
        )
        with_net, returned = simulate_policy(
            scenario, policy, net=True, plugin=plugin
        )
    return {
        'fault': fault,
        'policy': policy,
        'kind': kind,
        'number': number,
        'lacks': {'none': none, 'without': without, 'with': with_net},
        'nodes': len(scenario.cloud.nodes),
        'returned': returned,
    }


def summary_row(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Sum up clouds that differ in their number only."""
    lacks = {
        side: np.array([row['lacks'][side] for row in rows])
        for side in ('none', 'without', 'with')
    }
    first = rows[0]
    returned = sum(row['returned'] for row in rows)
    return [
        first['fault'] or '-',
        first['policy'],
        first['kind'],
        len(rows),
        runs.percent(returned / sum(row['nodes'] for row in rows)),
        *(runs.percent(float(lacks[side].max())) for side in lacks),
        *(
            runs.percent(float(worse.mean()))
            for side in ('without', 'with')
            for worse in [lacks[side] > lacks['none'] + clouds.WORSE]
        ),
    ]


HEAD = (
    'fault',
    'policy',
    'kind',
    'clouds',
    'nodes that return %',
    'most lacks % without agents',
    'without the net',
    'with it',
    'worse than no agents % without the net',
    'with it',
)


def _jobs(
    seed: int, count: int, faulty: int
) -> list[list[tuple[str, str, str, int, int]]]:
    kinds = (*clouds.KINDS, *worst_clouds.FAMILIES)
    groups = [
        ('', policy, kind, count)
        for policy in ('foresight', 'feedback')
        for kind in kinds
    ]
    groups += [
        (name, 'foresight', kind, 1 if kind.startswith('case') else faulty)
        for name, fault in FAULTS.items()
        for kind in fault.kinds
    ]
    return [
        [(fault, policy, kind, seed, number) for number in range(many)]
        for fault, policy, kind, many in groups
    ]


def _round(vms: int, users: int, known: int) -> round_model.MeasuredRound:
    """A round of a full node of one-vCPU VMs; users have as much elsewhere.

    :param users: with VMs here.
    :param known: users of all nodes.
    """
    chance = np.random.default_rng(3)
    width = len(resources.RESOURCES)
    used = np.zeros((vms, width))
    used[:, _TIME] = chance.uniform(1.0, 5.0, vms)
    user = np.arange(vms) % users
    of_all = np.zeros((known, width))
    of_all[:, _TIME] = 50.0
    np.add.at(of_all, user, used)
    supply = np.full(width, 2.0 * of_all[:, _TIME].sum())
    whole = usage_model.Usage(
        10.0,
        tuple(
            instance.Incarnation(
                instance.Instance(f'vm{row}', f'vm{row}', 1, 2**30), 1, row
            )
            for row in range(vms)
        ),
        used,
        np.ones(vms, dtype=np.bool_),
        np.full(vms, 0.5),
    )
    return round_model.MeasuredRound(
        usage=whole,
        ownership=usage_model.Ownership(
            tuple(f'user{row:05d}' for row in range(known)),
            user,
            np.zeros(vms, dtype=np.intp),
        ),
        endowment=np.ones((vms, width)),
        instance_heaviness=np.zeros(vms),
        heaviness=of_all[user, _TIME],
        user_heaviness=of_all[:, _TIME],
        quota=np.broadcast_to(supply / known, of_all.shape),
        supply=supply,
        view=report.View({}, {}, {}),
        user_usage=of_all,
        basis=round_model.Basis(
            supply, known, supply, np.zeros(known), np.ones((known, width))
        ),
        wanted=np.maximum(used, 10.0),
    )


def cost(rounds: int = 300) -> list[dict[str, Any]]:
    """CPU time of the net in a round of an agent, milliseconds.

    ``quiet``: weights are neutral; ``doubt``: some users have less.
    """
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    conf([])
    settings = settings_module.from_conf(conf)
    metric = plugins.load_metric(clouds.METRIC)
    scale = cpu.CpuScale(cpu.CgroupVersion.V2, lambda _: True)
    found = []
    for users, known in ((20, 20), (20, 1000), (20, 20000)):
        measured = _round(100, users, known)
        for name, units in (('quiet', (100, 100)), ('doubt', (25, 400))):
            present = {
                allocation.Knob(vm.key, resources.ResourceControl.CPU): units[
                    row % users < users // 2
                ]
                for row, vm in enumerate(measured.usage.incarnations)
            }
            net = agent_net.SafetyNet(guard.Guard(5.0))
            # A round reads the same facts for the decision itself.
            facts = scale_module.ScaleFacts(
                measured.usage,
                policy_base.Preset.DEFAULT,
                present,
                frozenset(),
                settings.tolerance,
            )
            net.judge(measured, metric, settings, scale, facts)
            began_s = time.process_time()
            for _ in range(rounds):
                net.judge(measured, metric, settings, scale, facts)
            spent_s = time.process_time() - began_s
            found.append(
                {
                    'vms': 100,
                    'users': users,
                    'known_users': known,
                    'case': name,
                    'cpu_ms': 1000 * spent_s / rounds,
                }
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument(
        '--count', type=int, default=20, help='clouds of each kind'
    )
    parser.add_argument(
        '--faulty', type=int, default=15, help='clouds of each fault'
    )
    parser.add_argument('--seed', type=int, default=31)
    parser.add_argument('--fresh', action='store_true', help='use a new seed')
    parser.add_argument('--processes', type=int, default=2)
    parser.add_argument(
        '--cost', action='store_true', help='measure the cost of an agent'
    )
    options = parser.parse_args()
    if options.cost:
        runs.write(options.out / 'cost.json', cost())
        return
    seed = secrets.randbelow(2**31) if options.fresh else options.seed
    print(f'seed {seed}')
    rows: list[dict[str, Any]] = []
    table: list[Sequence[Any]] = [HEAD]
    options.out.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ProcessPoolExecutor(options.processes) as pool:
        for jobs in _jobs(seed, options.count, options.faulty):
            found = (
                list(pool.map(simulate_with_and_without, jobs)) if jobs else []
            )
            rows += found
            if found:
                table.append(summary_row(found))
                print(*table[-1], flush=True)
    runs.write(options.out / 'net.json', [{'seed': seed}, *rows])
    runs.write_csv(options.out / 'net.csv', table)


if __name__ == '__main__':
    main()
