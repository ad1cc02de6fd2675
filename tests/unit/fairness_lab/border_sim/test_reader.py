# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from fairness_lab.border_sim import reader
from nova_fairness import exception
from nova_fairness.planners.border import demand

SMALL = """
description: Small.
days: 0.1
hosts: {count: 2, vcpus: 4, memory_gib: 16}
cloud:
  longest_wait_hours: 1
  projects:
    - name: a
      share: 3
      demand: 0.9
      lifetime_hours: 0.1
      sizes: [{vcpus: 1, memory_gib: 1}]
batch:
  largest_limit_factor: 2
  projects:
    - name: a
      share: 3
      demand: 0.5
      lifetime_hours: 0.1
      sizes: [{vcpus: 1, memory_gib: 1}]
"""


def read(tmp_path, text, **overrides):
    path = tmp_path / 'small.yaml'
    path.write_text(text, encoding='utf-8')
    return reader.find(str(path), overrides)


@pytest.mark.parametrize('name', reader.names())
def test_scenarios_that_come_with_it_can_be_read(name):
    world = reader.find(name)
    assert world.cloud.name == name
    assert world.cloud.description
    assert len(world.jobs.stream) > 100
    assert (world.jobs.limit_s >= world.jobs.stream.lifetime_s).all()


def test_both_sides_are_read_and_drawn_apart(tmp_path):
    world = read(tmp_path, SMALL)
    assert world.cores == 8
    assert world.cloud_hosts_at_start == 1
    assert world.cloud.longest_wait_s == 3600
    assert world.jobs.owners.shares == (3.0,)
    jobs, requests = world.jobs.stream, world.cloud.stream
    assert jobs.asked_s[:3].tolist() != requests.asked_s[:3].tolist()
    factor = world.jobs.limit_s / jobs.lifetime_s
    assert factor.min() >= 1
    assert 1.5 < factor.max() <= 2
    again = read(tmp_path, SMALL)
    np.testing.assert_array_equal(jobs.asked_s, again.jobs.stream.asked_s)
    other = read(tmp_path, SMALL, seed='2')
    assert other.jobs.stream.asked_s[0] != jobs.asked_s[0]


def test_the_border_settings_of_a_scenario_are_read(tmp_path):
    text = SMALL + (
        'border: {cloud_hosts: 2, stay_s: 60, time_to_live_s: 100,'
        ' contended: 1, operator_hours: [8, 20], adjusts_shares: false}'
    )
    world = read(tmp_path, text)
    assert world.cloud_hosts_at_start == 2
    assert world.rules == demand.BorderRules(stay_s=60, ttl_s=100, contended=1)
    assert world.operator.hours == (8, 20)
    assert world.adjust_s is None


def test_jobs_of_a_trace_have_the_limits_that_users_asked_for(tmp_path):
    line = '{} {} -1 {} 4 -1 -1 {} {} -1 1 5 7 -1 -1 -1 -1 -1\n'
    (tmp_path / 'jobs.swf').write_text(
        line.format(1, 0, 100, 4, 600) + line.format(2, 10, 50, 8, -1),
        encoding='utf-8',
    )
    text = SMALL[: SMALL.index('  largest')] + '  trace: {file: jobs.swf}\n'
    world = read(tmp_path, text)
    assert world.jobs.owners.projects == ('group-7',)
    assert world.jobs.stream.lifetime_s.tolist() == [100, 50]
    assert world.jobs.limit_s[0] == 600
    # Drawn, as nothing was asked for.
    assert 50 < world.jobs.limit_s[1] < 150
    sizes = [world.jobs.stream.sizes[n] for n in world.jobs.stream.size]
    assert [(each.servers, each.vcpus) for each in sizes] == [(1, 4), (2, 4)]


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (('share: 3\n      demand: 0.5', 'share: 2\n      demand: 0.5'), 'a'),
        (('largest_limit_factor: 2', 'largest_limit_factor: 0.5'), '1'),
        (('days: 0.1', 'days: 0.1\nborder: {cloud_hosts: 3}'), 'cloud_hosts'),
        (('days: 0.1', 'days: 0.1\nborder: {operator_hours: [25]}'), 'hours'),
        (('days: 0.1', 'days: 0.1\nborder: {patience: 3}'), 'patience'),
        (('batch:', 'bath:'), 'batch'),
    ],
)
def test_an_error_of_a_scenario_is_named(tmp_path, change, message):
    with pytest.raises(exception.BadScenario, match=message):
        read(tmp_path, SMALL.replace(*change))


def test_an_unknown_scenario_name_lists_the_known_names():
    with pytest.raises(exception.BadScenario, match='week'):
        reader.find('wek')
