# SPDX-License-Identifier: Apache-2.0

"""What is foreseen is what comes when it is enforced."""

import dataclasses

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.agent.round import elsewhere
from nova_fairness.agent.round import preview
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.runtime import guard
from tests.unit.agent import fake_host

METRICS = (
    'AssetFairnessMetric',
    'DominantShareMetric',
    'GreedinessMetric',
    'UniformMetric',
)
LATE = 60
"""Rounds after which every policy has come to its end."""

NEAR_CPUS = 0.02

OWNERS = ('ann', 'bob')


def vms():
    return (
        fake_host.vm('a-1', 'ann'),
        fake_host.vm('a-2', 'ann'),
        fake_host.vm('b-3', 'bob'),
    )


@pytest.fixture
def make_host(tmp_path):
    def make(name, **options):
        path = tmp_path / name
        path.mkdir()
        return fake_host.FakeHost(path, *vms(), **options)

    return make


@pytest.fixture
def preview_of():
    previewers = []

    def tell(host, *names, done=None, preferences=None):
        previewer = preview.Previewer(host.cycle._parts.decision._scales)
        previewers.append(previewer)
        return previewer.previews(
            done or host.rounds(6), host.settings, preferences or {}, names
        )

    yield tell
    for item in previewers:
        item.stop()


def would_get(said):
    return [vm['would_get_cpus'] for vm in said['instances']]


@pytest.mark.repeated
@pytest.mark.parametrize('policy', ['feedback', 'foresight'])
@pytest.mark.parametrize('metric', METRICS)
@pytest.mark.parametrize('first', [1.0, 0.2])
def test_previewed_changes_occur_when_enforced(
    make_host, preview_of, policy, metric, first
):
    observing = make_host('observing', policy=policy, enforce=False)
    observing.cpu.wants = {'a-1': first}
    [said] = preview_of(observing, metric)
    assert (said['problem'], said['settled']) == ('', True)
    assert observing.control.writes == 0
    enforcing = make_host('enforcing', policy=policy, metric=metric)
    enforcing.cpu.wants = {'a-1': first}
    done = enforcing.rounds(LATE)
    got = done.measured.usage.newest[:, fake_host.CPU] / fake_host.INTERVAL_S
    assert would_get(said) == pytest.approx(got, abs=NEAR_CPUS)
    assert [vm['cpu_units'] for vm in said['instances']] == pytest.approx(
        enforcing.shares('a-1', 'a-2', 'b-3'), rel=0.06
    )


def test_the_thesis_policy_can_be_previewed(make_host, preview_of):
    observing = make_host('observing', policy='thesis', enforce=False)
    [said] = preview_of(observing, 'GreedinessMetric')
    enforcing = make_host(
        'enforcing', policy='thesis', metric='GreedinessMetric'
    )
    enforcing.rounds(LATE)
    assert [vm['cpu_units'] for vm in said['instances']] == (
        enforcing.shares('a-1', 'a-2', 'b-3')
    )


def test_a_preview_reports_a_policy_that_does_not_settle(
    make_host, preview_of
):
    host = make_host('observing', policy='thesis', enforce=False)
    [said] = preview_of(host, 'DominantShareMetric')
    assert not said['settled']
    assert said['rounds_count'] == preview.MAX_ROUNDS


@pytest.fixture
def preview_after_varying_rounds(make_host):
    """A previewer that sees rounds in which wants go up and down."""
    host = make_host('observing', enforce=False)
    previewer = preview.Previewer(host.cycle._parts.decision._scales)

    def see(rounds, metric=METRICS[1]):
        for number in range(rounds):
            host.cpu.wants = {'a-1': 0.2 + 0.8 * (number % 2)}
            done = host.rounds(1)
            wall_s = done.number * fake_host.INTERVAL_S
            previewer.add_round(dataclasses.replace(done, wall_s=wall_s))
        [said] = previewer.previews(done, host.settings, {}, [metric])
        return said

    yield see
    previewer.stop()


@pytest.mark.parametrize('metric', METRICS)
def test_two_previews_of_a_host_within_seconds_agree(
    preview_after_varying_rounds, metric
):
    first, second = (
        preview_after_varying_rounds(21, metric),
        preview_after_varying_rounds(2, metric),
    )
    assert first['problem'] == ''
    pairs = [
        *zip(first['instances'], second['instances'], strict=True),
        *((first['users'][each], second['users'][each]) for each in OWNERS),
    ]
    for one, other in pairs:
        for key in ('would_get_cpus', 'change_cpus'):
            assert one[key] == pytest.approx(other[key], abs=NEAR_CPUS)


