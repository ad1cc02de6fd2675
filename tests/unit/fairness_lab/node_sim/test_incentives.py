# SPDX-License-Identifier: Apache-2.0

"""Attacks change what one user does and nothing else, and only work counts."""

import csv
import types

import numpy as np
import pytest

from fairness_lab.scenario import demand as demand_module
from nova_fairness.model import resources
from tests.fixtures import benchmark

CPU = resources.RESOURCES.index('cpu_time')


@pytest.fixture
def attacks():
    return benchmark.load('policies.incentives_attacks')


@pytest.fixture
def incentives():
    return benchmark.load('policies.incentives')


NAMES = sorted(benchmark.load('policies.incentives_attacks').ATTACKS)


def others(cloud):
    return [vm for vm in cloud.vms if vm.user not in cloud.attackers]


def worked(cloud):
    """CPUs that the attacker's programs want on average."""
    return sum(vm.works * np.mean(vm.phases) for vm in cloud.mine())


@pytest.fixture
def plain(attacks):
    """Two nodes; the attacker has two VMs on the first."""
    mine = [attacks.Vm(0, 0, 4, 3.0), attacks.Vm(0, 0, 4, 1.0)]
    rest = [attacks.Vm(0, 1, 4, 4.0), attacks.Vm(1, 2, 1, 0.5)]
    return attacks.Cloud((4.0, 4.0), 3, (*mine, *rest))


@pytest.mark.parametrize('name', NAMES)
def test_an_attack_leaves_vms_of_others_unchanged(attacks, name):
    honest, attacked = attacks.pair(name, 12, 0)
    assert others(honest) == others(attacked)
    assert honest.cpus == attacked.cpus
    assert honest.parts == attacked.parts
    assert honest != attacked


@pytest.mark.parametrize('name', NAMES)
def test_an_attacker_has_no_more_work_than_before(attacks, name):
    honest, attacked = attacks.pair(name, 12, 0)
    if name.startswith('rest '):
        assert worked(attacked) < worked(honest)
    else:
        assert worked(attacked) == pytest.approx(worked(honest))


@pytest.mark.parametrize('name', NAMES)
def test_no_vm_does_more_than_its_vcpus(attacks, name):
    for cloud in attacks.pair(name, 12, 1):
        for vm in cloud.mine():
            most = vm.works * max(vm.phases) + vm.spins
            assert most <= vm.vcpus + 1e-9


def test_a_drawn_attacker_competes(attacks):
    found = [attacks.drawn(12, number, 3, 2) for number in range(5)]
    assert all(cloud.is_short() for cloud in found)
    assert len({cloud.cpus + cloud.vms for cloud in found}) == 5
    assert found[0] == attacks.drawn(12, 0, 3, 2)


def test_only_nodes_with_own_vms_can_lack_capacity_for_a_user(attacks, plain):
    assert plain.is_short()
    calm = plain.with_mine([attacks.Vm(1, 0, 1, 0.5)])
    assert not calm.is_short()


def test_large_vms_become_small_ones_and_back(attacks, plain):
    large, small = attacks.split(plain)
    assert large == plain
    assert [vm.works for vm in small.mine()] == [0.75] * 4 + [0.25] * 4
    assert {vm.vcpus for vm in small.mine()} == {1}
    assert attacks.merged(plain) == (small, large)


def test_few_of_the_small_vms_do_all_the_work(attacks, plain):
    _, small = attacks.split_uneven(plain)
    assert [vm.works for vm in small.mine()] == [1, 1, 1, 0, 1, 0, 0, 0]


def test_users_of_one_person_share_the_part_of_one(attacks, plain):
    _, attacked = attacks.sybil(2)(plain)
    assert [vm.user for vm in attacked.mine()] == [0, 3]
    assert attacked.attackers == (0, 3)
    made = attacks.scenario(attacked).cloud
    assert made.user_weight.tolist() == [1, 1, 1, 1]
    _, bounded = attacks.sybil(2, 1.0)(plain)
    made = attacks.scenario(bounded).cloud
    assert made.user_weight.tolist() == [0.5, 1, 1, 0.5]


def test_vms_of_the_fullest_node_spread(attacks, plain):
    honest, attacked = attacks.spread(plain)
    assert [vm.node for vm in honest.mine()] == [0, 0]
    assert [vm.node for vm in attacked.mine()] == [0, 1]


def test_attacker_vms_work_in_turns(attacks, plain):
    _, attacked = attacks.alternating(2)(plain)
    assert [vm.phases for vm in attacked.mine()] == [
        (2, 2, 0, 0),
        (0, 0, 2, 2),
    ]


def test_vcpus_are_asked_for_and_burnt(attacks, plain):
    honest, attacked = attacks.oversized_spin(plain)
    assert [vm.vcpus for vm in honest.mine()] == [3, 1]
    assert [(vm.vcpus, vm.spins) for vm in attacked.mine()] == [
        (12, 9),
        (4, 3),
    ]


def test_the_simulator_is_told_phases_and_burnt_time(attacks, plain):
    phased = plain.each(
        lambda vm: attacks.Vm(0, 0, 4, 1.0, spins=0.5, phases=(1.0, 0.0))
    )
    made = attacks.scenario(phased).cloud
    rounds = attacks.ROUNDS
    demand = made.changes.demand[:, CPU].reshape(rounds, -1)
    np.testing.assert_allclose(demand[:2, 0], [1.5, 0.5])
    np.testing.assert_allclose(demand[:, 2], 4.0)
    np.testing.assert_array_equal(made.changes.round[:4], 0)
    steady = attacks.scenario(plain).cloud
    assert len(steady.changes.vm) == len(plain.vms)


