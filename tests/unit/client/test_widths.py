# SPDX-License-Identifier: Apache-2.0

"""Lists fit a terminal: each list command with rows as a cloud has them."""

import configparser
import importlib
import pathlib

import pytest

from nova_fairness.client import base
from nova_fairness.client import columns
from tests.unit.client import fake_compute

ROOT = pathlib.Path(__file__).parents[3]
WIDTH = 120
UUID = '53a7a2a1-7d4e-4a55-9d3c-2a8f9d0a1c11'
RED, BOB = 'a' * 32, 'b' * 32
HOST, AT = 'compute-0017', '2026-01-05T14:00:03.123456+00:00'
WHY = (
    'It waits: 3rd in the queue; the cloud is full: it needs 4 VCPU and 0 of'
    ' 512 are free; it is estimated to start at 16:10.'
)
AMOUNTS = {'VCPU': 1024, 'MEMORY_MB': 4194304, 'DISK_GB': 20480}
SPENT = {'cpu_time': 0.123456, 'memory': 7.87e-82, 'disk_written': 1.5}
OWNER = {
    'heaviness_quotas': 1.23456789, 'instances_count': 217,
    'usage_quotas': SPENT, 'hosts': [f'compute-{n:04}' for n in range(40)],
}  # fmt: skip
CHANGES = {
    'gets_cpus': 12.3456, 'wants_cpus': 17.98765, 'would_get_cpus': 14.5,
    'change_cpus': -2.12345, 'change_spread_cpus': 0.0123456,
}  # fmt: skip
CHOICES = [
    {
        'name': 'DominantFairnessMetric', 'description': WHY,
        'in_force': True, 'hosts_without': [HOST, HOST],
    }
]  # fmt: skip

ANSWERS = {
    '': {
        'metrics': [{'metric': each} for each in CHOICES],
        'policies': [{'policy': each} for each in CHOICES],
    },
    '/hosts': {
        'hosts': [
            {
                'name': HOST, 'metric': 'DominantFairnessMetric',
                'policy': 'foresight', 'epoch': 17, 'paused': False,
                'enforce': True, 'instances_count': 217, 'users_count': 31,
                'peers_count': 999, 'left_out_count': 0, 'round': 123456,
                'duration_s': 0.12345678, 'age_s': 4.3210987,
                'refused': None,
            }
        ],
        'partial': False,
    },
    f'/hosts/{HOST}/preview': {
        'preview': {
            'name': HOST, 'metrics': [{
                'metric': 'DominantFairnessMetric',
                'users': {
                    BOB: {
                        'name': 'bob', 'instances_here_count': 12, **CHANGES
                    }
                },
                'instances': [],
            }],
        }
    },
    '/users': {'users': [{'id': BOB, **OWNER}], 'partial': False},
    '/projects': {'projects': [{'id': RED, **OWNER}], 'partial': False},
    '/requests': {
        'requests': [
            {
                'uuid': UUID, 'servers': [UUID], 'project_id': RED,
                'user_id': BOB, 'state': 'dispatching', 'position': 1234,
                'since': AT, 'ends_at': AT, 'status': WHY,
                'resources': AMOUNTS, 'origin': 'build', 'preemptible': True,
            }
        ]
    },
    '/waits': {
        'waits': [
            {
                'name': RED, 'requests_count': 12345, 'p50': 61.234,
                'p90': 5400.1, 'p95': 172800.5, 'explanation': None,
            }
        ]
    },
    '/preemptions': {
        'preemptions': [
            {
                'uuid': UUID, 'server': UUID, 'project_id': RED,
                'for_project': RED, 'chosen_at': AT, 'leaves_at': AT,
                'action': 'shelve', 'state': 'returned',
                'lost_vcpu_s': 151.23456,
            }
        ]
    },
    '/shares': {
        'shares': [
            {
                'name': f'{RED}/{BOB}', 'parent': RED, 'share': 3.0,
                'normalised_share': 0.123456789, 'used': SPENT,
                'fair_share': 0.987654321, 'vanished': False,
            }
        ]
    },
    '/limits': {
        'limits': [
            {
                'account': f'{RED}/{BOB}', 'parent': RED,
                'time_limit': 172800.0, 'longest_wait': 3600.0,
                'budget': 100000.0, 'budget_used': 12345.6789,
                'budget_committed': 234.56789, 'budget_left': 87419.75,
                'budget_until': AT, 'funds': 1234567.0,
                'funds_left': 1234.56789, 'ceiling': AMOUNTS,
                'nominal': AMOUNTS, 'borrowing_limit': AMOUNTS,
                'lending_limit': AMOUNTS, 'opens_at': AT, 'fault': WHY,
                'windows': [{'begins': '0 20 * * mon-fri', 'lasts': 36e3}],
            }
        ]
    },
    '/groups': {
        'groups': [
            {
                'name': 'render-farm', 'project_id': RED, 'rate': 1.23456,
                'count': 12, 'servers_count': 217, 'server_rate': 0.1028800,
            }
        ]
    },
    '/prices': {
        'prices': [
            {
                'host': HOST, 'resource_class': 'CUSTOM_GPU_A100', 'at': AT,
                'price': 0.123456789, 'capacity': 128.0,
            }
        ]
    },
    '/partition/hosts': {
        'hosts': [
            {
                'name': HOST, 'state': 'draining_to_batch', 'since': AT,
                'bound_for': 'batch', 'until': AT, 'cause': 'demand',
                'explanation': WHY, 'fixed': False,
            }
        ]
    },
    '/plans': {
        'plans': [
            {
                'uuid': UUID, 'goal': 'consolidate', 'subject': UUID,
                'state': 'proposed', 'since': AT, 'moves_count': 17,
                'ended_count': 3, 'explanation': WHY,
            }
        ]
    },
    f'/instances/{UUID}': {
        'instance': {
            'summary': WHY, 'usage': {'cpu_time': 0.123456},
            'weights': {'cpu': 1.2345678},
        }
    },
}  # fmt: skip


