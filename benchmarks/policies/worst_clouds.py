# SPDX-License-Identifier: Apache-2.0
"""Clouds that are hard to divide: known ones, families of them, and a search.

    python -m benchmarks.policies.worst_clouds --out DIR --cases
    python -m benchmarks.policies.worst_clouds --out DIR --families 100 --fresh
    python -m benchmarks.policies.worst_clouds --out DIR --minutes 30 --fresh
    python -m benchmarks.policies.worst_clouds --out D --families 9 --only KIND

``--cases`` simulates each known case: what once made a user lack much of the
ideal. ``--families`` draws clouds around each case, or around one of them
(``--only``). ``--minutes`` climbs from drawn clouds to worse ones: it changes
a VM, a node or a user, and keeps what makes the worst user lack more. Minutes
are CPU time of each process, so that other work on the machine takes none of
them. All are judged as in ``clouds.py``: with the default policy, with
feedback and without agents. Written is ``worst.json``.
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

import numpy as np

from benchmarks.policies import clouds
from benchmarks.policies import runs
from fairness_lab.measures import running
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import values as scenario_module

STOPS = 12
"""Round in which users stop VMs, if they do."""

SMALLEST = 0.02
"""Part of its vCPUs that a VM wants at least."""

Chance = np.random.Generator


@dataclasses.dataclass(frozen=True)
class Vm:
    """A VM of a drawn cloud.

    :ivar wants: CPUs, > 0.
    :ivar stops: whether it wants nothing from round :data:`STOPS` on.
    """

    node: int
    user: int
    vcpus: int
    wants: float
    stops: bool = False


@dataclasses.dataclass(frozen=True)
class ChangeableCloud:
    """A cloud that can be changed.

    :ivar cpus: of each node.
    """

    cpus: tuple[int, ...]
    vms: tuple[Vm, ...]

    def experiment(self, name: str) -> cloud_module.Experiment:
        """Bring it into the form of the simulator."""
        vms = sorted(self.vms, key=lambda vm: vm.user)
        names, user = np.unique([vm.user for vm in vms], return_inverse=True)
        made = clouds.cloud(
            name,
            np.array(self.cpus, dtype=float),
            np.ones(len(self.cpus)),
            np.ones(len(names)),
            np.array([vm.node for vm in vms]),
            user.reshape(-1),
            np.array([vm.vcpus for vm in vms]),
            np.array([vm.wants for vm in vms]),
        )
        changes = _stopped(made.changes, [vm.stops for vm in vms])
        made = dataclasses.replace(made, changes=changes)
        return cloud_module.Experiment(made, scenario_module.AgentSpec())


def _stopped(
    changes: cloud_module.VmChanges, stops: Sequence[bool]
) -> cloud_module.VmChanges:
    rows = np.flatnonzero(stops)
    idle = np.zeros((len(rows), changes.demand.shape[1]))
    return cloud_module.VmChanges(
        np.concatenate([changes.round, np.full(len(rows), STOPS)]),
        np.concatenate([changes.vm, rows]),
        np.concatenate([changes.node, changes.node[rows]]),
        np.concatenate([changes.demand, idle]),
    )


def _group(
    user: int, count: int, vcpus: int, wants: float, node: int = 0
) -> list[Vm]:
    return [Vm(node, user, vcpus, wants)] * count


def _known_clouds() -> dict[str, ChangeableCloud]:
    small = [Vm(node, 0, 1, 0.3, stops=node > 0) for node in range(10)]
    full = [
        Vm(node, 1 + 30 * node + user, 4, 4.0)
        for node in range(10)
        for user in range(30)
    ]
    wide = [Vm(0, 4 + user, 32, 253.4 / 15) for user in range(15)]
    lone = [Vm(0, user, 1, 1.0) for user in range(4)]
    found = {
        'unlike-vms': (
            [4],
            [
                *_group(0, 2, 1, 1.0),
                *_group(0, 30, 1, 0.05),
                *_group(1, 2, 4, 4.0),
            ],
        ),
        'one-waits': ([16], [*_group(0, 1, 8, 8.0), *_group(1, 40, 1, 0.3)]),
        'user-stops': ([64] * 10, [*small, *full]),
        'small-on-large': ([256], [*lone, *wide]),
        'wide-and-small': (
            [16],
            [*_group(0, 20, 16, 16.0), *_group(1, 5, 1, 1.0)],
        ),
        'large-vms': (
            [512],
            [*_group(0, 1, 512, 512.0), *_group(1, 30, 64, 64.0)],
        ),
    }
    return {
        name: ChangeableCloud(tuple(cpus), tuple(vms))
        for name, (cpus, vms) in found.items()
    }


CASES: Mapping[str, ChangeableCloud] = _known_clouds()
"""Clouds that a search found; the worst user of each lacked 8 to 73 %."""


def _family_of_few_busy_vms(chance: Chance) -> ChangeableCloud:
    """Users with many VMs; few VMs are busy."""
    cpus = int(chance.choice([1, 4, 8, 16, 64]))
    nodes = int(chance.integers(1, 5))
    vms = []
    for user in range(int(chance.integers(2, 6))):
        busy = chance.uniform(0.05, 0.2)
        for node in range(nodes):
            for _ in range(int(chance.integers(9, 201 if nodes < 2 else 41))):
                vcpus = min(int(chance.choice([1, 2, 4])), cpus)
                is_busy = chance.random() < busy
                part = 1.0 if is_busy else chance.uniform(0.01, 0.1)
                vms.append(Vm(node, user, vcpus, vcpus * part))
    return ChangeableCloud((cpus,) * nodes, tuple(vms))


def _family_of_one_large_vm(chance: Chance) -> ChangeableCloud:
    """One large VM among many that have what they want."""
    cpus = int(chance.choice([2, 4, 8, 16, 64, 256]))
    width = int(chance.integers(1, cpus + 1))
    count = int(chance.integers(4, 201))
    wants = min(1.0, cpus * chance.uniform(0.5, 1.0) / count)
    others = int(chance.integers(1, 4))
    vms = [Vm(0, 1 + n % others, 1, wants) for n in range(count)]
    return ChangeableCloud((cpus,), (Vm(0, 0, width, float(width)), *vms))


def _family_of_large_nodes(chance: Chance) -> ChangeableCloud:
    """Large nodes, nearly full, and users with next to nothing there."""
    cpus = int(chance.choice([64, 128, 256]))
    nodes = int(chance.integers(1, 6))
    vms, stops = [], chance.random() < 0.5
    small, large = int(chance.integers(1, 9)), int(chance.integers(4, 31))
    for node in range(nodes):
        whole = cpus * chance.uniform(0.97, 1.3)
        for user in range(large):
            wants = whole / large
            vcpus = int(np.ceil(wants * chance.uniform(1.0, 2.0)))
            vms.append(Vm(node, small + node * large + user, vcpus, wants))
        for user in range(small):
            wants = float(chance.uniform(0.2, 1.0))
            vms.append(Vm(node, user, 1, wants, stops=stops and node > 0))
    return ChangeableCloud((cpus,) * nodes, tuple(vms))


def _family_of_wide_vms(chance: Chance) -> ChangeableCloud:
    """VMs as wide as their node beside small ones."""
    cpus = int(chance.choice([2, 4, 8, 16, 64]))
    nodes = int(chance.integers(1, 4))
    vms = []
    for node in range(nodes):
        count = int(chance.integers(1, 31))
        vms += _group(0, count, cpus, float(cpus), node)
        for user in range(1, int(chance.integers(2, 5))):
            for _ in range(int(chance.integers(1, 11))):
                wants = float(chance.uniform(0.3, 1.0))
                vms.append(Vm(node, user, 1, wants))
    return ChangeableCloud((cpus,) * nodes, tuple(vms))


def _family_of_stopped_vms(chance: Chance) -> ChangeableCloud:
    """Users who stop most of their VMs."""
    cpus = int(chance.choice([1, 2, 4, 8, 64]))
    nodes = int(chance.integers(2, 11))
    vms = []
    for user in range(int(chance.integers(2, 3 * nodes + 3))):
        stops = chance.random() < 0.4
        degree = int(chance.integers(1, nodes + 1))
        for node in chance.choice(nodes, degree, replace=False):
            for _ in range(int(chance.integers(1, 4))):
                vcpus = min(int(chance.choice([1, 2, 4])), cpus)
                wants = vcpus * float(chance.uniform(0.2, 1.0))
                gone = stops and chance.random() < 0.8
                vms.append(Vm(int(node), user, vcpus, wants, stops=gone))
    return ChangeableCloud((cpus,) * nodes, tuple(vms))


def _family_of_giant_vms(chance: Chance) -> ChangeableCloud:
    """VMs of more vCPUs than the kernel's range of weights is made for."""
    cpus = int(chance.choice([256, 384, 512]))
    nodes = int(chance.integers(1, 4))
    vms = []
    for node in range(nodes):
        for user in range(int(chance.integers(2, 7))):
            kind = int(chance.integers(3))
            if kind == 0:
                count = int(chance.integers(1, 4))
                widths = chance.integers(100, cpus + 1, count)
            elif kind == 1:
                count = int(chance.integers(2, 20))
                widths = 2 ** chance.integers(0, 9, count)
            else:
                widths = np.ones(int(chance.integers(5, 61)), dtype=int)
            vms += [
                Vm(node, user, int(vcpus), vcpus * chance.uniform(0.3, 1.0))
                for vcpus in widths
            ]
    return ChangeableCloud((cpus,) * nodes, tuple(vms))


