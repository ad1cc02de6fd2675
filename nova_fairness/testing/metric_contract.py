# SPDX-License-Identifier: Apache-2.0

"""Rules of every metric, as tests that its author can run.

A test module of a plugin needs no more than this::

    class TestMyMetric(metric_contract.MetricContract):
        metric = MyMetric()
"""

from collections.abc import Iterator
import copy
import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import quota
from nova_fairness.measure import stages
from nova_fairness.measure import totals as totals_module
from nova_fairness.model import pairing
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

_RELATIVE = 1e-9
_ABSOLUTE = 1e-12

_Array = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A small cloud at one time.

    :ivar name: text that says how it differs from other cases.
    :ivar demands: demands of all its VMs.
    :ivar owners: owners of the VMs, in the same rows.
    """

    name: str
    demands: metric_base.Demands
    owners: usage_model.Ownership


@dataclasses.dataclass(frozen=True, eq=False)
class StageResults:
    """Heaviness of the three stages: (n,) of VMs, (u,) of users, (n,)
    combined.
    """

    instances: _Array
    users: _Array
    combined: _Array


def make_case(
    name: str, instances: int = 12, users: int = 3, nodes: int = 2
) -> Case:
    """Build a cloud in which some VMs use more than their endowment.

    :param instances: number of VMs, spread over users and nodes in turn.
    :param users: number of users, >= 1.
    :param nodes: number of nodes, >= 1.
    """
    source = np.random.default_rng(seed=7)
    width = len(resources.RESOURCES)
    supply = source.uniform(1e2, 1e9, width)
    row = np.arange(instances)
    fair = np.tile(supply / max(instances, 1), (instances, 1))
    demands = metric_base.Demands(
        usage=fair * source.uniform(0.0, 2.0, (instances, width)),
        endowment=fair,
        supply=supply,
        node=row % nodes,
        user_count=users,
    )
    owners = usage_model.Ownership(
        users=tuple(f'user-{number}' for number in range(users)),
        user_index=row // nodes % users,
        node_index=demands.node,
    )
    return Case(name, demands, owners)


def cases() -> Iterator[Case]:
    """Yield the clouds for which every metric must return a result."""
    usual = make_case('three users on two nodes')
    yield usual
    yield make_case('one user', users=1)
    yield make_case('one VM', instances=1, users=1, nodes=1)
    yield make_case('no VM', instances=0)
    yield make_case('users without a VM', instances=2, users=5)
    idle = np.zeros_like(usual.demands.usage)
    yield _with(usual, 'no user uses anything', usage=idle)
    full = usual.demands.endowment.copy()
    yield _with(usual, 'all use their endowment', usage=full)
    for column, name in enumerate(resources.RESOURCES.names):
        yield without(usual, column, f'no user has {name}')
    yield _with(
        usual,
        'no user has anything',
        usage=idle,
        endowment=idle.copy(),
        supply=np.zeros_like(usual.demands.supply),
    )


def without(case: Case, column: int, name: str) -> Case:
    """Return a case without supply and endowment of a resource that VMs
    use.
    """
    supply = case.demands.supply.copy()
    endowment = case.demands.endowment.copy()
    supply[column] = 0.0
    endowment[:, column] = 0.0
    return _with(case, name, supply=supply, endowment=endowment)


def totals_of(case: Case, heaviness: _Array) -> metric_base.Totals:
    """Return the sums of a cloud per user, with equal quotas."""
    demands = case.demands
    weights = np.ones(len(case.owners.users))
    return totals_module.sum_rows(
        case.owners.user_index,
        heaviness,
        demands.endowment,
        demands.usage,
        quota.divide_by_weights(demands.supply, weights),
        demands.supply,
    )


def run(metric: metric_base.Metric, case: Case) -> StageResults:
    """Run the three stages as the product does, with all its checks.

    :raises PluginMisbehaved: if the metric raises, changes its arguments or
        returns something unusable.
    """
    own = stages.instance_stage(metric, case.demands)
    users = stages.user_stage(metric, totals_of(case, own))
    treated = stages.combine_stage(metric, users[case.owners.user_index], own)
    return StageResults(own, users, treated)


class MetricContract:
    """Tests of one metric; subclasses set :attr:`metric`.

    A name that starts with ``Test`` makes pytest collect the subclass.
    """

    metric: metric_base.Metric

    def test_description_is_one_line(self) -> None:
        """The description fits into a list for operators."""
        text = self.metric.description
        if not text.strip() or '\n' in text:
            raise AssertionError(f'not one line: {text!r}')

    def test_it_names_kinds_of_policies_that_there_are(self) -> None:
        """The attribute ``suits`` contains known kinds of policies."""
        if not pairing.are_kinds(self.metric.suits):
            raise AssertionError(f'not kinds: {self.metric.suits!r}')

    def test_every_cloud_gets_finite_numbers_of_the_right_shape(self) -> None:
        """The clouds include zero supply, zero usage, one user, no VM."""
        for case in cases():
            try:
                run(self.metric, case)
            except Exception as error:
                raise AssertionError(f'{case.name}: {error}') from error

    def test_arguments_are_not_changed(self) -> None:
        """The metric does not change its arguments, which other code
        reads later.
        """
        case = make_case('usual')
        demands = copy.deepcopy(case.demands)
        own = self.metric.instances(demands)
        totals = totals_of(case, np.array(own, dtype=np.float64))
        given = copy.deepcopy(totals)
        users = self.metric.users(given)
        spread = np.array(users, dtype=np.float64)[case.owners.user_index]
        arguments = spread.copy(), np.array(own, dtype=np.float64)
        before = copy.deepcopy(arguments)
        self.metric.combine(*arguments)
        _assert_unchanged(demands, case.demands)
        _assert_unchanged(given, totals)
        np.testing.assert_array_equal(arguments, before)

    def test_same_cloud_gets_the_same_numbers(self) -> None:
        """No randomness, and no state from an earlier call."""
        case = make_case('usual')
        first = run(self.metric, case)
        for other in cases():
            run(self.metric, other)
        _assert_same(run(self.metric, case), first)

    def test_order_of_vms_does_not_matter(self) -> None:
        """Rows are in the order of UUIDs, which must have no effect."""
        case = make_case('usual')
        order = np.random.default_rng(seed=3).permutation(
            len(case.demands.usage)
        )
        plain = run(self.metric, case)
        moved = run(self.metric, _reordered(case, order))
        _assert_same(
            moved,
            StageResults(
                plain.instances[order], plain.users, plain.combined[order]
            ),
        )

    def test_numbering_of_nodes_does_not_matter(self) -> None:
        """The index of a node is only its position in a list."""
        case = make_case('usual')
        renamed = _with(case, 'other numbers', node=5 - case.demands.node)
        _assert_same(run(self.metric, renamed), run(self.metric, case))

    def test_order_of_users_does_not_matter(self) -> None:
        """The index of a user is only its position in a sorted list."""
        case = make_case('usual')
        last = len(case.owners.users) - 1
        owners = dataclasses.replace(
            case.owners, user_index=last - case.owners.user_index
        )
        plain = run(self.metric, case)
        turned = run(self.metric, dataclasses.replace(case, owners=owners))
        _assert_same(
            turned,
            StageResults(plain.instances, plain.users[::-1], plain.combined),
        )

    def test_unit_of_a_resource_does_not_matter(self) -> None:
        """Heaviness is the same for bytes or mebibytes, for example."""
        case = make_case('usual')
        plain = run(self.metric, case)
        for column in range(len(resources.RESOURCES)):
            factor = np.ones(len(resources.RESOURCES))
            factor[column] = 2.0**20
            scaled = _with(
                case,
                'another unit',
                usage=case.demands.usage * factor,
                endowment=case.demands.endowment * factor,
                supply=case.demands.supply * factor,
            )
            _assert_same(run(self.metric, scaled), plain)


def _with(case: Case, name: str, **arrays: Any) -> Case:
    demands = dataclasses.replace(case.demands, **arrays)
    return dataclasses.replace(case, name=name, demands=demands)


def _reordered(case: Case, order: usage_model.Indices) -> Case:
    owners = dataclasses.replace(
        case.owners,
        user_index=case.owners.user_index[order],
        node_index=case.owners.node_index[order],
    )
    moved = _with(
        case,
        'another order',
        usage=case.demands.usage[order],
        endowment=case.demands.endowment[order],
        node=case.demands.node[order],
    )
    return dataclasses.replace(moved, owners=owners)


def _assert_same(got: StageResults, expected: StageResults) -> None:
    for field in dataclasses.fields(StageResults):
        np.testing.assert_allclose(
            getattr(got, field.name),
            getattr(expected, field.name),
            rtol=_RELATIVE,
            atol=_ABSOLUTE,
            err_msg=f'stage: {field.name}',
        )


def _assert_unchanged(
    got: metric_base.Demands | metric_base.Totals,
    expected: metric_base.Demands | metric_base.Totals,
) -> None:
    for field in dataclasses.fields(got):
        np.testing.assert_array_equal(
            getattr(got, field.name),
            getattr(expected, field.name),
            err_msg=f'{type(got).__name__}.{field.name} was changed',
        )
