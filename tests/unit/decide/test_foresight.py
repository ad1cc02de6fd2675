# SPDX-License-Identifier: Apache-2.0

"""Where foresight ends, with metrics that weigh users or what they do."""

import dataclasses

import numpy as np
import pytest

from nova_fairness.decide import foresight as decide_foresight
from nova_fairness.measure import foresight as measure_foresight
from nova_fairness.measure import quota
from nova_fairness.measure.metrics import asset
from nova_fairness.measure.metrics import dominant_share
from nova_fairness.measure.metrics import greediness
from nova_fairness.measure.metrics import uniform
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import resources
from nova_fairness.shares import maxmin
from nova_fairness.shares import weighted

R = resources.RESOURCES
TIME = decide_foresight.CPU_TIME
RATIO = 20.0
REACH = np.log(RATIO)
ONE = 10.0
"""What one CPU does in an interval."""


def make(metric, wanted, cpus, shares=None):
    """wanted: CPUs by (node, user); one VM each, of vCPUs that want all."""
    pairs = sorted(wanted)
    node, user = (np.array(side) for side in zip(*pairs, strict=True))
    asked = np.array([wanted[pair] for pair in pairs], dtype=float)
    amounts, supply = np.zeros((len(pairs), len(R))), []
    amounts[:, TIME] = asked * ONE
    supply = np.array([R.vector(cpu_time=n * ONE, memory=1e9) for n in cpus])
    here = np.bincount(node, minlength=len(cpus))
    owned = (supply / np.maximum(here, 1)[:, np.newaxis])[node]
    used = amounts.copy()
    used[:, TIME] = np.minimum(amounts[:, TIME], owned[:, TIME])
    whole = supply.sum(axis=0)
    users = int(user.max()) + 1
    quotas = quota.divide_by_weights(
        whole, np.ones(users) if shares is None else np.array(shares)
    )
    told = measure_foresight.Cells(node, user, owned, used, amounts)
    weighing = measure_foresight.HeavinessProbe(metric, told, quotas, whole)
    return foresight_model.CpuKnowledge(
        node=node,
        user=user,
        wanted=amounts,
        used=used,
        supply=supply,
        one_cpu=np.full(len(cpus), ONE),
        demand=foresight_model.CpuDemand(
            np.arange(len(pairs)),
            amounts[:, TIME],
            asked,
            np.zeros(len(pairs), bool),
        ),
        weigh=weighing,
        weigh_users=weighing.of_users,
        metric=type(metric).__name__,
        quota=quotas,
    )


def divided_cpu_time(known, end):
    """Divide each node as a kernel does with these weights, (n,)."""
    demand = known.demand
    rate = demand.vcpus * np.exp(end.log[demand.cell])
    node = known.node[demand.cell]
    got = np.zeros(len(rate))
    for place, whole in enumerate(known.supply[:, TIME]):
        here = node == place
        low, high = 0.0, 1e6
        for _ in range(200):
            level = (low + high) / 2
            got[here] = np.minimum(level * rate[here], demand.wanted[here])
            low, high = (
                (level, high) if got[here].sum() < whole else (low, level)
            )
    return np.bincount(demand.cell, got, len(known.node))


def heaviness_of(known, got):
    used = known.wanted.copy()
    used[:, TIME] = got
    return known.weigh(used)


CLOUD = {
    (0, 0): 4,
    (0, 1): 4,
    (1, 1): 2,
    (1, 2): 3,
    (2, 0): 0.5,
    (2, 2): 4,
    (2, 3): 1,
}
CPUS = [2, 4, 1]
METRICS = {
    'dominant share': dominant_share.DominantShareMetric(),
    'asset': asset.AssetFairnessMetric(),
    'greediness': greediness.GreedinessMetric(),
}


@pytest.mark.parametrize('metric', METRICS.values(), ids=METRICS)
def test_competing_users_are_equally_heavy(metric):
    known = make(metric, CLOUD, CPUS)
    end = decide_foresight.search_division(known, RATIO).end
    assert end.short.all()
    assert end.sharpness == maxmin.SHARPEST
    got = divided_cpu_time(known, end)
    heavy = np.arcsinh(heaviness_of(known, got) / weighted.LIGHT)
    waits = got < known.wanted[:, TIME] * (1 - 1e-6)
    for node in range(len(CPUS)):
        here = known.node == node
        lowest = here & (end.log < end.log[here].max() - REACH + 1e-6)
        free = here & waits & ~lowest
        assert np.ptp(heavy[free]) < 0.02
        assert (heavy[lowest] > heavy[free].max() - 0.02).all()


