# SPDX-License-Identifier: Apache-2.0

"""A real agent that steers real guests on a real node.

One node, one CPU for its guests, two of which are ann's and one is bob's. The
agent runs inside the node as an operator starts it, at short intervals.
"""

import json
import signal
import textwrap
import time

import pytest

from fairness_lab.testbed.guests import domain
from fairness_lab.testbed.nodes import processes
from tests.functional import agent_process
from tests.functional.agent_site import applied_weights
from tests.functional.agent_site import BOOT_S
from tests.functional.agent_site import FOUND
from tests.functional.agent_site import is_measured
from tests.functional.agent_site import is_steered
from tests.functional.agent_site import names_error

pytestmark = pytest.mark.real

PORT = 9583


@pytest.fixture
def agent(site, tmp_path):
    """An agent of the test's own, not yet started."""
    made = agent_process.Agent(site.node, tmp_path)
    yield made
    made.close()
    assert site.shares() == FOUND


@pytest.fixture(scope='class')
def serving(site, tmp_path_factory):
    """An agent with an endpoint that tests of one class share."""
    made = agent_process.Agent(
        site.node, tmp_path_factory.mktemp('serving'), PORT
    )
    made.start()
    made.await_round(is_steered)
    yield made
    made.close()
    assert site.shares() == FOUND


# A life of the agent -------------------------------------------------------


@pytest.mark.parametrize(
    'number',
    [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)],
)
def test_a_stopped_agent_restores_the_values_it_moved(site, agent, number):
    agent.start()
    steered = agent.await_round(is_steered)
    assert applied_weights(steered).keys() == FOUND.keys()
    assert site.shares() != FOUND
    assert agent.stop(number) == 0
    assert site.shares() == FOUND
    assert '3 controls have the values they were found with' in agent.log
    assert 'WARNING' not in agent.log
    assert processes.wait_until(lambda: not agent.helpers(), BOOT_S)


def test_an_agent_goes_on_where_a_killed_one_ended(site, agent):
    agent.start()
    agent.await_round(is_steered)
    agent.kill()
    held = site.shares()
    assert held != FOUND
    assert all(guest.is_running() for guest in site.guests.values())

    agent.start()
    first = agent.await_round(lambda done: 'weights' in done['instances'][0])
    for name, shares in applied_weights(first).items():
        # Less than one step; neutral would be several.
        assert shares == pytest.approx(held[name], rel=0.3), name
    assert agent.stop() == 0
    assert site.shares() == FOUND


def test_an_agent_stopped_during_its_start_restores_values(site, agent):
    agent.start()
    agent.await_round(is_steered)
    agent.kill()
    agent.start()
    agent.await_log('Running privsep helper', 2)
    assert agent.stop() == 0
    assert site.shares() == FOUND


def test_restore_undoes_the_values_a_killed_agent_left(site, agent):
    agent.start()
    agent.await_round(is_steered)
    agent.kill()
    assert site.shares() != FOUND
    first = agent.run('restore')
    assert (first.returncode, first.stdout) == (
        0,
        '3 controls restored, 0 failed\n',
    )
    assert site.shares() == FOUND
    again = agent.run('restore')
    assert (again.returncode, again.stdout) == (
        0,
        '0 controls restored, 0 failed\n',
    )


def test_an_agent_that_only_observes_changes_nothing(site, agent):
    agent.configure(enforce=False)
    agent.start()
    done = agent.await_round(
        lambda done: not done['enforced'] and wanted_ratio(done) > 1.4
    )
    assert applied_weights(done) == FOUND
    assert site.shares() == FOUND
    assert agent.stop() == 0
    assert all(item['changes'] == 0 for item in agent.rounds())


def wanted_ratio(done):
    """Say how much more bob would get than one VM of ann's."""
    wanted = {
        item['name']: item['wanted']['cpu']
        for item in done['instances']
        if 'wanted' in item
    }
    if wanted.keys() != FOUND.keys():
        return 0
    return wanted['bob-1'] / wanted['ann-2']


