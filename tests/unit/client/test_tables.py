# SPDX-License-Identifier: Apache-2.0

"""Cells of tables: names beside ids, no objects, and nothing for none."""

import json

from osc_lib import exceptions
import pytest

from nova_fairness.client import columns
from nova_fairness.client import groups
from nova_fairness.client import owners
from nova_fairness.client import queue
from tests.unit.client import fake_compute

UUID = '53a7a2a1-7d4e-4a55-9d3c-2a8f9d0a1c11'
OTHER = UUID[:-1] + '2'
RED, BOB = 'a' * 32, 'b' * 32

REQUEST = {
    'uuid': UUID,
    'servers': [UUID],
    'project_id': RED,
    'user_id': BOB,
    'state': 'waiting',
    'position': None,
    'ends_at': None,
    'preemptible': False,
    'time_limit': 7200.0,
    'leaving': [{'server': UUID, 'numbers': {'a': 1.0}, 'for_request': None}],
    'explanation': 'it waits',
}


@pytest.fixture
def cloud(requests_mock):
    made = fake_compute.FakeCompute(requests_mock)
    made.names = {'red': RED, 'bob': BOB}
    made.servers = {'web-1': UUID}
    return made


def rows(out):
    """Cells of a table, by line."""
    return [
        [cell.strip() for cell in line.strip('|').split('|')]
        for line in out.splitlines()
        if line.startswith('|')
    ]


def test_requests_are_listed_with_names_beside_ids(cloud):
    cloud.answers('/requests', {'requests': [REQUEST]})
    _, short = cloud.run(queue.ListRequest)
    assert '| web-1  | red     | waiting | it waits |' in short
    _, out = cloud.run(queue.ListRequest, '--long')
    titles, shown = rows(out)
    cells = dict(zip(titles, shown, strict=True))
    assert cells['Server'] == f'web-1 ({UUID})'
    assert cells['Project'] == f'red ({RED})'
    assert cells['User'] == f'bob ({BOB})'
    assert cells['Position'] == cells['Ends At'] == ''


TOLD = f'project {RED} lends its room; user {"9" * 32} waits'


def test_texts_of_requests_have_names_in_place_of_ids(cloud):
    shown = {**REQUEST, 'explanation': TOLD, 'summary': [TOLD]}
    cloud.answers('/requests', {'requests': [{**shown, 'status': TOLD}]})
    cloud.answers(f'/requests/{UUID}', {'request': shown})
    named = TOLD.replace(RED, 'red')
    _, listed = cloud.run(queue.ListRequest)
    assert 'project red lends' in ' '.join(listed.split())
    assert RED not in listed
    _, found = cloud.run(queue.ShowRequest, UUID)
    assert found.count('project red lends its room') == 2
    assert named.partition('; ')[2] in found


def test_an_unknown_column_is_named_after_the_action(cloud):
    for uuid in (UUID, OTHER):
        path = f'/requests/{uuid}'
        cloud.answers(path, {'request': REQUEST})
        cloud.answers(f'{path}/action', {'request': REQUEST}, method='POST')
    with pytest.raises(exceptions.CommandError) as refused:
        cloud.run(queue.HoldRequest, UUID, OTHER, '-c', 'status')
    said = str(refused.value)
    assert "No recognized column names in ['status']" in said
    assert said.endswith('only its output is missing')


@pytest.mark.parametrize('command', [queue.SetLimit, queue.UnsetLimit])
def test_a_list_without_limit_requests_the_default_limit(cloud, command):
    with pytest.raises(exceptions.CommandError, match='--time-limit'):
        cloud.run(command, 'red')
    assert cloud.asked == []


@pytest.mark.parametrize('form', ['json', 'value', 'csv'])
def test_machine_readable_formats_have_ids_and_look_up_no_names(cloud, form):
    cloud.manager.sdk_connection = None
    cloud.answers('/requests', {'requests': [REQUEST]})
    _, out = cloud.run(queue.ListRequest, '-f', form, '-c', 'Project')
    assert RED in out
    assert f'({RED})' not in out