FAMILIES: Mapping[str, Callable[[Chance], ChangeableCloud]] = {
    'unlike-vms': _family_of_few_busy_vms,
    'one-waits': _family_of_one_large_vm,
    'small-on-large': _family_of_large_nodes,
    'wide-and-small': _family_of_wide_vms,
    'user-stops': _family_of_stopped_vms,
    'large-vms': _family_of_giant_vms,
}


def lacks_by_policy(
    drawn: ChangeableCloud,
    name: str,
    policies: Sequence[str] = clouds.POLICIES,
) -> dict[str, float]:
    """Lack of the worst user below the ideal with each policy, 0..1."""
    scenario = drawn.experiment(name)
    return {
        policy: max(
            value or 0.0
            for value in runs.simulate(
                scenario,
                running.RunOptions(metric=clouds.METRIC, policy=policy),
            )['worst_bounded'][-clouds.SETTLED :]
        )
        for policy in policies
    }


def _row_of_family(name: str, seed: int, number: int) -> dict[str, Any]:
    chance = np.random.default_rng([seed, number, *name.encode()])
    drawn = FAMILIES[name](chance)
    return {
        'kind': name,
        'number': number,
        'lacks': lacks_by_policy(drawn, name),
    }


def change_at_random(
    drawn: ChangeableCloud, chance: Chance
) -> ChangeableCloud:
    """Change a VM, copy or remove some, or give a node another size."""
    vms, what = list(drawn.vms), int(chance.integers(5))
    at = int(chance.integers(len(vms)))
    vm = vms[at]
    most = drawn.cpus[vm.node]
    if what == 0:
        part = float(chance.uniform(SMALLEST, 1.0))
        vms[at] = dataclasses.replace(vm, wants=part * vm.vcpus)
    elif what == 1:
        vcpus = int(chance.integers(1, most + 1))
        part = vm.wants / vm.vcpus
        vms[at] = dataclasses.replace(vm, vcpus=vcpus, wants=part * vcpus)
    elif what == 2:
        vms += [vm] * int(chance.integers(1, 9))
    elif what == 3 and len(vms) > 2:
        del vms[at]
    else:
        users = max(vm.user for vm in vms)
        other = int(chance.integers(users + 2))
        vms[at] = dataclasses.replace(vm, user=other)
    return ChangeableCloud(drawn.cpus, tuple(vms))


