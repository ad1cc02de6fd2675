# SPDX-License-Identifier: Apache-2.0

"""Going at once where feedback would end."""

import dataclasses
import json

import numpy as np
import pytest

from nova_fairness.decide import foresight as decide_foresight
from nova_fairness.decide import policy as policy_base
from nova_fairness.decide.policies import feedback
from nova_fairness.decide.policies import foresight
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import resources

R = resources.RESOURCES
CONTROLS = len(resources.CONTROLS)
CPU, TIME = decide_foresight.CPU, decide_foresight.CPU_TIME
RATIO = 20.0


def amounts(values):
    result = np.zeros((len(values), len(R)))
    result[:, TIME] = values
    return result


def make_known(cells, supply, used=None):
    """cells: (node, user, wanted CPUs); heaviness is what a user has."""
    cells = sorted(cells)
    node = np.array([cell[0] for cell in cells])
    user = np.array([cell[1] for cell in cells])

    def weigh(used):
        return np.bincount(user, used[:, TIME])[user]

    wanted = np.array([cell[2] for cell in cells], dtype=float)
    return foresight_model.CpuKnowledge(
        node=node,
        user=user,
        wanted=amounts(wanted),
        used=amounts(wanted if used is None else used),
        supply=amounts(supply),
        one_cpu=np.ones(len(supply)),
        demand=foresight_model.CpuDemand(
            cell=np.arange(len(cells)),
            wanted=wanted,
            vcpus=wanted,
            exempt=np.zeros(len(cells), bool),
        ),
        weigh=weigh,
        metric='shares',
        quota=amounts([1.0]),
    )


def situation(known, place, vms):
    """vms: (user, used, wanted, vCPUs) of one node of the knowledge."""
    count = len(vms)
    contended = np.zeros(CONTROLS, dtype=bool)
    contended[CPU] = True
    wanting = np.zeros((count, CONTROLS), dtype=bool)
    wanting[:, CPU] = [used < wanted for _, used, wanted, _ in vms]
    here = np.zeros(1, dtype=np.intp)
    return policy_base.Situation(
        keys=tuple(f'vm{row}' for row in range(count)),
        heaviness=np.ones(count),
        user=np.array([vm[0] for vm in vms]),
        vcpus=np.array([vm[3] for vm in vms]),
        contended=contended,
        wanting=wanting,
        foresight=foresight_model.Foresight(
            used=amounts([vm[1] for vm in vms]),
            wanted=amounts([vm[2] for vm in vms]),
            user=np.array([vm[0] for vm in vms]),
            ratio=np.full(CONTROLS, RATIO),
            exempt=np.zeros(count, dtype=bool),
            views=(
                foresight_model.SharedView(
                    here,
                    here + place,
                    known,
                    decide_foresight.search_division(known, RATIO).end,
                ),
            ),
        ),
    )


def neutral(vms):
    return np.ones((len(vms), CONTROLS))


# User 0 is on both nodes, so each of the others is to get two thirds.
TWO = make_known([(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 2, 1)], [1, 1])
HUNGRY = [(0, 0.5, 1.0, 1), (1, 0.5, 1.0, 1)]


def test_foresight_gives_all_users_the_same_heaviness():
    end = decide_foresight.search_division(TWO, RATIO).end
    weight = np.exp(end.log)
    part = weight[1] / (weight[0] + weight[1])
    assert part == pytest.approx(2 / 3, abs=0.01)
    assert weight[:2] == pytest.approx(weight[2:], rel=1e-6)
    assert end.short.all()


def test_foresight_finds_no_lack_where_capacity_suffices():
    end = decide_foresight.search_division(
        make_known([(0, 0, 0.4), (0, 1, 0.4)], [1]), RATIO
    ).end
    assert not end.short.any()
    assert end.log.tolist() == [0, 0]


def test_cpu_time_of_the_host_is_not_divided():
    """Of node 0 users can have nine tenths."""
    rest = [(1, 0, 1), (1, 2, 1)]
    wanting = make_known(
        [(0, 0, 0.5), (0, 1, 0.5), *rest], [1, 1], [0.45, 0.45, 0.5, 0.5]
    )
    assert decide_foresight.search_division(wanting, RATIO).end.short.all()
    content = make_known(
        [(0, 0, 0.46), (0, 1, 0.46), *rest], [1, 1], [0.45, 0.45, 0.5, 0.5]
    )
    assert decide_foresight.search_division(
        content, RATIO
    ).end.short.tolist() == [
        False,
        True,
    ]