def commands():
    """List commands of the package, by their words."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / 'setup.cfg', encoding='utf-8')
    for line in setup['entry_points']['openstack.fairness.v1'].splitlines():
        name, _, place = line.partition(' = ')
        if not place:
            continue
        module, _, command = place.partition(':')
        found = getattr(importlib.import_module(module), command)
        if issubclass(found, base.Lister) and not issubclass(
            found, base.HostCommand
        ):
            yield name.strip(), found


@pytest.fixture
def cloud(requests_mock):
    made = fake_compute.FakeCompute(requests_mock)
    made.names = {'particle-physics': RED, 'bob.miller': BOB}
    made.servers, made.others = {'web-frontend-01': UUID}, {}
    for path, answer in ANSWERS.items():
        made.answers(path, answer)
    made.answers(f'/prices/hosts/{HOST}', ANSWERS['/prices'])
    made.answers(f'/hosts/{HOST}/prices', ANSWERS['/prices'])
    return made


LISTS = dict(commands())
HOSTS = {'fairness_host_preview', 'fairness_price_history'}
"""Commands that take the name of a host."""


@pytest.mark.parametrize('name', LISTS)
def test_a_list_fits_a_terminal(cloud, name):
    words = (HOST,) if name in HOSTS else ()
    code, out = cloud.run(LISTS[name], *words)
    lines = out.splitlines()
    assert code == 0
    assert len(lines) > 4, out
    assert max(map(len, lines)) <= WIDTH, out
    assert 'None' not in out


@pytest.mark.parametrize('name', LISTS)
def test_a_list_shows_programs_all_that_is_known(cloud, name):
    words = (HOST,) if name in HOSTS else ()
    _, short = cloud.run(LISTS[name], *words)
    _, told = cloud.run(LISTS[name], *words, '--long')
    _, csv = cloud.run(LISTS[name], *words, '-f', 'csv')
    titles = csv.splitlines()[0].replace('"', '').split(',')
    for title in titles:
        assert title in told
    assert len(titles) >= len(short.splitlines()[1].strip('|').split('|'))


def test_a_text_takes_the_width_that_others_leave():
    rows = [(columns.Number(1.0), columns.Text(WHY))]
    [[_, text]] = columns.fit_to_width(['N', 'Why'], rows)
    lines = text.human_readable().splitlines()
    assert ' '.join(lines) == WHY
    assert WIDTH // 2 < max(map(len, lines)) <= WIDTH - 9
    assert columns.fit_to_width(['N', 'Why'], []) == []


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        (None, ''),
        ('2026-01-05T14:00:03+00:00', '2026-01-05 14:00'),
        ('2026-01-05T14:00:03+02:00', '2026-01-05 12:00'),
        ('soon', 'soon'),
        (7, '7'),
    ],
)
def test_a_time_is_shown_to_the_minute(value, text):
    assert columns.Moment(value).human_readable() == text
    assert columns.Moment(value).machine_readable() == value