def test_requests_can_be_filtered_by_names(cloud):
    cloud.answers('/requests', {'requests': [REQUEST]})
    cloud.run(
        *(queue.ListRequest, '--state', 'failed', '--project', 'red'),
        *('--user', 'bob', '--name', 'web-1', '--host', 'cmp1'),
        *('--since', '2026-01-05', '--ended'),
    )
    assert cloud.asked[-1].qs == {
        'state': ['failed'], 'project_id': [RED], 'user_id': [BOB],
        'server': [UUID], 'host': ['cmp1'], 'since': ['2026-01-05'],
        'ended': ['true'],
    }  # fmt: skip
    for flag, more in (
        ('--running', {'running': ['true']}),
        ('--all', {'running': ['true'], 'ended': ['true']}),
    ):
        cloud.run(queue.ListRequest, flag)
        assert cloud.asked[-1].qs == more


def test_wait_times_have_units_and_project_names(cloud):
    wait = {
        'name': RED, 'explanation': None, 'requests_count': 3, 'p50': 60.0,
        'p90': 5400.0, 'p95': 7200.0,
    }  # fmt: skip
    cloud.answers('/waits', {'waits': [wait]})
    _, out = cloud.run(queue.ListWait, '--project', 'red', '--long')
    assert f'red ({RED})' in out
    assert '1.5 h' in out
    assert 'Waited' not in out
    assert cloud.asked[-1].qs == {'by': ['project'], 'project_id': [RED]}
    wait |= {'name': 'no_room', 'explanation': 'for room on a host'}
    cloud.answers('/waits', {'waits': [wait]})
    _, out = cloud.run(
        *(queue.ListWait, '--by', 'reason', '--since', '2026-01-05')
    )
    assert 'for room on a host' in out
    assert cloud.asked[-1].qs == {'by': ['reason'], 'since': ['2026-01-05']}


def test_a_request_is_shown_without_objects(cloud):
    cloud.answers(f'/requests/{UUID}', {'request': REQUEST})
    _, out = cloud.run(queue.ShowRequest, UUID)
    shown = dict(rows(out)[1:])
    assert shown['servers'] == f'web-1 ({UUID})'
    assert shown['leaving'] == f'server={UUID}, numbers.a=1'
    assert (shown['preemptible'], shown['position']) == ('no', '')
    assert shown['time_limit'] == '2 h'
    _, out = cloud.run(queue.ShowRequest, UUID, '-f', 'json')
    assert json.loads(out) == REQUEST


EVENTS = [
    {
        'at': '2026-01-05T14:00:00+00:00', 'until': None, 'kind': 'submitted',
        'server': None, 'reason': None, 'explanation': None, 'hosts': [],
    },
    {
        'at': '2026-01-05T14:00:03+00:00', 'kind': 'waited',
        'until': '2026-01-05T16:10:03+00:00', 'server': None,
        'reason': 'no_room', 'explanation': 'there is no room', 'hosts': [],
    },
    {
        'at': '2026-01-05T18:00:00+00:00', 'until': None, 'kind': 'migrated',
        'server': UUID, 'reason': None, 'explanation': None,
        'hosts': ['h1', 'h2'],
    },
    {},
]  # fmt: skip


def test_the_history_of_a_request_has_a_line_for_each_event(cloud):
    whole = {'uuid': UUID, 'events': EVENTS}
    cloud.answers(f'/requests/{UUID}?events=true', {'request': whole})
    _, out = cloud.run(queue.ShowRequest, UUID, '--events', '-f', 'value')
    gap = ' ' * len('  2026-01-05T16:10:03+00:00')
    first, second, third, last = out.splitlines()[1:]
    assert first == f'2026-01-05T14:00:00+00:00{gap}  submitted'
    assert second.endswith('T16:10:03+00:00  waited     there is no room')
    assert third.endswith(f'{gap}  migrated   server {UUID}: hosts: h1, h2')
    assert last == ''
    _, out = cloud.run(queue.ShowRequest, UUID, '--events', '-f', 'json')
    assert json.loads(out)['events'] == EVENTS


def test_a_request_without_a_history_has_no_lines(cloud):
    whole = {'uuid': UUID, 'events': []}
    cloud.answers(f'/requests/{UUID}?events=true', {'request': whole})
    _, out = cloud.run(queue.ShowRequest, UUID, '--events')
    assert dict(rows(out)[1:])['events'] == ''


def test_callers_that_may_list_no_names_see_ids(cloud):
    cloud.forbidden, cloud.lists_all = True, False
    cloud.answers('/requests', {'requests': [REQUEST]})
    _, out = cloud.run(queue.ListRequest, '--long')
    assert f'| {RED} |' in out
    assert f'| {BOB} |' in out
    assert f'web-1 ({UUID})' in out