MOST_VMS = 400
"""Of a cloud that is climbed from."""

PATIENCE = 25
"""Changes in a row that make nothing worse, after which a climb ends."""


def search_worst_clouds(seed: int, minutes: float) -> dict[str, Any]:
    """Climb from one drawn cloud after the other until the time is over.

    An interrupt (SIGINT) ends it early, and keeps the climbs that are done.

    :param minutes: of CPU time of this process.
    :returns: the worst, with what is lacked with each policy, and every
        cloud that a climb ended at in which more than
        :data:`clouds.WITHIN` is lacked, worst first.
    """
    chance = np.random.default_rng(seed)
    began_s = time.process_time()
    until_s = began_s + 60 * minutes
    tops, tries = [], 0
    with contextlib.suppress(KeyboardInterrupt):
        while time.process_time() < until_s:
            name = str(chance.choice(list(FAMILIES)))
            top, tried = _climb_from_one_cloud(name, chance, until_s)
            tops.append(top)
            tries += tried
            print(name, top['lacks'], flush=True)
    spent_s = time.process_time() - began_s
    tops.sort(key=lambda top: -top['lacks'])
    worst = tops[0]['cloud']
    return {
        'kind': 'search',
        'seed': seed,
        'cpu_minutes': spent_s / 60,
        'climbs': len(tops),
        'tries': tries,
        'lacks': lacks_by_policy(worst, 'search'),
        'cloud': dataclasses.asdict(worst),
        'above_5_%': [
            {**top, 'cloud': dataclasses.asdict(top['cloud'])}
            for top in tops
            if top['lacks'] > clouds.WITHIN
        ],
    }


