# SPDX-License-Identifier: Apache-2.0

"""What is in force: the configuration, the domain's choice, orders."""

import dataclasses

import pytest

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.agent.inputs import active_settings
from nova_fairness.agent.round import cycle
from nova_fairness.exchange import desired
from nova_fairness.model import caller
from tests.unit.agent import fake_host

FOUND = [1024, 1024, 1024]


class FakeDomain:
    """A node whose domain chooses what the test says."""

    def __init__(self, tmp_path):
        self.host = fake_host.FakeHost(
            tmp_path,
            fake_host.vm('a-1', 'ann'),
            fake_host.vm('a-2', 'ann'),
            fake_host.vm('b-3', 'bob'),
        )
        self.path = tmp_path / 'paused.json'
        self.desired = None
        self.orders = active_settings.SettingOrders(self.path)
        self.regime = active_settings.Regime(
            self.host.settings, self.orders, lambda: self.desired, load
        )

    def choose(self, epoch, metric, policy='feedback', origin='n1'):
        self.desired = desired.DesiredChoice(epoch, metric, policy, origin)

    def configure(self, **options):
        self.host.settings = dataclasses.replace(self.host.settings, **options)
        self.regime.configure(self.host.settings, self.host.cycle)

    def rounds(self, count):
        done = None
        for _ in range(count):
            self.regime.begin_round(self.host.cycle)
            done = self.host.rounds(1)
        return done

    def shares(self):
        return self.host.shares('a-1', 'a-2', 'b-3')


def load(settings):
    return cycle.Plugins(
        plugins.load_metric(settings.metric),
        plugins.load_policy(settings.policy),
    )


@pytest.fixture
def domain(tmp_path):
    return FakeDomain(tmp_path)


def in_force(done):
    return done.metric, done.policy, done.epoch


def test_without_a_choice_of_the_domain_the_configuration_counts(domain):
    assert in_force(domain.rounds(2)) == ('DominantShareMetric', 'feedback', 0)


def test_the_newest_choice_wins_over_the_configuration(domain):
    domain.choose(3, 'UniformMetric', 'thesis')
    assert in_force(domain.rounds(2)) == ('UniformMetric', 'thesis', 3)
    domain.configure(metric='AssetFairnessMetric')
    assert in_force(domain.rounds(1)) == ('UniformMetric', 'thesis', 3)
    domain.choose(4, 'GreedinessMetric')
    assert in_force(domain.rounds(1)) == ('GreedinessMetric', 'feedback', 4)


def test_a_metric_and_policy_that_harm_users_are_logged_once(domain, caplog):
    domain.choose(1, 'GreedinessMetric')
    domain.rounds(2)
    domain.configure(interval_s=20.0)
    domain.rounds(1)
    said = domain.regime.in_force.warning
    assert said.startswith('metric GreedinessMetric with policy feedback')
    assert caplog.messages.count(said) == 1
    domain.choose(2, 'GreedinessMetric', 'thesis')
    domain.rounds(1)
    assert domain.regime.in_force.warning == ''


def test_a_configured_harmful_metric_and_policy_are_logged_at_start(
    domain, caplog
):
    made = active_settings.Regime(
        dataclasses.replace(domain.host.settings, policy='thesis'),
        domain.orders,
        lambda: None,
        load,
    )
    assert 'policy foresight suits it' in made.in_force.warning
    assert caplog.messages == [made.in_force.warning]


def test_a_chosen_metric_leaves_other_options_unchanged(domain):
    domain.choose(1, 'UniformMetric')
    domain.configure(exempt=frozenset({'bob'}))
    assert domain.rounds(1).metric == 'UniformMetric'
    assert domain.regime.in_force.settings.exempt == {'bob'}


UNKNOWN = {
    'metric': ('NoSuchMetric', 'feedback', "no metric 'NoSuchMetric'"),
    'policy': ('UniformMetric', 'nonesuch', "no policy 'nonesuch'"),
}


@pytest.mark.parametrize(
    ('metric', 'policy', 'said'), UNKNOWN.values(), ids=list(UNKNOWN)
)
@pytest.mark.parametrize('before', [0, 2])
def test_a_plugin_that_is_not_installed_is_refused_and_all_goes_on(
    domain, caplog, before, metric, policy, said
):
    if before:
        domain.choose(before, 'AssetFairnessMetric')
    kept = in_force(domain.rounds(2))
    domain.choose(5, metric, policy)
    done = domain.rounds(2)
    assert in_force(done) == kept
    assert done.errors == ()
    assert done.epoch == before
    assert said in domain.regime.in_force.refused
    assert caplog.text.count('Setting refused') == 1
    domain.choose(6, 'UniformMetric')
    assert in_force(domain.rounds(1)) == ('UniformMetric', 'feedback', 6)
    assert domain.regime.in_force.refused == ''


