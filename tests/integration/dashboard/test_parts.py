# SPDX-License-Identifier: Apache-2.0

"""Parts of pages, with Django and without a browser."""

import types

from horizon import exceptions as horizon_exceptions
from keystoneauth1 import exceptions as keystone_exceptions
from openstack import exceptions
import pytest

from fairness_dashboard import charts
from fairness_dashboard import directory
from fairness_dashboard import limits
from fairness_dashboard import parts
from fairness_dashboard import share_changes


def refusal(status, words='why'):
    error = exceptions.HttpException(words, http_status=status)
    return lambda: (_ for _ in ()).throw(error)


@pytest.mark.parametrize(
    ('status', 'begin'),
    [
        (403, 'Your roles'),
        (503, 'This part is not available now'),
        (404, 'why'),
        (409, 'why'),
    ],
)
def test_a_refused_part_of_a_page_shows_the_reason(status, begin):
    found = parts.read(refusal(status))
    assert (found.content, found.status) == (None, status)
    assert found.problem.startswith(begin)


def test_a_part_of_a_page_without_an_answer_says_so():
    def lost():
        raise keystone_exceptions.ConnectFailure('lost')

    found = parts.read(lost)
    assert found.status == 0
    assert found.problem.startswith('This part is not available now')


COUNTS = {
    'requests_count': 9,
    'starts_before_count': 1,
    'starts_after_count': 2,
    'sooner_count': 3,
    'later_count': 4,
    'not_named_count': 0,
}


def test_a_preview_counts_requests_that_move_forward():
    told = share_changes.describe_preview({**COUNTS, 'past_waits': None})
    assert told == (
        'Preview, nothing was changed: of 9 requests that wait, 2 would start'
        ' now, and without the change 1. 3 would move forward in the queue,'
        ' 4 would move back.'
    )
    past = {
        'requests_count': 50,
        'before': {'p50': 600.0},
        'after': {'p50': 60.0},
    }
    told = share_changes.describe_preview({**COUNTS, 'past_waits': past})
    assert told.endswith(
        'The 50 requests of the last week would have waited 1 min (median),'
        ' and without the change 10 min.'
    )


def test_a_preview_of_one_request_uses_the_singular():
    one = dict.fromkeys(COUNTS, 1)
    past = {'requests_count': 1, 'before': {'p50': 1}, 'after': {'p50': 1}}
    told = share_changes.describe_preview({**one, 'past_waits': past})
    assert told == (
        'Preview, nothing was changed: of 1 request that waits, 1 would start'
        ' now, and without the change 1. 1 would move forward in the queue,'
        ' 1 would move back. The 1 request of the last week would have waited'
        ' 1 s (median), and without the change 1 s.'
    )


@pytest.mark.parametrize(
    ('value', 'words'),
    [(1.0, '1 core'), (1.001, '1 core'), (0.5, '0.5 cores'), (None, '')],
)
def test_cores_use_singular_and_plural(value, words):
    assert parts.format_cores(value) == words


RED, BLUE, ALICE, BOB = (letter * 32 for letter in '12ab')
WEB = '11111111-1111-4111-8111-111111111111'


class FakeLists:
    """What Nova and Keystone list, and how often each was asked.

    :param refused: lists that are refused.
    """

    def __init__(self, *refused, is_operator=True):
        self.refused = refused
        self.is_operator = is_operator
        self.asked = []

    def own(self):
        return {RED: 'red', ALICE: 'alice'}

    def _listed(self, what, key, name):
        self.asked.append(what)
        if what in self.refused:
            raise RuntimeError('no')
        return {key: name}

    def projects(self):
        return self._listed('projects', BLUE, 'blue')

    def users(self):
        return self._listed('users', BOB, 'bob')

    def servers(self, *, is_everywhere):
        if is_everywhere:
            return self._listed('all servers', WEB, 'web')
        return self._listed('servers', WEB, 'own web')


def test_texts_show_names_in_place_of_ids():
    lists = FakeLists()
    known = directory.NameDirectory(lists)
    told = known.with_names(
        {
            'uuid': WEB,
            'explanation': f'it makes room for a request of project {BLUE}',
            'summary': [f'Server {WEB} waits.', f'Of {RED}/{BOB} and {BLUE}.'],
            'standing': 'waiting',
        }
    )
    assert told == {
        'uuid': WEB,
        'explanation': 'it makes room for a request of project blue',
        'summary': ['Server web waits.', 'Of red/bob and blue.'],
        'standing': 'waiting',
    }
    assert known.account(f'{BLUE}/{BOB}') == 'blue/bob'
    assert known.servers([WEB]) == ['web']
    assert sorted(lists.asked) == ['all servers', 'projects', 'users']


def test_names_of_the_caller_need_no_list():
    lists = FakeLists()
    known = directory.NameDirectory(lists)
    assert known.account(f'{RED}/{ALICE}') == 'red/alice'
    assert known.with_names({'explanation': 'it runs'}) == {
        'explanation': 'it runs'
    }
    assert (known.get(''), known.get(None), known.account(None)) == ('',) * 3
    assert lists.asked == []


