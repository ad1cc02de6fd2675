# SPDX-License-Identifier: Apache-2.0

"""The parts of a heaviness are what the metric itself added."""

import dataclasses
import threading

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.agent.explain import parts
from nova_fairness.agent.explain import parts as parts_module
from nova_fairness.decide import policy as policy_base
from nova_fairness.measure import metric as metric_base
from nova_fairness.model import node
from nova_fairness.model import report
from nova_fairness.model import resources
from tests.unit.agent import fake_host

R = resources.RESOURCES
ADDITIVE = ['GreedinessMetric', 'AssetFairnessMetric', 'UniformMetric']


class FakeExchange:
    """Another node reports the same in every round."""

    def __init__(self, metric, users):
        self.metric = metric
        self.users = users
        self.own = None

    def publish(self, own):
        self.own = own

    def view(self, now_s, metric):
        there = report.NodeReport(
            host='there',
            boot_id='x',
            sequence=1,
            interval_s=10.0,
            metric=self.metric,
            resources=node.NodeResources(
                'there', (0, 1), 1.0, R.vector(cpu_time=2.0, memory=2**33)
            ),
            users=self.users,
        )
        reports = {'there': there}
        if self.own is not None:
            reports['fake'] = self.own
        return report.View(
            dict(sorted(reports.items())), dict.fromkeys(reports, 1.0), {}
        )


def elsewhere(heaviness, **used):
    return report.UserTotals(
        heaviness, R.vector(cpu_time=5.0, memory=2**30), R.vector(**used), 2
    )


def measured(tmp_path, metric, users=None, wants=()):
    host = fake_host.FakeHost(
        tmp_path,
        fake_host.vm('a-1', 'ann'),
        fake_host.vm('a-2', 'ann'),
        fake_host.vm('b-3', 'bob'),
        metric=metric,
    )
    host.cpu.wants = dict(wants)
    if users is not None:
        host.cycle._parts.measurement._exchange = FakeExchange(metric, users)
    return host.rounds(5).measured


def parts_of(done, name):
    return parts.parts(plugins.load_metric(name), done)


@pytest.mark.parametrize('name', ADDITIVE)
@pytest.mark.parametrize('alone', [True, False])
def test_the_parts_of_an_additive_metric_sum_to_its_heaviness(
    tmp_path, name, alone
):
    users = {
        'ann': elsewhere(0.7, cpu_time=4.0),
        'cid': elsewhere(0.2, memory=2.0**31),
    }
    done = measured(
        tmp_path, name, None if alone else users, {'a-1': 0.1, 'b-3': 1.0}
    )
    found = parts_of(done, name)
    assert found.additive.all()
    np.testing.assert_allclose(
        found.by_resource.sum(axis=1) + found.elsewhere,
        done.heaviness,
        atol=1e-9,
    )
    if name == 'UniformMetric':
        assert not found.by_resource.any()
    else:
        assert found.by_resource.any()


def test_use_on_other_nodes_is_a_part_of_its_own(tmp_path):
    users = {'ann': elsewhere(0.7, cpu_time=4.0)}
    done = measured(tmp_path, 'GreedinessMetric', users)
    found = parts_of(done, 'GreedinessMetric')
    assert found.elsewhere == pytest.approx([0.7, 0.7, 0.0])


def test_greediness_is_part_of_the_resource_where_it_occurred(tmp_path):
    """One VM takes more CPU than it is endowed with; nobody else moves."""
    done = measured(
        tmp_path, 'GreedinessMetric', None, {'a-1': 0.0, 'a-2': 0.0}
    )
    found = parts_of(done, 'GreedinessMetric')
    cpu = R.index('cpu_time')
    of_bob = found.by_resource[2]
    # By hand: 3 s of 10 s endowed, 10 s used, 2 users; charged for the VM and
    # for its user, who also has 3 1/3 s endowed and 5 s of quota.
    factor = 2 / (len(R) * 10.0)
    used = done.usage.amounts[2, cpu]
    charge = (used - 10 / 3) * factor
    assert of_bob[cpu] == pytest.approx(
        2 * charge + (10 / 3 - 5.0) * factor, rel=1e-6
    )


def test_the_largest_part_is_the_heaviness_of_a_maximum_metric(
    tmp_path,
):
    done = measured(tmp_path, 'DominantShareMetric', {})
    found = parts_of(done, 'DominantShareMetric')
    np.testing.assert_allclose(
        found.by_resource.max(axis=1), done.heaviness, rtol=1e-9
    )
    assert not found.additive.any()
    assert not found.elsewhere.any()


def test_parts_of_dominant_shares_are_the_parts_of_the_quota(tmp_path):
    done = measured(tmp_path, 'DominantShareMetric')
    found = parts_of(done, 'DominantShareMetric')
    owner = done.ownership.user_index
    np.testing.assert_allclose(
        found.by_resource, (done.user_usage / done.quota)[owner], rtol=1e-9
    )


def test_without_the_input_of_the_metric_nothing_is_explained(tmp_path):
    done = measured(tmp_path, 'GreedinessMetric')
    bare = dataclasses.replace(done, basis=None)
    assert parts_of(bare, 'GreedinessMetric') is None


class FakeAdder(metric_base.Metric):
    """Any weights of resources that add up."""

    description = 'By the test.'

    def __init__(self, factors):
        self.factors = np.array(factors)

    def instances(self, demands):
        return np.sqrt(demands.usage) @ self.factors

    def users(self, totals):
        return totals.instance_heaviness + totals.quota @ self.factors * 1e-9


