# SPDX-License-Identifier: Apache-2.0

"""Who explains never harms a round, and asks a metric once for each."""

import dataclasses
import threading

import pytest

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.agent.explain import parts as parts_module
from nova_fairness.decide import policy as policy_base
from tests.unit.agent import fake_host

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


def test_a_round_is_explained_once_however_often_somebody_asks(host):
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


def test_a_metric_that_fails_or_hangs_here_is_left_to_the_rounds(host):
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
    now_s[0] = parts_module.AGAIN_S - 1
    assert made.parts(host.rounds(1)) is None
    now_s[0] = parts_module.AGAIN_S
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
