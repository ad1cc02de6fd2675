# SPDX-License-Identifier: Apache-2.0

"""How the memory of a node is divided into what each VM is spared."""

import dataclasses

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness.decide import legacy_priority
from nova_fairness.decide import policy
from nova_fairness.decide.controls import memory
from tests.unit.decide.controls import nodes

MIB = 1 << 20
GIB = 1 << 30

PLAIN = memory.MemoryRules(
    minimum_bytes=0, floor_part=0.0, headroom=0.0, unprotected_part=0.0
)


def divide(weights, held, sizes, capacity, **options):
    demand = memory.MemoryDemand(
        np.array(held, dtype=float), np.array(sizes, dtype=float)
    )
    options.setdefault('rules', PLAIN)
    return memory.protections(
        np.array(weights, dtype=float), demand, capacity, **options
    ).tolist()


CASES = {
    'where all fits each VM is spared all it holds': (
        ([1, 1], [2 * GIB, GIB], [2 * GIB, 2 * GIB], 4 * GIB),
        [2 * GIB, GIB],
    ),
    'equal weights divide what does not suffice by size': (
        ([1, 1], [4 * GIB, 2 * GIB], [4 * GIB, 2 * GIB], 3 * GIB),
        [2 * GIB, GIB],
    ),
    'weights divide what does not suffice': (
        ([3, 1], [4 * GIB, 4 * GIB], [4 * GIB, 4 * GIB], 4 * GIB),
        [3 * GIB, GIB],
    ),
    'memory that one does not hold the others share': (
        ([10, 1, 1], [GIB, 4 * GIB, 4 * GIB], [4 * GIB] * 3, 5 * GIB),
        [GIB, 2 * GIB, 2 * GIB],
    ),
    'no VM to divide among': (([], [], [], GIB), []),
    'a node without memory gives nothing': (([1], [GIB], [GIB], 0), [0]),
    'one whose use is unknown counts with its flavor': (
        ([1, 1], [np.nan, 4 * GIB], [4 * GIB, 4 * GIB], 4 * GIB),
        [2 * GIB, 2 * GIB],
    ),
}


@pytest.mark.parametrize(('given', 'expected'), CASES.values(), ids=CASES)
def test_memory_is_divided_by_weight(given, expected):
    assert divide(*given) == expected


def test_a_floor_is_given_at_any_weight():
    rules = memory.MemoryRules(256 * MIB, 0.25, 0.0, 0.0)
    parts = divide(
        [1, 1000], [4 * GIB, 4 * GIB], [4 * GIB, 4 * GIB], 4 * GIB, rules=rules
    )
    assert parts == [GIB, 3 * GIB]


def test_the_minimum_counts_where_the_flavor_is_small():
    rules = memory.MemoryRules(256 * MIB, 0.25, 0.0, 0.0)
    parts = divide(
        [1, 1000], [512 * MIB, GIB], [512 * MIB, GIB], GIB, rules=rules
    )
    assert parts == [256 * MIB, 768 * MIB]


def test_no_floor_is_more_than_the_vm_holds():
    rules = memory.MemoryRules(256 * MIB, 0.5, 0.0, 0.0)
    parts = divide([1, 1], [64 * MIB, GIB], [GIB, GIB], 512 * MIB, rules=rules)
    assert parts[0] == 64 * MIB


def test_floors_are_kept_where_they_are_more_than_the_node_has():
    rules = memory.MemoryRules(0, 0.5, 0.0, 0.0)
    parts = divide([1, 9], [GIB, GIB], [GIB, GIB], 512 * MIB, rules=rules)
    assert parts == [512 * MIB, 512 * MIB]


def test_headroom_lets_a_vm_grow():
    rules = memory.MemoryRules(0, 0.0, 0.5, 0.0)
    assert divide([1], [GIB], [4 * GIB], 4 * GIB, rules=rules) == [
        GIB + GIB // 2
    ]


