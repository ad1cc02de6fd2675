# SPDX-License-Identifier: Apache-2.0

"""Users, hosts and accounts beyond the bounds add no series."""

import dataclasses
import re

import pytest

from nova_fairness.model import report
from nova_fairness.observe import border
from nova_fairness.observe import families
from nova_fairness.observe import metric_definitions
from nova_fairness.observe import metrics
from nova_fairness.observe import queue
from tests.fixtures import documented
from tests.unit.agent import fake_host
from tests.unit.observe import test_queue

MANY = 1000
MOST = metric_definitions.MOST_VALUES


def samples_by_metric(collected):
    return {
        family.name.removeprefix(families.PREFIX): family.samples
        for family in collected
    }


def check_bounds(collected):
    for name, samples in samples_by_metric(collected).items():
        known = metric_definitions.DEFINITIONS[name]
        assert len(samples) <= known.most_series, name


def test_a_metric_says_how_many_series_it_may_have():
    one = metric_definitions.MetricDefinition(
        'x', 'gauge', 'A ``text``.', ('user', 'control')
    )
    assert one.help == 'A text. At most 1,005 series.'
    assert one._replace(labels=()).help == 'A text.'


def of_queue(**changed):
    seen = dataclasses.replace(test_queue.SEEN, **changed)
    return list(queue.QueueCollector(lambda: seen, None).collect())


def test_projects_beyond_the_bound_are_summed_up():
    waiting = {(f'p{n}', 'no_room'): n + 1 for n in range(MANY)}
    waiting['p0', 'quarantined'] = 5
    collected = of_queue(waiting=waiting)
    check_bounds(collected)
    samples = samples_by_metric(collected)['queue_waiting_requests']
    assert len(samples) == MOST['project'] + 2
    assert sum(each.value for each in samples) == sum(waiting.values())
    by_name = {
        (each.labels['project'], each.labels['reason']): each.value
        for each in samples
    }
    assert by_name[f'p{MANY - 1}', 'no_room'] == MANY
    assert by_name['others', 'quarantined'] == 5


def test_a_project_that_is_called_others_makes_no_series_twice():
    waiting = {(f'p{n}', 'no_room'): 2 for n in range(MANY)}
    waiting['others', 'no_room'] = MANY
    samples = samples_by_metric(of_queue(waiting=waiting))[
        'queue_waiting_requests'
    ]
    names = [each.labels['project'] for each in samples]
    assert len(set(names)) == len(names) == MOST['project'] + 1
    assert sum(each.value for each in samples) == sum(waiting.values())


def test_projects_within_the_bound_are_told_as_they_are():
    waiting = {(f'p{n}', 'no_room'): 1 for n in range(MOST['project'])}
    samples = samples_by_metric(of_queue(waiting=waiting))[
        'queue_waiting_requests'
    ]
    assert {each.labels['project'] for each in samples} == {
        project for project, _ in waiting
    }


def test_accounts_beyond_the_bound_are_summed_up():
    names = [f'a{n}' for n in range(MANY)]
    status = dataclasses.replace(
        test_queue.BORDER,
        pledges=dict.fromkeys(names, 1 / MANY),
        parts={(name, side): 1.0 for name in names for side in ('a', 'b')},
    )
    collected = list(border.metrics(status))
    check_bounds(collected)
    pledged = samples_by_metric(collected)['partition_group_pledge']
    assert len(pledged) == MOST['account'] + 1
    assert sum(each.value for each in pledged) == pytest.approx(1.0)
    used = samples_by_metric(collected)['partition_group_used']
    assert len(used) == 2 * (MOST['account'] + 1)
    assert sum(each.value for each in used) == 2 * MANY


@pytest.fixture(scope='module')
def crowded(tmp_path_factory):
    """A round with more VMs, users and hosts than the bounds."""
    host = fake_host.FakeHost(
        tmp_path_factory.mktemp('host'),
        *(fake_host.vm(f'vm-{n:04}', f'u{n}') for n in range(600)),
    )
    made = host.rounds(2)
    view = made.measured.view
    known = report.View(
        view.reports,
        view.age_s | {f'n{n}': float(n) for n in range(MANY)},
        {f'n{n}': 'silent for 40 s' for n in range(MANY)},
    )
    return dataclasses.replace(
        made,
        quarantined={f'plugin{n}': 'raised' for n in range(MANY)},
        measured=dataclasses.replace(made.measured, view=known),
    )


def test_a_node_tells_no_more_than_the_bounds(crowded):
    collector = metrics.RoundCollector(
        lambda: {'exchange': {f'count_{n}': n for n in range(MANY)}}
    )
    collector.add(crowded)
    collected = list(collector.collect())
    check_bounds(collected)
    found = samples_by_metric(collected)
    counts = {
        'instance_heaviness_quotas': MOST['instance_uuid'],
        'instance_usage_ratio': MOST['instance_uuid'] * MOST['resource'],
        'user_heaviness_quotas': MOST['user'],
        'report_age_seconds': MOST['host'],
        'node_left_out_bool': MOST['host'],
        'plugin_quarantined_bool': MOST['plugin'],
        'exchange_statistics': MOST['name'],
    }
    assert {name: len(found[name]) for name in counts} == counts


def test_all_metrics_of_vms_tell_of_the_same_ones(crowded):
    collector = metrics.RoundCollector()
    collector.add(crowded)
    seen = {
        frozenset(each.labels['instance_uuid'] for each in samples)
        for samples in samples_by_metric(collector.collect()).values()
        if samples and 'instance_uuid' in samples[0].labels
        if len(samples) >= MOST['instance_uuid']
    }
    assert len(seen) == 1


def test_each_label_has_a_bound():
    labels = {
        label
        for each in metric_definitions.DEFINITIONS.values()
        for label in each.labels
    }
    assert labels == set(MOST)


def test_the_page_says_the_bounds():
    page = documented.PAGES.parent / 'admin/watching.rst'
    section = page.read_text().split('Number of series')[1]
    section = section.split('Dashboards')[0]
    said = {
        name: int(count)
        for count, name in re.findall(r'(\d+) (\w+)', section)
        if name in ('VMs', 'hosts', 'users', 'projects', 'accounts', 'plugins')
    }
    assert said == {
        'VMs': MOST['instance_uuid'],
        **{
            f'{name}s': MOST[name]
            for name in ('host', 'user', 'project', 'account', 'plugin')
        },
    }
