# SPDX-License-Identifier: Apache-2.0


"""Policies in arrays keep the plain contract."""

import json
from typing import ClassVar

import numpy as np
import pytest

from nova_fairness.decide import array_policy
from nova_fairness.decide import policy
from nova_fairness.model import resources

CONTROLS = len(resources.CONTROLS)
PER = array_policy.MemoryScope


class Counting(array_policy.ArrayPolicy):
    """Counts the rounds of VMs and nodes; weighs by heaviness."""

    description = 'for tests'
    FIELDS: ClassVar = {
        'rounds': array_policy.MemoryField(PER.VM, 0.0),
        'last': array_policy.MemoryField(PER.VM_CONTROL),
        'node': array_policy.MemoryField(PER.NODE_CONTROL, 0.0),
    }

    def decide(self, crowd, previous, memory, elapsed_s):
        weights = np.repeat(np.exp(-crowd.heaviness)[:, None], CONTROLS, 1)
        return weights, {
            'rounds': memory['rounds'] + 1,
            'last': weights,
            'node': memory['node'] + crowd.nodes,
        }


def situation(keys, heaviness):
    count = len(keys)
    return policy.Situation(
        keys=tuple(keys),
        heaviness=np.array(heaviness, dtype=float),
        user=np.arange(count),
        vcpus=np.ones(count, dtype=np.int64),
        contended=np.ones(CONTROLS, dtype=bool),
        wanting=np.ones((count, CONTROLS), dtype=bool),
    )


def ask(memory, keys=('b', 'a'), heaviness=(0.0, 1.0)):
    previous = np.ones((len(keys), CONTROLS))
    return Counting()(situation(keys, heaviness), previous, memory, 10.0)


def test_weights_come_back_in_the_order_of_the_rows():
    weights, _ = ask({})
    assert weights[:, 0].tolist() == pytest.approx([1.0, np.exp(-1)])


def test_memory_is_json_and_comes_back():
    _, memory = ask({})
    _, memory = ask(json.loads(json.dumps(memory)))
    own = memory['Counting']
    assert own['vms']['a']['rounds'] == 2
    assert own['node']['node'] == [2.0] * CONTROLS


def test_a_vm_that_is_gone_is_forgotten_and_a_new_one_unknown():
    _, memory = ask({})
    _, memory = ask(memory, keys=('b', 'c'))
    vms = memory['Counting']['vms']
    assert sorted(vms) == ['b', 'c']
    assert (vms['b']['rounds'], vms['c']['rounds']) == (2, 1)


UNUSABLE = {
    'nothing': {},
    'of another policy': {'Other': {'version': 1}},
    'of another version': {'Counting': {'version': 99, 'node': {'node': 7}}},
    'no mapping': {'Counting': 'text'},
    'a text for a number': {
        'Counting': {'version': 1, 'vms': {'a': {'rounds': 'many'}}}
    },
    'too few numbers': {'Counting': {'version': 1, 'node': {'node': [7.0]}}},
    'not finite': {
        'Counting': {'version': 1, 'vms': {'a': {'rounds': float('inf')}}}
    },
}


@pytest.mark.parametrize('memory', UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_memory_counts_as_none(memory):
    _, kept = ask(memory)
    assert kept['Counting']['vms']['a']['rounds'] == 1
    assert kept['Counting']['node']['node'] == [1.0] * CONTROLS


def test_an_unknown_value_is_left_out_of_memory():
    class Forgetful(Counting):
        def decide(self, crowd, previous, memory, elapsed_s):
            weights, kept = super().decide(crowd, previous, memory, elapsed_s)
            return weights, {**kept, 'last': np.full_like(weights, np.nan)}

    previous = np.ones((1, CONTROLS))
    _, memory = Forgetful()(situation('a', [0.0]), previous, {}, 10.0)
    assert 'last' not in memory['Forgetful']['vms']['a']