def _climb_from_one_cloud(
    name: str, chance: Chance, until_s: float
) -> tuple[dict[str, Any], int]:
    """Climb from one cloud of a family until nothing is worse.

    :param until_s: CPU time of this process at which it ends, seconds.
    :returns: where the climb ended, and how many changes were tried.
    """
    here = FAMILIES[name](chance)
    lacks, idle, tries = (
        lacks_by_policy(here, name, ['foresight'])['foresight'],
        0,
        0,
    )
    while idle < PATIENCE and time.process_time() < until_s:
        there = change_at_random(here, chance)
        if len(there.vms) > MOST_VMS:
            break
        found = lacks_by_policy(there, name, ['foresight'])['foresight']
        tries, idle = tries + 1, idle + 1
        if found > lacks:
            here, lacks, idle = there, found, 0
    return {'family': name, 'lacks': lacks, 'cloud': here}, tries


def _summed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sum up the rows of a family."""
    lacks = {
        policy: np.array([row['lacks'][policy] for row in rows])
        for policy in clouds.POLICIES
    }
    mine = lacks['foresight']
    return {
        'clouds': len(rows),
        'within_5_%': round(float((mine <= clouds.WITHIN).mean()), 4),
        'within_10_%': round(float((mine <= clouds.NEAR).mean()), 4),
        'most': {each: float(lacks[each].max()) for each in lacks},
        'worse_than': {
            other: round(float((mine > lacks[other] + clouds.WORSE).mean()), 4)
            for other in ('none', 'feedback')
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--cases', action='store_true')
    parser.add_argument(
        '--families', type=int, default=0, help='clouds of each family'
    )
    parser.add_argument('--only', choices=sorted(FAMILIES))
    parser.add_argument(
        '--minutes', type=float, default=0.0, help='CPU minutes of the search'
    )
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--fresh', action='store_true', help='use a new seed')
    parser.add_argument('--processes', type=int, default=2)
    options = parser.parse_args()
    seed = secrets.randbelow(2**31) if options.fresh else options.seed
    print(f'seed {seed}')
    told: dict[str, Any] = {'seed': seed}
    with concurrent.futures.ProcessPoolExecutor(options.processes) as pool:
        if options.cases:
            found = pool.map(lacks_by_policy, CASES.values(), CASES)
            told['cases'] = dict(zip(CASES, found, strict=True))
        count = options.families
        families = [options.only] if options.only else FAMILIES
        for name in families if count else ():
            rows = pool.map(
                _row_of_family, [name] * count, [seed] * count, range(count)
            )
            told.setdefault('families', {})[name] = _summed(list(rows))
            print(name, told['families'][name], flush=True)
        if options.minutes:
            seeds = range(seed, seed + options.processes)
            minutes = [options.minutes] * options.processes
            told['search'] = list(
                pool.map(search_worst_clouds, seeds, minutes)
            )
    options.out.mkdir(parents=True, exist_ok=True)
    runs.write(options.out / 'worst.json', [told])


if __name__ == '__main__':
    main()