def test_each_agent_acts_once_in_an_interval(attacks, plain):
    quarters = attacks.phased(1, 0)(plain)[1]
    silent = attacks.scenario(quarters).cloud.silent
    acts = ~silent[: attacks.QUARTERS]
    assert acts.sum(axis=0).tolist() == [1, 1]
    # Not all at once.
    assert (acts[:, 0] != acts[:, 1]).any()
    assert not attacks.scenario(plain).cloud.silent.any()


def test_loops_and_threads_reach_the_simulator(attacks, plain):
    _, crowded = attacks.many_threads(plain)
    assert crowded.mine()[0].loop is demand_module.CpuLoad.POOL
    made = attacks.scenario(crowded).cloud
    assert made.loops.threads.tolist() == [64, 64, 1, 1]
    _, opened = attacks.open_loop(plain)
    made = attacks.scenario(opened).cloud
    assert made.loops.open.tolist() == [True, True, False, False]


def test_burned_cpu_time_is_no_work(attacks, incentives, plain):
    burning = plain.each(lambda vm: attacks.Vm(0, 0, 4, 1.0, spins=3.0))
    made = attacks.scenario(burning).cloud
    work = incentives.Work(burning, made)
    received = np.zeros((4, len(resources.RESOURCES)))
    received[:, CPU] = np.array([0.5, 2.0, 1.5, 0.5]) * made.speed[0]
    node = np.array([vm.node for vm in burning.vms])
    for number in (0, incentives.SETTLED):
        work.see(
            types.SimpleNamespace(round=number, received=received, node=node)
        )
    # The first round is not settled: it does not count.
    np.testing.assert_allclose(work.result()['users'], [1.5, 1.5, 0.5])


def test_gains_and_losses_are_parts_of_the_earlier_share(incentives):
    honest = incentives.Outcome(np.array([2.0, 1.0, 1.0, 0.0]), False)
    attacked = incentives.Outcome(np.array([3.0, 0.5, 1.0, 0.1, 0.7]), True)
    assert incentives.compared(honest, attacked) == pytest.approx(
        {'gain': 0.5, 'lost': 0.2, 'worst': 0.5, 'at_end': True}
    )


def test_weights_reach_their_ends_where_the_ratio_is_small(
    attacks, incentives
):
    # Here weights end 22.5 apart. In other clouds the ideal gives a heavy
    # user next to nothing on a node, and weights reach any end.
    _, cloud = attacks.oversized(attacks.drawn(12, 22, 3, 2))
    assert incentives.worked(cloud, 'foresight', 20.0).at_end
    assert not incentives.worked(cloud, 'foresight', 1000.0).at_end
    assert not incentives.worked(cloud, 'none', 20.0).at_end


def test_the_ids_of_one_person_count_together(attacks, incentives, plain):
    cloud = attacks.sybil(2)(plain)[1]
    users = incentives.worked(cloud, 'none', 20.0).users
    # Both ask for four of twelve vCPUs of a full node.
    assert users[0] + users[1] == pytest.approx(4.0)
    assert users[0] == pytest.approx(1.5 + 1.0)


def test_gains_are_summed_up(incentives):
    rows = [
        {
            policy: {
                'gain': gain,
                'lost': 0.01,
                'worst': 0.03,
                'at_end': gain > 0,
            }
            for policy in incentives.POLICIES
        }
        for gain in (-0.1, -1e-6, 0.31)
    ]
    row = dict(zip(incentives.HEAD, incentives.summed('x', rows), strict=True))
    assert row['median gain %'] == '0.0'
    assert row['mean gain %'] == '7.0'
    assert row['none: largest gain %'] == '31.0'
    assert row['clouds with more than 2 %'] == '1 of 3'
    assert row['of these with weights at their ends'] == '1'
    assert row['worst other loses %'] == '3.0'


RESTS = {
    'half of an interval in four': (1,) * 14 + (0,) * 2,
    'an interval in four': (1,) * 12 + (0,) * 4,
}


@pytest.mark.repeated
@pytest.mark.parametrize('rest', RESTS)
@pytest.mark.parametrize('number', [0, 6, 7])
def test_idle_phases_bring_no_gain_to_an_attacker(
    attacks, incentives, rest, number
):
    # Once they brought up to a fifth in these clouds.
    cloud = attacks.drawn(12, number, 3, 2)
    honest, attacked = attacks.resting(*RESTS[rest])(cloud)
    before = incentives.worked(honest, 'foresight', 20.0)
    after = incentives.worked(attacked, 'foresight', 20.0)
    assert after.users[0] < before.users[0]


ALLOWED = {
    'two user ids',
    'two user ids, half a quota each',
    'four user ids',
    'spread',
}
"""What the page on incentives says of these is why they bring something."""


SINGLE = {
    'open instead of closed loops',
    'rest an interval in four',
    'rest half of an interval in four',
}
"""What the page says of these is in which few clouds they bring something. All
others bring something only where weights are at their ends."""


def test_recorded_attacks_bring_little_or_are_explained():
    path = benchmark.RESULTS / 'sim' / 'incentives.csv'
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row['attack'] for row in rows] == list(
        benchmark.load('policies.incentives_attacks').ATTACKS
    )
    for row in rows:
        if row['attack'] in ALLOWED:
            continue
        assert float(row['mean gain %']) <= 1.0
        gained, _, clouds = row['clouds with more than 2 %'].split()
        if row['attack'] not in SINGLE:
            assert gained == row['of these with weights at their ends']
        assert 10 * int(gained) <= int(clouds)