@pytest.mark.parametrize('name', ['dominant share', 'asset'])
def test_weighing_cells_ends_where_weighing_users_ends(name):
    known = make(METRICS[name], CLOUD, CPUS)
    assert known.weigh_users is not None
    of_cells = dataclasses.replace(known, weigh_users=None)
    one, other = (
        decide_foresight.search_division(item, RATIO).end
        for item in (known, of_cells)
    )
    assert divided_cpu_time(known, one) == pytest.approx(
        divided_cpu_time(known, other), rel=0.02
    )


def test_greediness_depends_on_vms_beside_each_other():
    assert make(METRICS['greediness'], CLOUD, CPUS).weigh_users is None


def test_a_user_with_twice_the_quota_gets_twice_as_much():
    known = make(
        METRICS['dominant share'], {(0, 0): 4, (0, 1): 4}, [3], [2, 1]
    )
    got = divided_cpu_time(
        known, decide_foresight.search_division(known, RATIO).end
    )
    assert got == pytest.approx([2 * ONE, ONE], rel=0.01)


def test_weights_are_neutral_if_no_weight_changes_heaviness():
    end = decide_foresight.search_division(
        make(uniform.UniformMetric(), CLOUD, CPUS), RATIO
    ).end
    assert end.log == pytest.approx(np.zeros(len(CLOUD)), abs=1e-9)


@pytest.mark.parametrize('metric', METRICS.values(), ids=METRICS)
def test_weights_of_a_node_are_around_neutral(metric):
    known = make(metric, CLOUD, CPUS)
    log = decide_foresight.search_division(known, RATIO).end.log
    for node in range(len(CPUS)):
        own = log[known.node == node]
        assert own.max() == pytest.approx(-own.min())
        assert np.ptp(own) <= REACH + 1e-9


@pytest.mark.parametrize('metric', METRICS.values(), ids=METRICS)
@pytest.mark.parametrize('steps', [1, 4])
def test_a_search_split_into_several_calls_has_the_same_result(metric, steps):
    known = make(metric, CLOUD, CPUS)
    found = decide_foresight.search_division(known, RATIO, None, steps)
    assert found.end.sharpness > maxmin.SHARPEST
    assert np.isfinite(found.end.log).all()
    calls = 1
    while not found.is_over and calls < 100:
        found = decide_foresight.search_division(known, RATIO, found, steps)
        calls += 1
    assert found.is_over
    whole = decide_foresight.search_division(known, RATIO).end
    assert found.end.sharpness == whole.sharpness
    assert found.end.log == pytest.approx(whole.log, abs=0.03)


@pytest.mark.parametrize('metric', ['dominant share', 'asset'])
@pytest.mark.parametrize('seed', range(3))
def test_a_search_ends_although_users_come_and_go_at_each_call(metric, seed):
    metric, chance = METRICS[metric], np.random.default_rng(seed)
    nodes, users = 80, 200
    pairs = {
        (int(node), user): float(chance.uniform(0.5, 4.0))
        for user in range(users)
        for node in chance.choice(nodes, 3, replace=False)
    }
    found, useful = None, []
    for _ in range(40):
        gone = list(pairs)[int(chance.integers(len(pairs)))]
        comes = int(chance.integers(nodes)), int(chance.integers(users))
        if chance.random() < 0.5:
            pairs[comes] = float(chance.uniform(0.5, 4.0))
        elif sum(user == gone[1] for _, user in pairs) > 1:
            # Of each user one stays.
            del pairs[gone]
        known = make(metric, pairs, [4] * nodes)
        found = decide_foresight.search_division(known, RATIO, found, 3)
        assert np.isfinite(found.end.log).all()
        useful.append(found.is_useful)
    assert np.mean(useful[5:]) >= 0.9
    while not found.is_over:
        found = decide_foresight.search_division(known, RATIO, found, 10)
    got = divided_cpu_time(known, found.end)
    best = divided_cpu_time(
        known, decide_foresight.search_division(known, RATIO).end
    )
    assert np.abs(got - best).max() <= 0.1 * ONE


