# SPDX-License-Identifier: Apache-2.0

# ruff: noqa: D102 - the name of a case is its sentence

"""Rules of every policy, as a suite to inherit from.

A package with a policy of its own writes::

    class TestMine(policy_contract.PolicyContract):
        def make_policy(self):
            return MyPolicy()

and runs it with pytest. The suite needs only numpy and the model.
"""

import abc
import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from nova_fairness.decide import policy as policy_base
from nova_fairness.model import allocation
from nova_fairness.model import pairing
from nova_fairness.model import resources

_GARBAGE: tuple[Any, ...] = (
    {'version': 99, 'controls': 7, 'heaviness': None},
    {'owner': 'feedback', 'version': 1, 'heaviness': [1, 2]},
    {'owner': 'feedback', 'version': 1, 'controls': {'cpu': 'x'}},
    {
        'owner': 'feedback',
        'version': 1,
        'heaviness': {'vm-0': 'heavy', 'vm-1': 1e308, 'vm-2': 10**400},
        'controls': {
            'cpu': {
                'settled': 'yes',
                'instances': {
                    'vm-0': {'wanted': None, 'error': True, 'damping': -1},
                    'vm-1': {'wanted': 1e300, 'error': 1e300, 'damping': 0},
                    'vm-2': [],
                },
            }
        },
    },
)


def situation_of(
    heaviness: npt.ArrayLike,
    user: npt.ArrayLike | None = None,
    *,
    contended: bool = True,
    wanting: npt.ArrayLike = True,
) -> policy_base.Situation:
    """Build a situation in which only CPU time may be contended.

    :param heaviness: (n,) heaviness of VMs.
    :param user: (n,) indices of users; by default one VM per user.
    :param contended: whether CPU time is contended.
    :param wanting: (n,) whether each VM wants more CPU time, or one value for
        all VMs.
    """
    values = np.array(heaviness, dtype=np.float64).reshape(-1)
    count, controls = len(values), len(resources.CONTROLS)
    cpu = resources.CONTROLS.index(resources.ResourceControl.CPU)
    wants = np.zeros((count, controls), dtype=np.bool_)
    wants[:, cpu] = wanting
    waited_for = np.zeros(controls, dtype=np.bool_)
    waited_for[cpu] = contended
    owners = np.arange(count) if user is None else np.array(user)
    return policy_base.Situation(
        keys=tuple(f'vm-{row}' for row in range(count)),
        heaviness=values,
        user=owners.astype(np.intp),
        vcpus=np.ones(count, dtype=np.int64),
        contended=waited_for,
        wanting=wants,
    )


def neutral(count: int) -> allocation.Weights:
    """Return the weights of VMs before the first decision, (n, c)."""
    return np.ones((count, len(resources.CONTROLS)))


def _require(condition: object, message: str) -> None:
    if not condition:
        raise AssertionError(message)