@hypothesis.given(st.lists(st.floats(-5, 5), min_size=len(R), max_size=len(R)))
@hypothesis.settings(max_examples=25, deadline=None)
def test_an_additive_metric_is_found_to_be_additive(tmp_path_factory, factors):
    metric = FakeAdder(factors)
    done = measured(tmp_path_factory.mktemp('h'), 'UniformMetric')
    own = metric.instances(
        metric_base.Demands(
            done.usage.amounts,
            done.endowment,
            done.supply,
            done.ownership.node_index,
            2,
        )
    )
    sums = np.bincount(done.ownership.user_index, own)
    users = sums + done.quota @ metric.factors * 1e-9
    given = dataclasses.replace(
        done,
        instance_heaviness=own,
        heaviness=users[done.ownership.user_index] + own,
        basis=dataclasses.replace(done.basis, user_instance_heaviness=sums),
    )
    found = parts.parts(metric, given)
    assert found.additive.all()
    np.testing.assert_allclose(
        found.by_resource.sum(axis=1), given.heaviness, rtol=1e-6, atol=1e-6
    )


ENOUGH_S = 60  # for broken code only


@pytest.fixture
def host(tmp_path):
    return fake_host.FakeHost(
        tmp_path,
        fake_host.vm('a-1', 'ann'),
        fake_host.vm('b-2', 'bob'),
        metric='GreedinessMetric',
    )


class FakeLoader:
    """Loads the real metric, or what the test put in its place."""

    def __init__(self):
        self.loaded = []
        self.instead = None

    def __call__(self, name):
        self.loaded.append(name)
        return self.instead or plugins.load_metric(name)


def test_a_round_is_explained_once_for_many_callers(host):
    load = FakeLoader()
    made = parts_module.Explainer(load)
    done = host.rounds(3)
    first = made.parts(done)
    assert made.parts(done) is first
    assert made.parts(host.rounds(1)) is not first
    assert load.loaded == ['GreedinessMetric']
    made.stop()


def test_another_metric_is_loaded_when_it_is_in_force(host):
    load = FakeLoader()
    made = parts_module.Explainer(load)
    made.parts(host.rounds(3))
    host.change(metric='AssetFairnessMetric')
    assert made.parts(host.rounds(1)).additive.all()
    assert load.loaded == ['GreedinessMetric', 'AssetFairnessMetric']


def test_before_anything_is_measured_nothing_is_known(host):
    assert parts_module.Explainer().parts(host.rounds(1)) is None


def test_a_metric_in_quarantine_is_not_run(host):
    load = FakeLoader()
    done = dataclasses.replace(
        host.rounds(3), quarantined={'GreedinessMetric': 'raised'}
    )
    assert parts_module.Explainer(load).parts(done) is None
    assert load.loaded == []


class FakeWild:
    """Not what a metric should be."""

    def __init__(self, act):
        self.instances = lambda demands: act()


def test_a_metric_that_fails_or_hangs_explains_nothing(host):
    never = threading.Event()
    for act in (lambda: 1 / 0, never.wait):
        load = FakeLoader()
        load.instead = FakeWild(act)
        made = parts_module.Explainer(load, deadline_s=0.05)
        assert made.parts(host.rounds(3)) is None
        # It is not tried again in the next round.
        assert made.parts(host.rounds(1)) is None
        assert host.rounds(1).quarantined == {}
    never.set()


def test_a_metric_that_failed_is_tried_again_after_a_while(host):
    now_s = [0.0]
    load = FakeLoader()
    load.instead = FakeWild(lambda: 1 / 0)
    made = parts_module.Explainer(load, clock=lambda: now_s[0])
    assert made.parts(host.rounds(3)) is None
    load.instead.instances = plugins.load_metric('GreedinessMetric').instances
    load.instead.users = plugins.load_metric('GreedinessMetric').users
    load.instead.combine = plugins.load_metric('GreedinessMetric').combine
    now_s[0] = parts_module.RETRY_AFTER_S - 1
    assert made.parts(host.rounds(1)) is None
    now_s[0] = parts_module.RETRY_AFTER_S
    assert made.parts(host.rounds(1)).additive.all()


def test_another_metric_does_not_wait_for_the_one_that_failed(host):
    load = FakeLoader()
    load.instead = FakeWild(lambda: 1 / 0)
    made = parts_module.Explainer(load, clock=lambda: 0.0)
    assert made.parts(host.rounds(3)) is None
    load.instead = None
    host.change(metric='AssetFairnessMetric')
    assert made.parts(host.rounds(1)).additive.all()


def test_a_plugin_that_is_gone_explains_nothing(host):
    def gone(name):
        raise exception.UnknownPlugin(name)

    made = parts_module.Explainer(gone, load_policy=gone)
    done = host.rounds(3)
    assert made.parts(done) is None
    assert made.preset(done) is policy_base.Preset.DEFAULT


def test_the_preset_is_that_of_the_policy(host):
    made = parts_module.Explainer()
    done = host.rounds(3)
    assert made.preset(done) is policy_base.Preset.DEFAULT
    thesis = dataclasses.replace(done, policy='thesis')
    assert made.preset(thesis) is policy_base.Preset.THESIS