@pytest.mark.parametrize('metric', ['dominant share', 'asset'])
def test_a_coming_or_going_vm_is_foreseen_from_the_last_search(metric):
    metric, chance = METRICS[metric], np.random.default_rng(3)
    pairs = {
        (int(node), user): float(chance.uniform(0.5, 4.0))
        for user in range(30)
        for node in chance.choice(12, 3, replace=False)
    }
    cpus = [4] * 12
    before = decide_foresight.search_division(
        make(metric, pairs, cpus), RATIO, None, maxmin.MOST_STEPS
    )
    gone, *_ = pairs
    del pairs[gone]
    pairs[0, 30] = 2.0
    known = make(metric, pairs, cpus)
    found = decide_foresight.search_division(known, RATIO, before, 6)
    assert found.is_useful
    whole = decide_foresight.search_division(known, RATIO).end
    got, best = (
        divided_cpu_time(known, found.end),
        divided_cpu_time(known, whole),
    )
    assert got == pytest.approx(best, abs=0.03 * ONE)


@pytest.mark.repeated
@pytest.mark.parametrize('metric', ['dominant share', 'asset'])
@pytest.mark.parametrize('seed', [2, 10, 13, 20, 38])
@pytest.mark.parametrize('steps', [10, decide_foresight.STEPS])
def test_a_search_that_finds_no_way_from_where_it_was_begins_again(
    metric, seed, steps
):
    """Half of the nodes were not known before."""
    metric, chance = METRICS[metric], np.random.default_rng(seed)
    pairs = {
        (int(node), user): float(chance.uniform(0.5, 8.0))
        for user in range(9)
        for node in chance.choice(6, int(chance.integers(1, 4)), replace=False)
    }
    some = {(0, user): 0.01 for user in range(9)}
    some |= {pair: wanted for pair, wanted in pairs.items() if pair[0] < 3}
    before = decide_foresight.search_division(
        make(metric, some, [4] * 6), RATIO, None, decide_foresight.STEPS
    )
    known = make(metric, pairs, [4] * 6)
    found = decide_foresight.search_division(known, RATIO, before, steps)
    for _ in range(40):
        found = decide_foresight.search_division(known, RATIO, found, steps)
    assert found.is_over
    assert found.end.sharpness == maxmin.SHARPEST
    best = divided_cpu_time(
        known, decide_foresight.search_division(known, RATIO).end
    )
    assert divided_cpu_time(known, found.end) == pytest.approx(
        best, abs=0.05 * ONE
    )


def random_wants(seed, nodes=12, users=30):
    chance = np.random.default_rng(seed)
    return {
        (int(node), user): float(chance.uniform(0.5, 4.0))
        for user in range(users)
        for node in chance.choice(nodes, 3, replace=False)
    }


def searched_to_the_end(known, before):
    found = decide_foresight.search_division(known, RATIO, before)
    while not found.is_over:
        found = decide_foresight.search_division(known, RATIO, found)
    return found


def steps_after_a_start_and_a_deletion(metric, seed):
    pairs = random_wants(seed, nodes=80, users=200)
    cpus = [4] * 80
    before = decide_foresight.search_division(make(metric, pairs, cpus), RATIO)
    gone, *_, last = pairs
    del pairs[gone]
    pairs[seed, last[1]] = 2.0
    known = make(metric, pairs, cpus)
    found = searched_to_the_end(known, before)
    assert found.end.sharpness == maxmin.SHARPEST
    best = divided_cpu_time(known, searched_to_the_end(known, None).end)
    assert divided_cpu_time(known, found.end) == pytest.approx(
        best, abs=0.01 * ONE
    )
    return found.at.made


@pytest.mark.parametrize('metric', ['dominant share', 'asset'])
def test_where_few_come_and_go_a_search_goes_on_from_where_it_stood(
    metric, monkeypatch
):
    metric, seeds = METRICS[metric], range(6)
    made = [steps_after_a_start_and_a_deletion(metric, n) for n in seeds]
    monkeypatch.setattr(decide_foresight, 'FEW', -1.0)
    back = [steps_after_a_start_and_a_deletion(metric, n) for n in seeds]
    assert np.median(made) <= 0.6 * np.median(back)