def test_a_refused_choice_does_not_block_a_new_configuration(domain):
    domain.choose(5, 'NoSuchMetric')
    domain.rounds(1)
    domain.configure(metric='UniformMetric')
    assert in_force(domain.rounds(1)) == ('UniformMetric', 'feedback', 0)


def test_a_wrong_configuration_changes_nothing(domain):
    with pytest.raises(exception.UnknownPlugin):
        domain.configure(metric='NoSuchMetric')
    assert domain.rounds(1).metric == 'DominantShareMetric'


def test_a_pause_restores_values_and_continues_measuring(domain):
    domain.rounds(6)
    assert domain.shares() != FOUND
    domain.orders.pause(paused=True)
    done = domain.rounds(1)
    assert domain.shares() == FOUND
    assert (done.paused, done.enforced) == (True, False)
    assert done.tally.restored == 3
    writes = domain.host.control.writes
    done = domain.rounds(3)
    assert domain.host.control.writes == writes
    assert done.measured.heaviness.min() > 0
    assert done.decided is not None


def test_an_agent_steers_again_after_a_pause(domain):
    domain.orders.pause(paused=True)
    domain.rounds(3)
    domain.orders.pause(paused=False)
    done = domain.rounds(6)
    assert (done.paused, done.enforced) == (False, True)
    first, second, third = domain.shares()
    assert third / (first + second + third) == pytest.approx(0.5, abs=0.03)


def test_a_pause_keeps_a_bad_plugin_in_quarantine(domain):
    guard = domain.host.cycle._parts.guard
    with pytest.raises(exception.PluginMisbehaved):
        guard.call('feedback', lambda: 1 / 0)
    domain.orders.pause(paused=True)
    assert 'feedback' in domain.rounds(2).quarantined
    domain.choose(1, 'DominantShareMetric')
    assert domain.rounds(1).quarantined == {}


def test_an_observing_node_that_is_paused_and_resumed_observes(domain):
    domain.configure(enforce=False)
    domain.orders.pause(paused=True)
    domain.rounds(2)
    domain.orders.pause(paused=False)
    assert not domain.rounds(3).enforced
    assert domain.shares() == FOUND


def test_a_reset_begins_with_neutral_weights_and_no_memory(domain):
    domain.rounds(12)
    decision = domain.host.cycle._parts.decision
    assert decision.memory['feedback']
    settled = domain.shares()
    decided = domain.rounds(1).decided
    domain.orders.request_reset()
    done = domain.rounds(1)
    # What one round makes of neutral weights, not what had settled.
    assert domain.shares() != settled
    assert abs(done.decided.weights[2] - 1).max() < (
        abs(decided.weights[2] - 1).max()
    )
    first, second, third = domain.rounds(12) and domain.shares()
    assert third / (first + second + third) == pytest.approx(0.5, abs=0.03)


def test_a_round_continues_if_a_reset_cannot_be_recorded(
    domain, monkeypatch, caplog
):
    def full():
        raise exception.StateError('the disk is full')

    domain.rounds(3)
    monkeypatch.setattr(domain.host.cycle, 'restore', full)
    domain.orders.request_reset()
    assert domain.rounds(1).number == 4
    assert 'the disk is full' in caplog.text


def test_a_round_records_who_chose_the_metric_and_who_paused(domain):
    done = domain.rounds(1)
    assert done.chosen_by == done.paused_by == caller.UNKNOWN
    domain.desired = desired.DesiredChoice(
        3, 'UniformMetric', 'feedback', 'c1', '', 'u-9', 'req-1'
    )
    domain.orders.pause(caller.Asker('c2', 'u-8', 'req-2'), paused=True)
    done = domain.rounds(1)
    assert done.chosen_by == caller.Asker('c1', 'u-9', 'req-1')
    assert done.paused_by == caller.Asker('c2', 'u-8', 'req-2')
    # What cannot be loaded is chosen by nobody.
    domain.desired = desired.DesiredChoice(4, 'NoSuchMetric', 'feedback', 'c3')
    assert domain.rounds(1).chosen_by.caller == 'c1'


def test_the_promised_next_round_is_the_first_one_not_begun(domain):
    assert domain.regime.next_round == 1
    assert domain.regime.next_round == domain.rounds(1).number
    assert domain.regime.next_round == 2