def test_a_changed_configuration_is_taken_over_at_sighup(site, agent):
    agent.start()
    agent.await_round(is_steered)

    agent.configure(metric='GreedinessMetric', policy='thesis')
    agent.send(signal.SIGHUP)
    agent.await_round(
        lambda done: (
            (done['metric'], done['policy']) == ('GreedinessMetric', 'thesis')
            and max(applied_weights(done).values()) <= 100
        )
    )

    agent.configure(metric='NoSuchMetric')
    agent.send(signal.SIGHUP)
    agent.await_log("no metric 'NoSuchMetric'; installed: AssetFairness")
    done = agent.await_round(lambda done: 'weights' in done['instances'][0])
    assert done['metric'] == 'GreedinessMetric'

    agent.configure(metric='DominantShareMetric', enforce='perhaps')
    agent.send(signal.SIGHUP)
    agent.await_log('Configuration: the new one was refused', 2)
    done = agent.await_round(lambda done: 'weights' in done['instances'][0])
    assert done['metric'] == 'GreedinessMetric'

    agent.configure(policy='feedback', enforce=False)
    agent.send(signal.SIGHUP)
    done = agent.await_round(lambda done: not done['enforced'])
    assert applied_weights(done) == FOUND
    assert site.shares() == FOUND

    bob = domain.owner_id('user bob')
    agent.configure(enforce=True, exempt=bob)
    agent.send(signal.SIGHUP)
    agent.await_round(
        lambda done: done['enforced'] and changed(done) == {'ann-1', 'ann-2'}
    )
    agent.configure(exempt='')
    agent.send(signal.SIGHUP)
    agent.await_round(lambda done: 'bob-1' in changed(done))
    agent.configure(exempt=bob)
    agent.send(signal.SIGHUP)
    done = agent.await_round(lambda done: 'bob-1' not in changed(done))
    assert changed(done) == {'ann-1', 'ann-2'}
    assert agent.stop() == 0


def changed(done):
    held = applied_weights(done)
    return {name for name in held if held[name] != FOUND[name]}


# Plugins of others ---------------------------------------------------------

BROKEN = textwrap.dedent("""
    import time
    import numpy as np
    from nova_fairness.measure import metric

    class Raises(metric.Metric):
        description = 'Raises.'
        def instances(self, demands):
            raise RuntimeError('broken on purpose')

    class Gives(metric.Metric):
        description = 'Gives no numbers.'
        def instances(self, demands):
            return np.full(len(demands.usage), np.nan)

    class Grows(metric.Metric):
        description = 'Gives too many.'
        def instances(self, demands):
            return np.zeros(len(demands.usage) + 1)

    class Sleeps(metric.Metric):
        description = 'Comes too late.'
        def instances(self, demands):
            time.sleep(3)
            return np.zeros(len(demands.usage))

    class Spins(metric.Metric):
        description = 'Computes too long.'
        def instances(self, demands):
            end = time.monotonic() + 3
            while time.monotonic() < end:
                pass
            return np.zeros(len(demands.usage))
""")

MISBEHAVIOURS = {
    'Raises': 'raised RuntimeError: broken on purpose',
    'Gives': 'finite',
    'Grows': 'shape',
    'Sleeps': 'took longer than its deadline of 0.3 s',
    'Spins': 'took longer than its deadline of 0.3 s',
}


@pytest.fixture(scope='class')
def with_plugins(site, tmp_path_factory):
    """An agent beside which another distribution brings bad metrics."""
    made = agent_process.Agent(
        site.node,
        tmp_path_factory.mktemp('plugins'),
        PORT + 1,
        metric_deadline=0.3,
    )
    agent_process.write_distribution(made.plugins, BROKEN, list(MISBEHAVIOURS))
    made.start()
    made.await_round(is_steered)
    yield made
    made.close()
    assert site.shares() == FOUND