@pytest.mark.parametrize(
    ('gone', 'come', 'stays'),
    [(5, 0, True), (7, 0, False), (0, 1, False)],
    ids=['few', 'many', 'a new user'],
)
def test_a_search_goes_back_some_stages_after_much(gone, come, stays):
    metric, pairs = (
        METRICS['dominant share'],
        random_wants(3, nodes=80, users=200),
    )
    cpus = [4] * 80
    before = decide_foresight.search_division(make(metric, pairs, cpus), RATIO)
    for pair in list(pairs)[:gone]:
        del pairs[pair]
    pairs |= {(0, 200 + number): 2.0 for number in range(come)}
    begin = decide_foresight._continued_state(
        before, make(metric, pairs, cpus)
    )
    assert (begin.stage == before.at.stage) is stays


@pytest.mark.parametrize('seed', range(12))
def test_a_search_continues_if_only_users_of_idle_nodes_changed(seed):
    chance, search = np.random.default_rng(seed), None
    for _ in range(4):
        wanted = {
            (0, 0): chance.uniform(0.5, 3),
            (0, 1): chance.uniform(0.5, 3),
            (1, 2): 10 ** chance.uniform(-9, 0),
            (1, 1): 0.1,
        }
        known = make(METRICS['dominant share'], wanted, [1, 4])
        steps = int(chance.integers(1, 4))
        search = decide_foresight.search_division(known, RATIO, search, steps)
        assert np.isfinite(search.end.log).all()


@pytest.mark.parametrize('metric', ['dominant share', 'asset'])
@pytest.mark.parametrize('weighs', ['users', 'cells'])
def test_a_staying_user_is_known_by_name_when_a_node_goes(metric, weighs):
    metric, pairs = METRICS[metric], random_wants(3)
    other = {} if weighs == 'users' else {'weigh_users': None}
    hosts = [f'node{number:02d}' for number in range(12)]
    users = [f'user{number:02d}' for number in range(30)]
    all_of_them = dataclasses.replace(
        make(metric, pairs, [4] * 12), hosts=hosts, users=users, **other
    )
    before = decide_foresight.search_division(
        all_of_them, RATIO, None, decide_foresight.STEPS
    )
    # All others have other numbers now.
    rest = {(n - 1, user): cpus for (n, user), cpus in pairs.items() if n}
    known = dataclasses.replace(
        make(metric, rest, [4] * 11), hosts=hosts[1:], users=users, **other
    )
    found = decide_foresight.search_division(known, RATIO, before, 6)
    cold = decide_foresight.search_division(known, RATIO, None, 6)
    assert found.end.sharpness < cold.end.sharpness
    begin = decide_foresight._continued_state(before, known)
    assert begin.level == pytest.approx(before.at.level[1:])


def test_a_search_of_cells_is_no_begin_for_one_of_users():
    metric, pairs = METRICS['dominant share'], random_wants(3)
    of_cells = dataclasses.replace(
        make(metric, pairs, [4] * 12), weigh_users=None, metric='another'
    )
    before = decide_foresight.search_division(of_cells, RATIO, None, 20)
    known = make(metric, pairs, [4] * 12)
    found, cold = (
        decide_foresight.search_division(known, RATIO, begin, 20)
        for begin in (before, None)
    )
    assert np.array_equal(found.end.log, cold.end.log)


@pytest.mark.parametrize('cpus', [1, 16, 256])
def test_a_node_that_lacks_a_part_of_one_vcpu_is_short(cpus):
    wanted = {(0, 0): cpus - 1.0, (0, 1): 1.2}
    known = make(dominant_share.DominantShareMetric(), wanted, [cpus])
    assert decide_foresight.search_division(known, RATIO).end.short.all()


def test_a_demand_is_unchanged_as_its_user_sees_it():
    wanted = {(0, 0): 200.0, (0, 1): 0.3, (1, 1): 0.3}
    metric = dominant_share.DominantShareMetric()
    known = make(metric, wanted, [256, 256])
    assert known.is_like(make(metric, {**wanted, (0, 0): 200.9}, [256, 256]))
    stopped = make(metric, {**wanted, (1, 1): 0.25}, [256, 256])
    assert not known.is_like(stopped)


def test_a_node_with_plenty_counts_but_is_not_short():
    known = make(
        METRICS['dominant share'],
        {(0, 0): 1, (1, 0): 4, (1, 1): 4},
        [4, 1],
    )
    end = decide_foresight.search_division(known, RATIO).end
    assert end.short.tolist() == [False, True]
    # User 0 has a whole CPU there, and so the least weight here.
    assert end.log.tolist() == pytest.approx([0, -REACH / 2, REACH / 2])