def test_names_of_the_caller_come_from_the_token(cloud):
    cloud.forbidden = True
    cloud.manager.auth_ref = type(
        'Access',
        (),
        {
            'project_id': RED,
            'project_name': 'red',
            'user_id': BOB,
            'username': 'bob',
        },
    )
    cloud.answers('/requests', {'requests': [REQUEST]})
    _, out = cloud.run(queue.ListRequest, '--long')
    assert f'red ({RED})' in out
    assert f'bob ({BOB})' in out


def test_accounts_owners_and_groups_are_listed_with_names(cloud):
    share = {'name': f'{RED}/{BOB}', 'parent': RED, 'vanished': False}
    cloud.answers('/shares', {'shares': [share]})
    assert '| red/bob |' in cloud.run(queue.ListShare)[1]
    _, out = cloud.run(queue.ListShare, '--long')
    assert f'red/bob ({RED}/{BOB})' in out
    assert 'no' in rows(out)[1]
    limit = {'account': RED, 'longest_wait': 90.0, 'windows': []}
    cloud.answers('/limits', {'limits': [limit]})
    _, out = cloud.run(queue.ListLimit, '--long')
    assert f'red ({RED})' in out
    assert '1.5 min' in out
    cloud.answers('/users', {'users': [{'id': BOB}], 'partial': False})
    assert f'bob ({BOB})' in cloud.run(owners.ListUser, '--long')[1]
    cloud.answers('/groups', {'groups': [{'name': 'w', 'project_id': RED}]})
    assert f'red ({RED})' in cloud.run(groups.ListGroup, '--long')[1]
    lent = {'uuid': UUID, 'server': UUID, 'project_id': RED}
    cloud.answers('/preemptions', {'preemptions': [lent]})
    assert f'web-1 ({UUID})' in cloud.run(queue.ListPreemption, '--long')[1]


def test_capacity_is_shown_without_objects(cloud):
    told = {
        'flavors': [{'name': 'small', 'starts': 2, 'zones': {'z1': 2}}],
        'classes': {'VCPU': {'total': 8.0, 'free': None}},
    }
    cloud.answers('/capacity', {'capacity': told})
    shown = dict(rows(cloud.run(queue.ShowCapacity)[1])[1:])
    assert shown['flavors'] == 'name=small, starts=2, zones.z1=2'
    assert shown['classes'] == 'VCPU.total=8'


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        (None, ''),
        (0, '0 s'),
        (30.0, '30 s'),
        (90, '1.5 min'),
        (7200, '2 h'),
        (172800.0, '2 d'),
        ('soon', 'soon'),
    ],
)
def test_durations_use_the_largest_fitting_unit(value, text):
    assert columns.Span(value).human_readable() == text
    assert columns.Span(value).machine_readable() == value


def test_a_value_of_another_release_is_shown_as_it_is():
    assert columns.Truth('maybe').human_readable() == 'maybe'
    assert columns.Truth(None).human_readable() == ''
    assert columns.cell(0.5).human_readable() == '0.5'
    assert columns.cell({'a': [1, 2]}).human_readable() == 'a=1, 2'


@pytest.mark.parametrize(
    ('word', 'key', 'direction'),
    [
        ('instances_count:desc', 'instances_count', 'desc'),
        ('id:asc', 'id', 'asc'),
        ('id', 'id', 'asc'),
    ],
)
def test_a_list_accepts_the_usual_sort_options(cloud, word, key, direction):
    cloud.answers('/users', {'users': [], 'partial': False})
    cloud.run(owners.ListUser, '--sort', word)
    asked = cloud.asked[-1].qs
    assert (asked['sort_key'], asked['sort_dir']) == ([key], [direction])


def test_requests_are_listed_with_more_columns_on_request(cloud):
    told = {**REQUEST, 'resources': {'VCPU': 2.0}, 'asked_at': 'then'}
    cloud.answers('/requests', {'requests': [told]})
    short, _ = rows(cloud.run(queue.ListRequest)[1])
    titles, shown = rows(cloud.run(queue.ListRequest, '--long')[1])
    assert titles[: len(short)] == short
    cells = dict(zip(titles, shown, strict=True))
    assert (cells['Resources'], cells['Asked At']) == ('VCPU=2', 'then')
    assert (cells['Preemptible'], cells['Time Limit']) == ('no', '2 h')
