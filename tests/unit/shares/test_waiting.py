# SPDX-License-Identifier: Apache-2.0

"""Who waits for a CPU, by a test against the noise of the node."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from nova_fairness.shares import waiting

NAN = float('nan')


def interval(*vms, cpus=1.0, busy=1.0, most=1.0, node=None):
    """vms: (CPUs used, part of the interval that it waited)."""
    count = len(vms)
    nodes = 1 if node is None else max(node) + 1
    return waiting.Interval(
        node=np.zeros(count, int) if node is None else np.array(node),
        used=np.array([used for used, _ in vms], dtype=float),
        stall=np.array([stall for _, stall in vms], dtype=float),
        most=np.full(count, most),
        ready=np.ones(count, dtype=bool),
        cpus=np.full(nodes, cpus),
        busy=np.full(nodes, busy),
    )


def judged(intervals, past=None):
    """What was found of each interval, and what is remembered."""
    found = []
    for now in intervals:
        past = past or waiting.WaitHistory.unknown(len(now.used))
        one, past = waiting.judge_waits(now, past)
        found.append((one.vms.tolist(), bool(one.nodes[0])))
    return found, past


def tiny(many=60, few=16, wanted=0.1, cpus=4.0):
    """Closed loops on a node that has too little for all of them."""
    part = cpus / (wanted * (many + few))
    vm = (wanted * part, 1 - part)
    return interval(*[vm] * (many + few), cpus=cpus)


def test_many_vms_that_want_little_count_from_the_second_interval_on():
    now = tiny()
    assert (now.used + now.stall < waiting.RUNNABLE).all()
    found, _ = judged([now] * 40)
    assert found[0] == ([False] * 76, False)
    assert found[1:] == [([True] * 76, True)] * 39


def test_a_vm_that_always_has_work_counts_at_once():
    found, _ = judged([interval((0.5, 0.5), (0.5, 0.5))])
    assert found == [([True, True], True)]


def test_a_busy_moment_of_the_host_makes_no_vm_wait():
    quiet = interval((0.2, 0.01), (0.3, 0.02), busy=0.5)
    moment = interval((0.1, 0.4), (0.2, 0.3), busy=1.0)
    found, _ = judged([quiet, quiet, moment, quiet, moment, quiet])
    assert found == [([False, False], False)] * 6


@pytest.mark.parametrize('idle', [0.01, 0.05, 0.08])
def test_idle_guests_of_a_busy_host_wait_for_nothing(idle):
    now = interval((0.96, 0.03), *[(0.01, idle)] * 3)
    found, past = judged([now] * 100)
    assert found == [([False] * 4, False)] * 100
    # What they wait when nobody lacks anything is known by then.
    np.testing.assert_allclose(past.mean, [0.03, idle, idle, idle])


@pytest.mark.parametrize('idle', [0.15, 0.3])
def test_idle_guests_that_wait_long_do_not_make_a_node_short(idle):
    now = interval((0.96, 0.03), *[(0.005, idle)] * 2)
    found, _ = judged([now] * 100)
    assert not any(short for _, short in found)
    assert found[0] == found[-1] == ([False] * 3, False)


def test_waits_of_idle_guests_are_no_lack_when_others_begin_to_compete():
    lone = interval((0.96, 0.03), (0.005, 0.2), (0.0, 0.0))
    pair = interval((0.49, 0.5), (0.005, 0.2), (0.49, 0.5))
    found, _ = judged([*[lone] * 50, *[pair] * 3])
    assert found[-3:] == [([True, False, True], True)] * 3


def test_a_quiet_node_tells_a_small_lack_from_noise():
    full = interval((0.5, 0.0), (0.48, 0.0), busy=0.98)
    # Both want 4 % more than there is.
    short = interval((0.5, 0.05), (0.5, 0.05))
    assert judged([short] * 9)[0] == [([False, False], False)] * 9
    found, _ = judged([*[full] * 60, short, short])
    assert found[-1] == ([True, True], True)


def test_a_waiting_vm_goes_on_until_next_to_nothing_is_lacking():
    stalls = [0.5, 0.5, 0.09, 0.05, 0.03, 0.015, 0.05]
    found, _ = judged(
        interval((0.2 * (1 - stall), stall), (0.4, 0.6), (0.4, 0.6))
        for stall in stalls
    )
    waits = [vms[0] for vms, _ in found]
    assert waits == [False, True, True, True, True, False, True]


def test_a_small_lack_makes_no_node_short_but_is_made_good_to_its_end():
    # One VM of a busy node lacks 0.7 % of its CPUs.
    small = interval((0.82, 0.07), (7.18, 0.0), cpus=8, most=8.0)
    assert not any(short for _, short in judged([small] * 9)[0])
    large = interval((0.6, 0.4), (7.2, 0.0), cpus=8, most=8.0)
    found, _ = judged([large, *[small] * 9])
    assert found[1:] == [([True, False], True)] * 9


@pytest.mark.parametrize('cpus', [1.0, 16.0, 256.0])
def test_one_vcpu_that_lacks_something_makes_a_node_of_any_size_short(cpus):
    full = [(1.0, 0.0)] * (int(cpus) - 1)
    found, _ = judged([interval(*full, (0.65, 0.35), cpus=cpus)] * 2)
    assert found[-1] == ([False] * len(full) + [True], True)


def test_a_node_with_idle_cpus_is_not_short_despite_waits():
    # A quota, or a CPU to which VMs are pinned.
    found, _ = judged([interval((0.5, 0.5), (0.5, 0.5), cpus=4, busy=0.3)])
    assert found == [([True, True], False)]


def test_a_lack_below_the_idle_capacity_makes_no_node_short():
    found, _ = judged([interval((0.5, 0.2), (0.37, 0.4), busy=0.87)])
    assert found == [([True, True], True)]
    found, _ = judged([interval((0.5, 0.2), (3.0, 0.0), cpus=4, busy=0.87)])
    assert found == [([True, False], False)]


def test_noise_is_forgotten_while_it_is_not_measured():
    quota = interval((0.2, 0.6), (3.2, 0.0), cpus=4, busy=0.87)
    _, past = judged([quota] * 100)
    begin, _ = past.bounds(quota.node, 1, quota.used > 1)
    assert begin[0] > 0.6
    _, past = judged([interval((0.2, 0.6), (3.8, 0.0), cpus=4)] * 200, past)
    begin, _ = past.bounds(quota.node, 1, quota.used > 1)
    assert begin[0] < 0.2


@pytest.mark.parametrize('many', [1, 5, 20])
@pytest.mark.parametrize('stalls', [(0.0, 0.5), (0.099, 0.099)])
def test_waits_of_some_vms_hide_no_lack_of_others(many, stalls):
    # Idle VMs that wake up all the time, and one that has all it wants.
    now = [
        interval((0.9, 0.02), *[(0.005, stall)] * many, busy=0.95)
        for stall in stalls
    ]
    found, past = judged(now * 50)
    assert not any(short for _, short in found)
    rows = np.append(np.arange(many + 1), -1)
    node, busy = np.zeros(many + 2, int), np.ones(many + 2, bool)
    begin, _ = past.picked(rows).bounds(node, 1, busy)
    usual = waiting.NOISE + waiting.SIGNIFICANT * waiting.DEVIATION_BUSY
    assert max(begin[0], begin[-1]) <= usual
    # What they wait themselves is known of them.
    assert begin[1] > 2 * begin[0]


def test_nodes_are_judged_apart():
    both = interval(
        (0.5, 0.5), (0.5, 0.5), (0.5, 0.0), (0.4, 0.04), node=[0, 0, 1, 1]
    )
    found, _ = waiting.judge_waits(both, waiting.WaitHistory.unknown(4))
    assert found.vms.tolist() == [True, True, False, False]
    assert found.nodes.tolist() == [True, False]


def test_a_new_vm_has_no_known_wait():
    _, past = judged([tiny(2, 1, 0.5, 1.0)] * 2)
    picked = past.picked(np.array([1, -1]))
    assert picked.began.tolist() == [True, False]
    assert picked.late.tolist() == [True, False]
    past.put(np.array([0]), waiting.WaitHistory.unknown(1))
    assert past.began.tolist() == [False, True, True]


def noisy(generator, vms, count, cpus=4.0, moment=0.0, most=1.0):
    """Intervals of VMs: (CPUs used, lowest and highest stall)."""
    used = np.array([cpu for cpu, _, _ in vms])
    low, high = (np.array([vm[place] for vm in vms]) for place in (1, 2))
    for number in range(count):
        stall = generator.uniform(low, high)
        if number % 7 == 3:
            stall = stall + moment
        rows = zip(used, stall, strict=True)
        yield interval(*rows, cpus=cpus, most=most)


@pytest.mark.repeated
@pytest.mark.parametrize('seed', range(10))
@pytest.mark.parametrize('moment', [0.0, 0.4])
def test_noise_of_a_busy_host_makes_no_node_short(seed, moment):
    generator = np.random.default_rng(seed)
    vms = [(0.02, 0.0, 0.08)] * 20 + [(0.05, 0.0, 0.06)] * 5
    found, _ = judged(noisy(generator, vms, 300, moment=moment))
    assert not any(short for _, short in found)
    vms = [(0.96, 0.01, 0.03)] * 4 + [(0.005, 0.0, 0.08)] * 10
    found, _ = judged(noisy(generator, vms, 300))
    assert not any(short for _, short in found)


def test_small_stalls_of_a_crowd_are_no_noise():
    vms = [(0.279, 0.071)] * 14 + [(0.05, 0.0)] * 2
    found, _ = judged([interval(*vms, cpus=4)] * 3)
    assert found[0] == ([False] * 16, False)
    assert found[1:] == [([True] * 14 + [False] * 2, True)] * 2


def test_a_vm_that_the_host_keeps_waiting_is_no_crowd():
    vms = [(0.8, 0.2), *[(0.01, 0.08)] * 3]
    found, _ = judged([interval(*vms)] * 3)
    assert all(waits == [True, False, False, False] for waits, _ in found)


def test_of_a_vm_of_several_vcpus_any_that_waits_is_noise():
    one = interval((0.9, 0.08), (0.9, 0.08), cpus=2)
    assert judged([one] * 3)[0] == [([True, True], True)] * 3
    two = interval((1.8, 0.08), (1.8, 0.08), cpus=4, most=2.0)
    assert judged([two] * 3)[0] == [([False, False], False)] * 3


@pytest.mark.parametrize(('lack', 'more'), [(0.09, 0.09), (0.095, 0.15)])
def test_a_vm_does_not_learn_its_own_lack_as_noise(lack, more):
    def now(stall):
        others = [(8.08, 0.0)] * 7
        return interval(
            (7.6 * (1 - stall), stall), *others, cpus=64, most=16.0
        )

    _, past = judged([now(lack)] * 20)
    found, _ = judged([now(more)] * 3, past)
    assert found[1:] == [([True] + [False] * 7, True)] * 2


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('lowest', [0.0, 0.02, 0.04])
def test_noise_that_comes_and_goes_is_learned(seed, lowest):
    generator = np.random.default_rng(seed)
    vms = [(7.9, lowest, 0.08)] * 8
    found, _ = judged(noisy(generator, vms, 300, cpus=64.0, most=8.0))
    assert not any(short for _, short in found)


def test_noise_of_a_vm_that_costs_next_to_nothing_is_learned():
    now = interval((0.4, 0.09), *[(9.0, 0.0)] * 7, cpus=64, most=16.0)
    found, past = judged([now] * 40)
    assert not any(short for _, short in found)
    begin, _ = past.bounds(now.node, 1, now.used < 0)
    assert begin[0] > 0.1 > begin[1]


@pytest.mark.parametrize('seed', range(10))
def test_small_vms_are_found_in_noise_at_once_and_as_long_as_they_wait(seed):
    generator = np.random.default_rng(seed)
    part = 4 / 7.6
    vms = [(0.1 * part, 1 - part - 0.04, 1 - part + 0.04)] * 76
    found, _ = judged(noisy(generator, vms, 100))
    assert all(short for _, short in found[1:])
    assert all(all(waits) for waits, _ in found[1:])


stalls = strategies.floats(0, 1)
vms = strategies.lists(
    strategies.tuples(stalls, stalls | strategies.just(NAN)),
    min_size=1,
    max_size=6,
)


@hypothesis.given(strategies.lists(vms, min_size=1, max_size=6), stalls)
def test_bounds_keep_their_order_and_short_nodes_have_someone_waiting(
    intervals, busy
):
    size = min(map(len, intervals))
    past = waiting.WaitHistory.unknown(size)
    for row in intervals:
        now = interval(*row[:size], busy=busy)
        found, past = waiting.judge_waits(now, past)
        begin, end = past.bounds(now.node, 1, now.used > 0.5)
        assert (begin >= waiting.LEAST).all()
        assert (end >= waiting.NOTHING).all()
        assert (end <= begin).all()
        assert not found.nodes[0] or found.vms.any()
        assert not found.nodes[0] or busy >= waiting.BUSY_WITH_STALL
        assert (past.count <= 1 / waiting.FORGETTING).all()
        assert (past.variance >= 0).all()


@hypothesis.given(vms, stalls)
def test_no_vm_waits_that_is_not_ready(row, busy):
    now = interval(*row, busy=busy)
    nobody = waiting.Interval(
        node=now.node,
        used=now.used,
        stall=now.stall,
        most=now.most,
        ready=np.zeros(len(row), dtype=bool),
        cpus=now.cpus,
        busy=now.busy,
    )
    found, past = waiting.judge_waits(
        nobody, waiting.WaitHistory.unknown(len(row))
    )
    assert not found.vms.any()
    assert not found.nodes.any()
    assert not past.count.any()


@hypothesis.given(strategies.floats(0.01, 1), strategies.floats(0.001, 0.998))
def test_a_closed_loop_wants_the_same_however_long_it_waits(wanted, stall):
    used = wanted * (1 - stall)
    found = waiting.use_without_waits(
        np.array([used]), np.array([stall]), np.ones(1)
    )
    assert found[0] == pytest.approx(wanted)