def test_a_part_of_the_node_is_promised_to_no_vm():
    rules = dataclasses.replace(PLAIN, unprotected_part=0.25)
    parts = divide(
        [1, 1], [4 * GIB, 4 * GIB], [4 * GIB, 4 * GIB], 4 * GIB, rules=rules
    )
    assert parts == [3 * GIB // 2, 3 * GIB // 2]


def test_the_preset_of_the_original_gives_places_of_its_range():
    weights = [legacy_priority.weight_of(0), legacy_priority.weight_of(100)]
    parts = divide(
        weights, [GIB] * 2, [GIB] * 2, GIB, preset=policy.Preset.THESIS
    )
    assert parts == [10 * MIB, GIB]


def test_the_preset_of_the_original_keeps_the_floor():
    parts = divide(
        [legacy_priority.weight_of(0)],
        [GIB],
        [GIB],
        GIB,
        preset=policy.Preset.THESIS,
        rules=memory.DEFAULT_RULES,
    )
    assert parts == [256 * MIB]


VM = st.tuples(
    st.floats(0.2, 5.0),
    st.floats(1 * MIB, 16 * GIB),
    st.floats(64 * MIB, 16 * GIB),
)


@hypothesis.given(st.lists(VM, min_size=1, max_size=8), st.floats(0, 64 * GIB))
def test_the_parts_use_the_node_and_no_more(vms, capacity):
    weights, held, sizes = zip(*vms, strict=True)
    rules = memory.DEFAULT_RULES
    parts = np.array(divide(weights, held, sizes, capacity, rules=rules))
    most = np.array(held) * (1 + rules.headroom)
    floors = np.minimum(
        most, np.maximum(rules.minimum_bytes, 0.25 * np.array(sizes))
    )
    slack = len(vms) * MIB
    assert (parts <= most).all()
    assert (parts >= floors - MIB).all()
    spared = capacity * (1 - rules.unprotected_part)
    expected = min(max(spared, floors.sum()), most.sum())
    assert abs(parts.sum() - expected) <= slack


@hypothesis.given(st.lists(VM, min_size=2, max_size=8), st.floats(0, 64 * GIB))
def test_a_larger_weight_never_means_less(vms, capacity):
    weights, held, sizes = map(list, zip(*vms, strict=True))
    before = divide(weights, held, sizes, capacity)
    weights[0] *= 2
    assert divide(weights, held, sizes, capacity)[0] >= before[0]


SHORT = 100 * MIB
WAITS = 10 * MIB
MEMORY = {
    'one that faults on a short node competes': (
        (SHORT, [WAITS, 0.0], [np.nan, np.nan]),
        (True, [True, False]),
    ),
    'a node that takes nothing away is not short': (
        (0.0, [WAITS, 0.0], [np.nan, np.nan]),
        (False, [True, False]),
    ),
    'a short node without waits recycles its cache': (
        (SHORT, [0.0, 0.0], [0.0, 0.0]),
        (False, [False, False]),
    ),
    'stalls tell, too': (
        (SHORT, [0.0, 0.0], [0.2, 0.0]),
        (True, [True, False]),
    ),
    'an unknown number is no sign': (
        (np.nan, [WAITS, np.nan], [np.nan, np.nan]),
        (False, [True, False]),
    ),
}


@pytest.mark.parametrize(('given', 'expected'), MEMORY.values(), ids=MEMORY)
def test_memory(given, expected):
    reclaim, faults, stalls = given
    contended, wanting = memory.judge(
        nodes.pressed(
            {},
            [(), ()],
            reclaim_rate=reclaim,
            fault_rate=np.array(faults),
            memory_stall=np.array(stalls),
        )
    )
    assert (contended, wanting.tolist()) == expected


def test_a_lone_vm_has_no_competition_for_memory():
    contended, _ = memory.judge(
        nodes.pressed(
            {}, [()], reclaim_rate=SHORT, fault_rate=np.array([WAITS])
        )
    )
    assert not contended
