# SPDX-License-Identifier: Apache-2.0

"""Scenarios of requests that wait."""

import pytest

from fairness_lab.queue_sim import reader
from nova_fairness import exception

GOOD = """\
description: a test
days: 2
hosts:
  - {count: 2, vcpus: 4, memory_gib: 8}
  - {count: 1, vcpus: 8, memory_gib: 0.5}
projects:
  - name: a
    demand: 0.5
    lifetime_hours: 1
    sizes: [{vcpus: 1, memory_gib: 2}]
"""


def read(tmp_path, text, overrides=()):
    path = tmp_path / 'mine.yaml'
    path.write_text(text)
    return reader.find(str(path), dict(overrides))


def test_a_scenario_file_is_read(tmp_path):
    cloud = read(tmp_path, GOOD)
    assert (cloud.name, cloud.description) == ('mine', 'a test')
    assert cloud.hosts.tolist() == [[8192, 4], [8192, 4], [512, 8]]
    assert cloud.capacity.tolist() == [16896, 16]
    assert (cloud.duration_s, cloud.cycle_s) == (172800, 60)
    assert (cloud.half_life_s, cloud.longest_wait_s) == (604800, None)
    assert cloud.owners.projects == ('a',)
    assert len(cloud.stream) > 0


def test_settings_replace_values_of_the_file(tmp_path):
    settings = {'seed': '7', 'hosts': '{count: 9, vcpus: 1, memory_gib: 1}'}
    cloud = read(tmp_path, GOOD, settings)
    assert cloud.seed == 7
    assert len(cloud.hosts) == 9


@pytest.mark.parametrize('name', reader.names())
def test_a_bundled_scenario_is_read(name):
    cloud = reader.find(name)
    assert cloud.name == name
    largest = cloud.hosts.max(axis=0)
    for size in cloud.stream.sizes:
        assert (size.amounts / size.servers <= largest).all()


def test_eight_clouds_a_month_and_rivals_come_with_it():
    assert {*reader.STANDARD, 'month', 'rivals'} <= {*reader.names()}
    assert len(reader.STANDARD) == 8
    assert len(reader.find('thousand-tiny').owners.projects) == 1002
    month = reader.find('month')
    assert len(month.hosts) == 1000
    assert 95_000 < len(month.stream) < 105_000


WRONG = {
    'a key': (('days: 2', 'dais: 2'), 'line 1: scenario: expected the key'),
    'an unknown key': (
        ('days: 2', 'days: 2\nhalf_live_hours: 3'),
        'line 3: scenario: unknown key half_live_hours (did you mean half',
    ),
    'no number': (
        ('days: 2', 'days: two'),
        'line 2: scenario.days: expected a number above 0',
    ),
    'marks': (
        ('days: 2', 'days: 2\nkept_free: 0.1\nfreed: 0.2'),
        'line 4: scenario.freed',
    ),
    'too long': (('days: 2', 'days: 1e9'), 'line 2: scenario.days'),
    'no host': (('count: 2', 'count: 0'), 'line 4: scenario.hosts[0].count'),
    'a list of none': (
        ('- {count: 2, vcpus: 4, memory_gib: 8}', '[]'),
        'expected',
    ),
    'memory': (('memory_gib: 8', 'memory_gib: -1'), 'hosts[0].memory_gib'),
    'too little memory': (
        ('memory_gib: 2', 'memory_gib: 0.0001'),
        'line 10: scenario.projects[0].sizes[0].memory_gib',
    ),
    'a share': (
        ('demand: 0.5', 'demand: 0.5\n    share: -1'),
        'line 9: scenario.projects[0].share: expected a number, at least 0',
    ),
    'no size': (('[{vcpus: 1, memory_gib: 2}]', '[]'), 'at least one size'),
    'a size twice': (
        ('memory_gib: 2}', 'memory_gib: 2}, {vcpus: 1, memory_gib: 2}'),
        'line 10: scenario.projects[0].sizes[1]: expected every size once',
    ),
    'a spread': (
        ('demand: 0.5', 'demand: 0.5\n    lifetimes: heavy'),
        'line 9: scenario.projects[0].lifetimes: expected one of fixed',
    ),
    'a burst': (
        ('demand: 0.5', 'demand: 0.5\n    burst: 0.5'),
        'line 9: scenario.projects[0].burst: expected a number, at least 1',
    ),
    'a part': (
        ('demand: 0.5', 'demand: 0.5\n    deleted: 2'),
        'line 9: scenario.projects[0].deleted: expected a number from 0 to 1',
    ),
    'days that go back': (
        ('demand: 0.5', 'demand: 0.5\n    active_days: [[0, 1], [0.5, 2]]'),
        'line 9: scenario.projects[0].active_days[1]: expected pairs',
    ),
    'days after the end': (
        ('demand: 0.5', 'demand: 0.5\n    active_days: [[2, 3]]'),
        'active_days: expected a pair that begins before day 2',
    ),
    'no days': (
        ('demand: 0.5', 'demand: 0.5\n    active_days: []'),
        'active_days: expected a pair',
    ),
    'a name twice': (
        ('projects:', f'projects:\n{GOOD[GOOD.index("  - name") :].rstrip()}'),
        'line 11: scenario.projects[1]: expected every name once',
    ),
}


@pytest.mark.parametrize(('change', 'expected'), WRONG.values(), ids=WRONG)
def test_the_fault_of_a_scenario_is_named(tmp_path, change, expected):
    with pytest.raises(exception.BadScenario) as caught:
        read(tmp_path, GOOD.replace(*change))
    assert str(caught.value).startswith(str(tmp_path / 'mine.yaml'))
    assert expected in str(caught.value)


def test_a_scenario_with_too_many_hosts_or_projects_is_refused(tmp_path):
    many = f'count: {reader.MOST_HOSTS}'
    with pytest.raises(exception.BadScenario, match='hosts'):
        read(tmp_path, GOOD.replace('count: 2', many))
    with pytest.raises(exception.BadScenario, match='projects'):
        read(tmp_path, GOOD.replace('name: a', 'name: a\n    count: 200000'))


def test_a_missing_scenario_is_named():
    with pytest.raises(exception.BadScenario, match='one of bursty, churn'):
        reader.find('nothing')