class TestMetricsOfOthers:
    @pytest.mark.parametrize(('metric', 'why'), MISBEHAVIOURS.items())
    def test_a_metric_that_misbehaves_moves_no_weight_until_set_again(
        self, site, with_plugins, metric, why
    ):
        agent = with_plugins
        agent.configure(metric=metric)
        agent.send(signal.SIGHUP)
        first = agent.await_round(lambda done: metric in done['quarantined'])
        assert why in first['quarantined'][metric]
        kept = site.shares()
        third = agent.await_round(lambda done: names_error(done, metric), 3)
        assert applied_weights(third) == kept
        assert third['round'] - first['round'] < 10
        assert metric in json.loads(agent.get('/status'))['quarantined']
        told = f'plugin_quarantined_bool{{plugin="{metric}"}} 1.0'
        assert told in agent.get('/metrics')
        assert agent.log.count(f'{metric}: in quarantine for 60 s') == 1

        agent.send(signal.SIGHUP)  # sets it again: it runs, and is caught
        agent.await_log(f'{metric}: in quarantine for 60 s', 2)

        agent.configure(metric='DominantShareMetric')
        agent.send(signal.SIGHUP)
        agent.await_round(
            lambda done: (
                done['metric'] == 'DominantShareMetric'
                and 'weights' in done['instances'][0]
                and not done['errors']
            )
        )


# What happens around a running agent ---------------------------------------


def by_name(done):
    return {item['name']: item for item in done['instances']}


class TestAroundARunningAgent:
    def test_the_endpoint_tells_the_newest_round(self, serving):
        known = serving.await_round(is_steered)
        told = json.loads(serving.get('/status'))
        assert told['round'] >= known['round']
        assert {item['name'] for item in told['instances']} == set(FOUND)
        text = serving.get('/metrics')
        assert 'nova_fairness_instances 3.0' in text
        assert 'nova_fairness_enforced_bool 1.0' in text

    def test_a_frozen_qemu_costs_other_vms_no_round(self, site, serving):
        site.guests['ann-1'].freeze()
        try:
            first = serving.await_round(
                lambda done: is_measured(done, 'ann-2', 'bob-1')
            )
            last = serving.await_round(
                lambda done: is_measured(done, 'ann-2', 'bob-1'), 4
            )
            assert len(last['instances']) == 3
            assert last['duration_s'] < 1
            assert last['round'] - first['round'] < 10
        finally:
            site.guests['ann-1'].thaw()
        serving.await_round(is_steered)

    def test_a_paused_guest_is_still_there_and_uses_nothing(
        self, site, serving
    ):
        with site.domain('bob-1') as bob:
            bob.suspend()
            try:
                serving.await_round(
                    lambda done: (
                        len(done['instances']) == 3
                        and not by_name(done)['bob-1']['wanting']['cpu']
                    ),
                    3,
                )
            finally:
                bob.resume()
        serving.await_round(is_steered)

    def test_guests_start_and_end_while_others_are_steered(
        self, site, serving
    ):
        cid = site.start('cid-1')
        try:
            serving.await_round(
                lambda done: (
                    'cid-1' in by_name(done)
                    and by_name(done)['cid-1'].get('wanted')
                    and is_measured(done, 'cid-1', *FOUND)
                )
            )
        finally:
            site.destroy(cid)
        done = serving.await_round(lambda done: 'cid-1' not in by_name(done))
        assert is_measured(done, *FOUND)
        assert done['errors'] == []
        assert done['user_count'] == 2

    def test_a_restart_of_libvirt_costs_no_round(self, site, serving):
        site.node.stop_libvirt()
        try:
            first = serving.await_round(
                lambda done: names_error(done, 'libvirt')
            )
            last = serving.await_round(
                lambda done: (
                    names_error(done, 'libvirt') and is_measured(done, *FOUND)
                ),
                3,
            )
            assert last['round'] - first['round'] < 10
        finally:
            site.node.start_libvirt()
        serving.await_round(
            lambda done: is_steered(done) and not done['errors']
        )

    def test_an_agent_paused_by_a_signal_repeats_no_missed_round(
        self, serving
    ):
        before = serving.await_round(is_steered)
        serving.send(signal.SIGSTOP)
        try:
            time.sleep(3.4 * agent_process.INTERVAL_S)
        finally:
            serving.send(signal.SIGCONT)
        late = serving.await_round(lambda done: done['missed'] > 0)
        after = serving.await_round(lambda done: done['missed'] == 0, 2)
        assert late['missed'] >= 2
        assert late['round'] - before['round'] < 10
        assert after['time_s'] > late['time_s']
        cpus = len(after['node']['cpus'])
        for done in (late, after):
            capacity = (
                done['node']['capacity']['cpu_time'] * done['interval_s']
            )
            used = [item['usage']['cpu_time'] for item in done['instances']]
            assert min(used) >= 0
            assert sum(used) <= capacity * 1.2, cpus

    def test_a_second_agent_is_refused_and_touches_nothing(
        self, serving, site
    ):
        before = serving.await_round(is_steered)
        for second in (serving.run(), serving.run('restore')):
            assert second.returncode == 1
            assert f'(process {serving.pid} of user 0)' in second.stderr
            assert 'Traceback' not in second.stderr
        after = serving.await_round(is_steered)
        assert after['drifted'] == before['drifted'] == 0
        assert site.shares() != FOUND

    def test_a_metrics_port_in_use_is_named(self, serving, site, tmp_path):
        agent = agent_process.Agent(
            site.node, tmp_path, PORT, connection_uri='qemu:///session'
        )
        refused = agent.run()
        assert refused.returncode == 2
        assert f'127.0.0.1:{PORT}' in refused.stderr
        assert 'Traceback' not in refused.stderr