def test_a_previewed_change_that_varies_between_rounds_has_a_spread(
    preview_after_varying_rounds,
):
    said = preview_after_varying_rounds(1)
    assert said['problem'] == preview.NOT_MEASURED
    said = preview_after_varying_rounds(2)
    assert said['sampled_rounds_count'] == 2
    said = preview_after_varying_rounds(20)
    spreads = [vm['change_spread_cpus'] for vm in said['instances']]
    assert min(spreads) > 0.01
    changes = [vm['change_cpus'] for vm in said['instances']]
    assert sum(changes) == pytest.approx(0.0, abs=1e-9)
    # What one VM of a user gains its other one loses in part.
    assert said['users']['ann']['change_spread_cpus'] < sum(spreads[:2])


def test_only_rounds_of_the_last_minutes_count(preview_after_varying_rounds):
    count = round(preview.MAX_SAMPLE_AGE_S / fake_host.INTERVAL_S)
    assert (
        preview_after_varying_rounds(count + 9)['sampled_rounds_count']
        == count
    )


def test_a_preview_uses_one_of_many_short_rounds(make_host):
    host = make_host('observing', enforce=False)
    previewer = preview.Previewer(host.cycle._parts.decision._scales)
    done = host.rounds(3)
    for second in range(35):
        previewer.add_round(dataclasses.replace(done, wall_s=1000.0 + second))
    assert [each.wall_s for each in previewer._samples] == [
        1000, 1010, 1020, 1030
    ]  # fmt: skip
    # A clock that went back begins anew.
    previewer.add_round(dataclasses.replace(done, wall_s=500.0))
    assert [each.wall_s for each in previewer._samples] == [500]


def test_a_preview_without_earlier_rounds_has_no_spread(make_host, preview_of):
    [said] = preview_of(make_host('observing', enforce=False), METRICS[1])
    assert said['sampled_rounds_count'] == 1
    for one in (*said['instances'], *said['users'].values()):
        assert one['change_spread_cpus'] is None


def test_a_preview_treats_new_vms_as_they_are_now(make_host):
    host = make_host('observing', enforce=False)
    previewer = preview.Previewer(host.cycle._parts.decision._scales)
    done = host.rounds(3)
    sample = preview.CpuSample.from_round(done)
    less = {
        key: sample.use_and_want[key] for key in list(sample.use_and_want)[:1]
    }
    previewer._samples = (
        dataclasses.replace(sample, use_and_want=less),
        sample,
    )
    [said] = previewer.previews(done, host.settings, {}, [METRICS[1]])
    previewer.stop()
    assert said['problem'] == ''
    assert [vm['change_spread_cpus'] for vm in said['instances']] == (
        pytest.approx([0.0] * 3)
    )


def test_foreseen_gains_and_losses_add_up_to_zero(make_host, preview_of):
    for said in preview_of(make_host('observing', enforce=False), *METRICS):
        changes = [vm['change_cpus'] for vm in said['instances']]
        assert sum(changes) == pytest.approx(0.0, abs=1e-9)
        users = said['users']
        assert list(users) == ['ann', 'bob']
        assert users['ann']['instances_here_count'] == 2
        assert users['ann']['change_cpus'] == pytest.approx(sum(changes[:2]))


def test_without_competition_no_user_gains_or_loses(make_host, preview_of):
    host = make_host('observing', enforce=False)
    host.cpu.wants = dict.fromkeys(('a-1', 'a-2', 'b-3'), 0.2)
    for said in preview_of(host, *METRICS):
        assert said['settled']
        assert [vm['change_cpus'] for vm in said['instances']] == (
            pytest.approx([0.0] * 3)
        )


def test_an_exempt_vm_is_not_written(make_host, preview_of):
    exempt = frozenset({'a-1'})
    host = make_host('observing', enforce=False, exempt=exempt)
    [said] = preview_of(host, 'DominantShareMetric')
    unwritten = [vm['cpu_units'] is None for vm in said['instances']]
    assert unwritten == [True, False, False]


def test_a_preview_gives_best_effort_vms_the_spare_cpu_time(
    make_host, preview_of
):
    host = make_host('spare')
    host.best_effort.add('a-2')
    (said,) = preview_of(host, 'DominantShareMetric')
    found = {item['uuid']: item for item in said['instances']}
    assert found['a-2']['cpu_units'] == 0
    assert found['a-2']['would_get_cpus'] < 0.01
    for uuid in ('a-1', 'b-3'):
        assert found[uuid]['would_get_cpus'] == pytest.approx(0.5, abs=0.02)


def test_a_preview_respects_preferences_of_owners(make_host, preview_of):
    host = make_host('observing', enforce=False)
    [said] = preview_of(host, 'DominantShareMetric', preferences={'a-1': 3.0})
    one, other, _ = would_get(said)
    assert one == pytest.approx(3 * other, rel=0.05)