def test_weights_make_up_for_a_vm_that_is_exempt():
    """User 0 has a VM that no weight reaches, of the size of the other."""
    policy = foresight.ForesightPolicy()
    vms = [(0, 0.3, 1.0, 1), (0, 0.3, 1.0, 1), (1, 0.4, 1.0, 1)]
    known = make_known([(0, 0, 2), (0, 1, 1)], [1])
    given = situation(known, 0, vms)
    exempt = np.array([True, False, False])
    ahead = dataclasses.replace(given.foresight, exempt=exempt)
    given = dataclasses.replace(given, foresight=ahead)
    weights, memory = neutral(vms), {}
    for _ in range(5):
        used = weights[:, CPU] / weights[:, CPU].sum()
        ahead = dataclasses.replace(ahead, used=amounts(used))
        given = dataclasses.replace(given, foresight=ahead)
        weights, memory = policy(given, weights, memory, 10.0)
        weights[exempt] = 1.0
    assert used[2] == pytest.approx(0.5, abs=0.02)


def test_one_round_of_foresight_covers_most_of_the_distance():
    policy = foresight.ForesightPolicy()
    given = situation(TWO, 0, HUNGRY)
    weights, memory = policy(given, neutral(HUNGRY), {}, 10.0)
    end = decide_foresight.search_division(TWO, RATIO).end.log[:2]
    assert np.log(weights[:, CPU]) == pytest.approx(0.7 * end)
    again, _ = policy(given, weights, memory, 10.0)
    assert np.abs(np.log(again[:, CPU]) - end).max() < 0.35 * abs(end[0])
    assert (weights[:, :CPU] == 1).all()


def test_the_memory_of_foresight_is_json_and_order_changes_nothing():
    policy = foresight.ForesightPolicy()
    weights, memory = policy(
        situation(TWO, 0, HUNGRY), neutral(HUNGRY), {}, 10.0
    )
    kept = json.loads(json.dumps(memory))
    turned = situation(TWO, 0, HUNGRY[::-1])
    turned = policy_base.Situation(
        **{**vars(turned), 'keys': turned.keys[::-1]}
    )
    other, _ = policy(turned, neutral(HUNGRY), {}, 10.0)
    assert other[::-1] == pytest.approx(weights)
    assert policy(situation(TWO, 0, HUNGRY), weights, kept, 10.0)


def test_a_kernel_that_gives_too_much_is_corrected():
    policy = foresight.ForesightPolicy()
    weights, memory = neutral(HUNGRY), {}
    favoured = np.array([1.5, 1.0])
    for _ in range(12):
        asked = favoured * weights[:, CPU]
        got = asked / asked.sum()
        vms = [(0, got[0], 1.0, 1), (1, got[1], 1.0, 1)]
        weights, memory = policy(situation(TWO, 0, vms), weights, memory, 10.0)
    asked = favoured * weights[:, CPU]
    assert asked[1] / asked.sum() == pytest.approx(2 / 3, abs=0.02)


def test_foresight_without_knowledge_equals_feedback():
    given = situation(TWO, 0, HUNGRY)
    blind = policy_base.Situation(**{**vars(given), 'foresight': None})
    plain, _ = feedback.FeedbackPolicy()(blind, neutral(HUNGRY), {}, 10.0)
    mine, _ = foresight.ForesightPolicy()(blind, neutral(HUNGRY), {}, 10.0)
    assert (mine == plain).all()


def test_a_node_with_plenty_is_left_alone():
    known = make_known([(0, 0, 0.4), (0, 1, 0.4), (1, 0, 2)], [1, 1])
    vms = [(0, 0.4, 0.4, 1), (1, 0.4, 0.4, 1)]
    weights = neutral(vms) * [[0.5], [2.0]]
    found, _ = foresight.ForesightPolicy()(
        situation(known, 0, vms), weights, {}, 10.0
    )
    assert found == pytest.approx(weights)


def test_no_weight_goes_further_than_a_step():
    policy = foresight.ForesightPolicy()
    policy.part = 1.0
    crowd = [(0, 0, 1), *((0, user, 1) for user in range(1, 9))]
    rest = [(node, 0, 1) for node in range(1, 9)]
    known = make_known([*crowd, *rest], [1] * 9)
    vms = [(user, 1 / 9, 1.0, 1) for user in range(9)]
    weights, _ = policy(situation(known, 0, vms), neutral(vms), {}, 10.0)
    logs = np.log(weights[:, CPU])
    assert np.abs(logs).max() <= np.log(policy.largest) * (1 + 1e-9)
    assert logs[0] < 0 < logs[1:].min()