# Bad input -----------------------------------------------------------------


@pytest.mark.parametrize(
    ('options', 'code', 'said'),
    [
        ({'interval': 'soon'}, 2, 'interval'),
        ({'metric': 'NoSuch'}, 2, 'installed: AssetFairnessMetric'),
        ({'policy': 'NoSuch'}, 2, 'installed: feedback, foresight, '),
        ({'state_path': '/dev/null/state'}, 1, 'state_path = /dev/null'),
    ],
)
def test_an_unusable_option_is_named(agent, options, code, said):
    agent.configure(**options)
    refused = agent.run()
    assert refused.returncode == code, refused.stderr
    assert said in refused.stderr
    assert 'Traceback' not in refused.stderr


def test_without_libvirt_rounds_go_on(agent):
    nowhere = agent.directory / 'no-such-socket'
    agent.configure(connection_uri=f'qemu+unix:///system?socket={nowhere}')
    agent.start()
    done = agent.await_round(lambda done: names_error(done, str(nowhere)), 2)
    assert done['instances'] == []
    assert agent.stop() == 0


def test_restore_reports_an_unreadable_record(agent):
    agent.state.mkdir()
    (agent.state / 'found.json').write_text('[')
    done = agent.run('restore')
    assert done.returncode == 1
    assert 'found.json.corrupt-1' in done.stderr
    assert done.stdout == '0 controls restored, 0 failed\n'


READ_ONLY = """
path=$1; shift
mount --bind "$path" "$path" && mount -o remount,ro,bind "$path" && exec "$@"
"""


def test_control_groups_that_cannot_be_written_leave_all_as_found(site, agent):
    # Of a v1 hierarchy if there is one, as the agent chooses.
    path = max(
        site.node.groups.hierarchies,
        key=lambda item: ('cpu' in item.controllers, not item.controllers),
    ).path
    agent.start(['unshare', '-m', 'sh', '-c', READ_ONLY, 'sh', str(path)])
    done = agent.await_round(lambda done: len(done['errors']) == 3, 2)
    for guest in site.guests.values():
        assert names_error(done, guest.uuid)
    assert all('Read-only file system' in text for text in done['errors'])
    assert site.shares() == FOUND
    assert agent.stop() == 0


def test_state_that_cannot_be_read_is_begun_again(site, agent):
    agent.state.mkdir()
    for name in ('found.json', 'policies.json'):
        (agent.state / name).write_text('{"version": 1, "fou')
    agent.start()
    agent.await_round(is_steered)
    assert 'found.json' in agent.log
    assert 'policies start without memory' in agent.log
    assert (agent.state / 'found.json.corrupt-1').exists()
    assert agent.stop() == 0
    # What was found is lost with the record: the kernel's default it is.
    assert set(site.shares().values()) == {1024}
    with site.domain('ann-1') as ann:
        ann.setSchedulerParameters({'cpu_shares': FOUND['ann-1']})