class FakeOthers(fake_host.base.LoopbackExchange):
    """A domain in which bob has a busy VM on another node."""

    def view(self, now_s, metric=''):
        own = super().view(now_s, metric)
        said = own.reports.get('fake')
        if said is None:
            return own
        table = report.UserTable.of(said.users)
        row = table.ids.index('bob')
        other = dataclasses.replace(
            said,
            host='other',
            resources=dataclasses.replace(said.resources, host='other'),
            users=report.UserTable(
                ids=('bob',),
                instance_heaviness=table.instance_heaviness[[row]],
                endowment=table.endowment[[row]],
                usage=table.usage[[row]] * 3,
                instances=table.instances[[row]],
            ),
        )
        return report.View(
            {'fake': said, 'other': other}, {**own.age_s, 'other': 0.0}, {}
        )


@pytest.mark.parametrize('metric', METRICS[:3])
def test_a_preview_counts_use_on_other_nodes(make_host, preview_of, metric):
    alone = make_host('alone', enforce=False)
    among = make_host('among', enforce=False, exchange=FakeOthers())
    [first], [second] = preview_of(alone, metric), preview_of(among, metric)
    assert second['problem'] == ''
    assert would_get(second)[2] < would_get(first)[2] - NEAR_CPUS


def test_only_users_with_vms_elsewhere_are_heavy_there(make_host):
    host = make_host('among', enforce=False, exchange=FakeOthers())
    done = host.rounds(6)
    scales = host.cycle._parts.decision._scales
    start = preview.PreviewInput(
        done, done.measured, host.settings, scales, {}, ()
    )
    given = preview.parts.metric_input(done.measured)
    metric = plugins.load_metric(done.metric)
    bob = done.measured.ownership.users.index('bob')
    for heavy in (
        preview._reported_elsewhere(start, given),
        elsewhere.estimated_elsewhere(
            done.node.host, done.metric, done.measured, given.totals, metric
        ),
    ):
        assert np.flatnonzero(heavy).tolist() == [bob]


def test_a_preview_before_the_first_measurement_says_so(make_host, preview_of):
    host = make_host('observing', enforce=False)
    [said] = preview_of(host, 'DominantShareMetric', done=host.rounds(1))
    assert said['problem'] == preview.NOT_MEASURED
    assert (said['users'], said['instances']) == ({}, [])


def test_a_preview_on_a_node_without_cpu_control_says_so(make_host):
    host = make_host('observing', enforce=False)
    [said] = preview.Previewer({}).previews(
        host.rounds(3), host.settings, {}, ['UniformMetric']
    )
    assert said['problem'] == preview.NO_CONTROL


class Wild(plugins.metric.Metric):
    """Raises whenever it is asked."""

    description = 'Wild.'

    def __init__(self):
        self.calls = 0

    def instances(self, demands):
        self.calls += 1
        raise ZeroDivisionError('by the test')


def test_a_preview_names_a_failing_metric_and_skips_it_for_a_while(
    make_host, monkeypatch
):
    host, wild, now = make_host('observing', enforce=False), Wild(), [0.0]
    done = host.rounds(3)
    monkeypatch.setattr(preview.plugins, 'load_metric', lambda name: wild)
    previewer = preview.Previewer(
        host.cycle._parts.decision._scales, clock=lambda: now[0]
    )
    for _ in range(2):
        [said] = previewer.previews(done, host.settings, {}, ['Wild'])
        assert 'ZeroDivisionError: by the test' in said['problem']
    assert wild.calls == 1
    now[0] = preview.RETRY_AFTER_S
    previewer.previews(done, host.settings, {}, ['Wild'])
    previewer.stop()
    assert wild.calls == 2
    assert host.cycle._parts.guard.quarantined == {}


def test_a_preview_refuses_an_incomplete_round(make_host):
    host = make_host('observing', enforce=False)
    done = host.rounds(3)
    poor = dataclasses.replace(done.measured, wanted=None)
    scales = host.cycle._parts.decision._scales
    with pytest.raises(exception.StateError, match=preview.WANTS_UNKNOWN):
        preview.preview(
            preview.PreviewInput(
                dataclasses.replace(done, measured=poor),
                poor,
                host.settings,
                scales,
                {},
                (),
            ),
            'UniformMetric',
            plugins.load_metric('UniformMetric'),
            plugins.load_policy('feedback'),
            guard.Guard(1.0),
        )


def test_a_preview_names_other_contended_resources(tmp_path):
    scale = fake_host.FakeScale(
        resources.ResourceControl.MEMORY, ['a-1', 'b-3']
    )
    control = fake_host.FakeControl(resources.ResourceControl.MEMORY, 100)
    host = fake_host.FakeHost(
        tmp_path, *vms(), others={control: scale}, enforce=False
    )
    assert preview.contended_besides_cpu(None) == []
    assert preview.contended_besides_cpu(host.rounds(3)) == ['memory']