@pytest.mark.parametrize('sharpness', [2 * decide_foresight.SHARP, np.inf])
def test_where_no_end_was_found_feedback_decides(sharpness):
    given = situation(TWO, 0, HUNGRY)
    (view,) = given.foresight.views
    blunt = dataclasses.replace(view.end, sharpness=sharpness)
    given = dataclasses.replace(
        given,
        foresight=dataclasses.replace(
            given.foresight, views=(dataclasses.replace(view, end=blunt),)
        ),
    )
    plain, _ = feedback.FeedbackPolicy()(given, neutral(HUNGRY), {}, 10.0)
    mine, _ = foresight.ForesightPolicy()(given, neutral(HUNGRY), {}, 10.0)
    assert (mine == plain).all()


def test_foresight_reaches_the_goal_at_once_on_a_single_node():
    """User 0 has three VMs beside one of user 1."""
    known = make_known([(0, 0, 3), (0, 1, 1)], [1])
    vms = [(0, 0.25, 1.0, 1)] * 3 + [(1, 0.25, 1.0, 1)]
    weights, memory = neutral(vms), {}
    for _ in range(4):
        part = weights[:, CPU] / weights[:, CPU].sum()
        vms = [
            (user, got, 1.0, 1)
            for user, got in zip([0, 0, 0, 1], part, strict=True)
        ]
        weights, memory = foresight.ForesightPolicy()(
            situation(known, 0, vms), weights, memory, 10.0
        )
    part = weights[:, CPU] / weights[:, CPU].sum()
    assert part[3] == pytest.approx(0.5, abs=0.01)


def test_a_node_that_is_short_of_the_disk_too_is_left_to_feedback():
    given = situation(TWO, 0, HUNGRY)
    contended = given.contended.copy()
    contended[resources.CONTROLS.index(resources.ResourceControl.DISK)] = True
    both = policy_base.Situation(**{**vars(given), 'contended': contended})
    plain, _ = feedback.FeedbackPolicy()(both, neutral(HUNGRY), {}, 10.0)
    mine, memory = foresight.ForesightPolicy()(both, neutral(HUNGRY), {}, 10.0)
    assert (mine == plain).all()
    # When the disk is free again, foresight decides.
    later, _ = foresight.ForesightPolicy()(given, mine, memory, 10.0)
    alone, _ = feedback.FeedbackPolicy()(given, mine, {}, 10.0)
    assert (later[:, CPU] != alone[:, CPU]).all()


def test_where_all_are_to_have_the_same_the_kernel_is_not_corrected():
    """Uniform metrics leave a node as it would be without an agent."""
    even = make_known([(0, 0, 1), (0, 1, 1), (1, 2, 1), (1, 3, 1)], [1, 1])
    vms = [(0, 0.55, 1.0, 1), (1, 0.45, 1.0, 1)]
    weights, memory = foresight.ForesightPolicy()(
        situation(even, 0, vms), neutral(vms), {}, 10.0
    )
    assert weights == pytest.approx(neutral(vms))
    # One that is clearly off is corrected, unless for one interval only.
    clearly = [(0, 0.7, 1.0, 1), (1, 0.3, 1.0, 1)]
    given = situation(even, 0, clearly)
    found, memory = foresight.ForesightPolicy()(given, weights, memory, 10.0)
    assert found == pytest.approx(neutral(vms))
    found, _ = foresight.ForesightPolicy()(given, found, memory, 10.0)
    assert found[0, CPU] < 1 < found[1, CPU]


def test_a_vm_that_rests_for_an_interval_gets_its_weight_back():
    policy = foresight.ForesightPolicy()
    weights, memory = neutral(HUNGRY), {}
    for _ in range(8):
        got = weights[:, CPU] / weights[:, CPU].sum()
        vms = [(0, got[0], 1.0, 1), (1, got[1], 1.0, 1)]
        weights, memory = policy(situation(TWO, 0, vms), weights, memory, 10.0)
    # Half of an interval, then all of one.
    half = [(0, got[0] / 2, 0.5, 1), (1, 1 - got[0] / 2, 1.0, 1)]
    found, memory = policy(situation(TWO, 0, half), weights, memory, 10.0)
    assert found[:, CPU] == pytest.approx(weights[:, CPU], rel=0.02)
    none = [(0, 0.0, 0.0, 1), (1, 1.0, 1.0, 1)]
    later, _ = policy(situation(TWO, 0, none), found, memory, 10.0)
    assert later[0, CPU] == pytest.approx(found[0, CPU])