class PolicyContract(abc.ABC):
    """Tests of one policy; subclasses are named ``Test...`` and write
    :meth:`make_policy`.
    """

    @abc.abstractmethod
    def make_policy(self) -> policy_base.Policy:
        """Return the policy under test."""

    def _decide(
        self,
        situation: policy_base.Situation,
        previous: allocation.Weights | None = None,
        memory: Any = None,
    ) -> tuple[allocation.Weights, policy_base.Memory]:
        before = neutral(len(situation.keys)) if previous is None else previous
        weights, kept = self.make_policy()(
            situation, before, {} if memory is None else memory, 10.0
        )
        _require(weights.shape == before.shape, 'shape of the weights')
        _require(weights.dtype == np.float64, 'weights are float64')
        _require(np.isfinite(weights).all(), 'weights are finite')
        _require((weights > 0).all(), 'weights are above zero')
        return weights, kept

    def test_it_describes_itself(self) -> None:
        policy = self.make_policy()
        _require(policy.description.strip(), 'a policy has a description')
        _require(isinstance(policy.preset, policy_base.Preset), 'its preset')
        _require(pairing.may_be_kind(policy.kind), 'its kind')

    def test_a_node_without_vms_is_no_error(self) -> None:
        self._decide(situation_of([]))

    def test_one_vm_is_no_error(self) -> None:
        self._decide(situation_of([0.7]))

    def test_the_order_of_rows_changes_nothing(self) -> None:
        generator = np.random.default_rng(4)
        heaviness = generator.normal(size=9)
        previous = np.exp(generator.normal(size=neutral(9).shape))
        situation = situation_of(heaviness, [0, 0, 1, 1, 1, 2, 3, 3, 0])
        order = generator.permutation(9)
        turned = policy_base.Situation(
            keys=tuple(situation.keys[row] for row in order),
            heaviness=situation.heaviness[order],
            user=situation.user[order],
            vcpus=situation.vcpus[order],
            contended=situation.contended,
            wanting=situation.wanting[order],
        )
        weights, memory = self._decide(situation, previous)
        again, memory_again = self._decide(turned, previous[order])
        np.testing.assert_allclose(again, weights[order], rtol=1e-12)
        _require(memory == memory_again, 'memory depends on the row order')

    def test_the_same_question_has_the_same_answer(self) -> None:
        situation = situation_of([0.1, 0.9, -0.4], [0, 0, 1])
        first, kept = self._decide(situation)
        second, kept_again = self._decide(situation)
        np.testing.assert_array_equal(first, second)
        _require(kept == kept_again, 'memory differs')

    def test_arguments_are_not_changed(self) -> None:
        situation = situation_of([1.5, 0.2, 0.2], [0, 1, 1])
        _, memory = self._decide(situation)
        previous = neutral(3) * 1.3
        kept = copy.deepcopy(situation)
        kept_memory = copy.deepcopy(memory)
        weights, _ = self._decide(situation, previous, memory)
        weights *= 2
        np.testing.assert_array_equal(previous, neutral(3) * 1.3)
        np.testing.assert_array_equal(situation.heaviness, kept.heaviness)
        np.testing.assert_array_equal(situation.wanting, kept.wanting)
        np.testing.assert_array_equal(situation.contended, kept.contended)
        _require(memory == kept_memory, 'memory was changed in place')

    def test_memory_that_makes_no_sense_is_not_used(self) -> None:
        situation = situation_of([1.5, 0.2, 0.3])
        expected, _ = self._decide(situation)
        for memory in _GARBAGE:
            self._decide(situation, None, memory)
        weights, _ = self._decide(situation, None, {'owner': 'somebody'})
        np.testing.assert_array_equal(weights, expected)

    def test_memory_is_json_and_ends_with_the_vms(self) -> None:
        _, memory = self._decide(situation_of([1.5, 0.2, 0.3]))
        _, memory = self._decide(situation_of([0.4]), None, memory)
        _require(_is_json(memory), 'memory holds JSON types only')
        _require('vm-2' not in repr(memory), 'a vanished VM is remembered')

    def test_extreme_heaviness_is_survived(self) -> None:
        for extreme in (1e9, -1e9, 1e300):
            self._decide(situation_of([extreme, 0.0, -extreme]))
            self._decide(situation_of([extreme, extreme, extreme]))

    def test_equally_heavy_vms_get_equal_weights(self) -> None:
        for heaviness in (-0.4, 0.0, 1.0, 1e9):
            weights, memory = self._decide(situation_of([heaviness] * 4))
            again, _ = self._decide(
                situation_of([heaviness] * 4), weights, memory
            )
            np.testing.assert_array_equal(again, again[:1].repeat(4, axis=0))
            if self.make_policy().preset is policy_base.Preset.DEFAULT:
                np.testing.assert_array_equal(again, neutral(4))

    def test_a_lighter_vm_never_gets_less_than_a_heavier_one(self) -> None:
        weights, _ = self._decide(situation_of([0.9, 0.1, -0.3, 0.4]))
        cpu = resources.CONTROLS.index(resources.ResourceControl.CPU)
        by_heaviness = weights[np.argsort([0.9, 0.1, -0.3, 0.4]), cpu]
        _require((np.diff(by_heaviness) <= 0).all(), 'weights out of order')


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(
            isinstance(key, str) and _is_json(item)
            for key, item in value.items()
        )
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    if isinstance(value, float):
        return bool(np.isfinite(value))
    return value is None or isinstance(value, str | int | bool)