def test_ids_stay_where_lists_are_refused():
    lists = FakeLists('projects', 'users', 'servers', 'all servers')
    known = directory.NameDirectory(lists)
    for text in (f'{BLUE}/{BOB} and {RED}', f'server {WEB}'):
        for _ in range(2):
            told = known.with_names({'explanation': text})
            assert told['explanation'] == text.replace(RED, 'red')
    assert sorted(lists.asked) == sorted(lists.refused)


def test_members_list_the_servers_of_their_project_alone():
    lists = FakeLists(is_operator=False)
    known = directory.NameDirectory(lists)
    assert known.servers([WEB, BLUE]) == ['own web', 'blue']
    assert 'all servers' not in lists.asked


def test_operators_of_one_project_list_its_servers():
    known = directory.NameDirectory(FakeLists('all servers'))
    assert known.servers([WEB]) == ['own web']


def test_parts_of_longer_words_are_no_ids():
    known = directory.NameDirectory(FakeLists())
    text = f'image-{BLUE} {BLUE}0 {WEB}-1 {BLUE}.'
    told = known.with_names({'explanation': text})['explanation']
    assert told == f'image-{BLUE} {BLUE}0 {WEB}-1 blue.'


def test_a_token_that_is_not_valid_ends_the_session():
    with pytest.raises(horizon_exceptions.NotAuthenticated):
        parts.read(refusal(401))


def test_a_page_names_the_next_one_only_if_there_is_one():
    def listed(limit, marker='0'):
        first = int(marker) + 1
        return (types.SimpleNamespace(id=n) for n in range(first, 61))

    first, more = parts.read_page(listed, None)
    assert (len(first), more) == (parts.PAGE, '50')
    rest, end = parts.read_page(listed, more)
    assert ([each.id for each in rest][::9], end) == ([51, 60], '')


@pytest.mark.parametrize(
    ('seconds', 'words'),
    [
        (None, ''),
        (5, '5 s'),
        (90, '1.5 min'),
        (7200, '2 h'),
        (86400, '1 day'),
        (2e5, '2.3 days'),
        (86400 * 400, '400 days'),
    ],
)
def test_a_duration_is_shown_in_one_unit(seconds, words):
    assert parts.format_duration(seconds) == words


@pytest.mark.parametrize(
    ('resource', 'value', 'words'),
    [
        ('cpu_time', 0.25, '0.25 CPUs'),
        ('cpu_time', 1.0, '1.00 CPU'),
        ('memory', 3e9, '3 GB'),
        ('disk_read', 2.5e6, '2.5 MB/s'),
        ('net_sent', 0.0, '0 B/s'),
        ('memory', None, ''),
    ],
)
def test_an_amount_has_the_unit_of_its_resource(resource, value, words):
    assert parts.format_amount(resource, value) == words


def test_a_chart_escapes_its_label_and_keeps_within_its_width():
    drawn = charts.bar_chart(3.0, 1.0, '<script>')
    assert '<script>' not in drawn
    assert 'width="238.0"' in drawn
    assert charts.line_chart([1.0], 'x') == ''
    assert 'points="0.0,0.0 240.0,30.0"' in charts.line_chart([1.0, 0.5], 'x')


class FakeLimits:
    """What is set; nothing else of the interface."""

    def __init__(self):
        self.done = []

    def set_limits(self, account, **limits):
        self.done.append((account, limits))
        return {'dry_run': {**COUNTS, 'past_waits': None}}


def sent(order='set-limits', **texts):
    """What a form sends whose fields were empty, but for ``was_`` texts."""
    api = FakeLimits()
    form = {name.replace('__', '-'): text for name, text in texts.items()}
    limits.ACTIONS[order](api, {'account': 'p', **form})
    return api.done


def test_unchanged_limits_of_a_form_are_not_sent():
    known = {'time_limit': 7200.0, 'ceiling': {'VCPU': 8.0, 'DISK_GB': 10.0}}
    texts = {each['name']: each['text'] for each in limits.form_fields(known)}
    assert texts['time_limit'] == '2'
    assert texts['ceiling'] == 'DISK_GB=10 VCPU=8'
    assert {texts['budget'], texts['nominal']} == {''}
    form = {f'{key}__{name}': text for name, text in texts.items()
            for key in ('was', 'limit')}  # fmt: skip
    with pytest.raises(ValueError, match='No limit was changed'):
        sent(**form)
    form |= {'limit__budget': '5', 'limit__ceiling': 'VCPU=9, DISK_GB=10'}
    changed = {'budget': 5.0, 'ceiling': {'VCPU': 9, 'DISK_GB': 10}}
    assert sent(**form) == [('p', changed)]
    assert sent('preview-limits', **form) == [
        ('p', {**changed, 'dry_run': True})
    ]


def test_an_emptied_limit_returns_to_the_value_of_the_file():
    form = {'was__time_limit': '2', 'limit__nominal': '-'}
    assert sent(**form) == [('p', {'time_limit': None, 'nominal': {}})]


@pytest.mark.parametrize(
    ('name', 'text'),
    [
        ('time_limit', 'soon'),
        ('budget', '-1'),
        ('budget', 'nan'),
        ('funds', 'inf'),
        ('ceiling', 'VCPU'),
        ('ceiling', 'VCPU=-1'),
        ('lending_limit', 'VCPU=1.5'),
    ],
)
def test_a_limit_that_cannot_be_read_is_not_sent(name, text):
    with pytest.raises(ValueError, match='expected'):
        sent(**{f'limit__{name}': text})
