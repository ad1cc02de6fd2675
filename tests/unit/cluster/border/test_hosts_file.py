# SPDX-License-Identifier: Apache-2.0

import pathlib
import re
import textwrap
import zoneinfo

import pytest

from nova_fairness import exception
from nova_fairness.cluster.border import hosts_file
from nova_fairness.model import border
from nova_fairness.planners.border import calendars

GOOD = """
hosts:
- {name: node1, cores: 64}
- {name: '2', batch: n2, cloud: node2.example.org, cores: 0.5, fixed: true}
windows:
- {begins: '0 20 * * fri', lasts: 60h, hosts: 2, zone: Europe/Rome}
"""
WINDOW = """hosts: []
windows:
- {{begins: '{}', lasts: {}, hosts: {}}}
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'partition.yaml'


def test_hosts_and_windows_are_read(path):
    path.write_text(GOOD)
    assert hosts_file.read(path) == hosts_file.BorderFile(
        (
            border.SharedHost('node1', 'node1', 'node1', 64.0),
            border.SharedHost('2', 'n2', 'node2.example.org', 0.5, True),
        ),
        (
            calendars.CalendarWindow(
                '0 20 * * fri', 216_000.0, 2, zoneinfo.ZoneInfo('Europe/Rome')
            ),
        ),
    )


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('', 'is empty'),
        ('hosts: [', 'line 1: expected YAML'),
        ('hosts: 5', 'line 1: hosts must be a list'),
        ('windows: []', 'line 1: hosts must be a list'),
        ('hosts: []\nwindows: 3', 'line 2: windows must be a list'),
        ('hosts:\n- {name: a}', 'line 2: a host must have name and cores'),
        ('hosts:\n- {name: a, cores: 0}', "above 0, up to 1e+06, got '0'"),
        ('hosts:\n- {name: a, cores: nan}', "got 'nan'"),
        ('hosts:\n- {name: a, cores: many}', "got 'many'"),
        ('hosts:\n- {name: a, cores: 1, fixed: 2}', 'true or false'),
        ('hosts:\n- {name: a, cores: 1, cpus: 2}', "unknown key 'cpus'"),
        ('hosts:\n- {name: a b, cores: 1}', "underscores, got 'a b'"),
        ('hosts:\n- {name: a, name: b, cores: 1}', 'name comes twice'),
        (
            'hosts:\n- {name: a, cores: 1}\n- {name: a, cores: 1}',
            "the name name 'a' is used by more than one host",
        ),
        (
            'hosts:\n- {name: a, cores: 1}\n- {name: b, cloud: a, cores: 1}',
            "the cloud name 'a' is used by more than one host",
        ),
        ('hosts: []\nwindows: [{hosts: 1}]', 'begins, lasts and hosts'),
        (WINDOW.format('0 1 * * *', 'soon', 1), 'line 3'),
        (WINDOW.format('noon', '1h', 1), 'cron line'),
        (WINDOW.format('0 1 * * *', '1h', -1), 'whole number of at least 0'),
        (WINDOW.format('0 1 * * *', '1h', '1, zone: Nowhere'), 'no time zone'),
    ],
)
def test_a_wrong_hosts_file_is_named_and_nothing_is_taken(path, text, said):
    path.write_text(text)
    with pytest.raises(exception.BadPartition) as caught:
        hosts_file.read(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_is_read_again_when_it_changes(path, caplog):
    path.write_text(GOOD)
    file = hosts_file.open_watched_file(path)
    before = file.content()
    path.write_text('hosts: 5')
    assert file.content() is before
    assert 'hosts stay as they were described' in caplog.text
    path.write_text('hosts: [{name: other, cores: 1}]')
    assert [each.name for each in file.content().hosts] == ['other']
    path.unlink()
    assert [each.name for each in file.content().hosts] == ['other']


def test_the_file_on_the_page_can_be_read(path):
    page = pathlib.Path('doc/source/admin/partition.rst').read_text('utf-8')
    shown = re.findall(r'code-block:: yaml\n(.*?)\n(?=\S)', page, re.DOTALL)
    blocks = [
        textwrap.dedent(
            '\n'.join(
                line for line in each.splitlines() if ':caption:' not in line
            )
        )
        for each in shown
    ]
    assert len(blocks) == 3
    path.write_text('\n'.join(blocks))
    found = hosts_file.read(path)
    assert len(found.hosts) == 3
    assert len(found.windows) == 1
    assert [each.batch for each in found.groups] == ['phys', 'biology']
