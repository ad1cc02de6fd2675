# SPDX-License-Identifier: Apache-2.0

"""Parts of pages, with Django and without a browser."""

import types

from horizon import exceptions as horizon_exceptions
from keystoneauth1 import exceptions as keystone_exceptions
from openstack import exceptions
import pytest

from fairness_dashboard import charts
from fairness_dashboard import limits
from fairness_dashboard import parts
from fairness_dashboard import share_orders


def refusal(status, words='why'):
    error = exceptions.HttpException(words, http_status=status)
    return lambda: (_ for _ in ()).throw(error)


@pytest.mark.parametrize(
    ('status', 'begin'),
    [
        (403, 'Your roles'),
        (503, 'This part does not answer'),
        (404, 'why'),
        (409, 'why'),
    ],
)
def test_a_part_that_is_refused_says_why(status, begin):
    found = parts.ask(refusal(status))
    assert (found.content, found.status) == (None, status)
    assert found.trouble.startswith(begin)


def test_a_part_without_an_answer_says_so():
    def lost():
        raise keystone_exceptions.ConnectFailure('lost')

    found = parts.ask(lost)
    assert found.status == 0
    assert found.trouble.startswith('This part does not answer')


COUNTS = {
    'requests_count': 9,
    'starts_before_count': 1,
    'starts_after_count': 2,
    'sooner_count': 3,
    'later_count': 4,
    'not_named_count': 0,
}


def test_a_preview_counts_requests_that_come_nearer():
    told = share_orders.foretold({**COUNTS, 'past_waits': None})
    assert told == (
        'Preview, nothing was changed: of 9 requests that wait, 2 would start'
        ' now, and without the change 1. 3 would come nearer to their start,'
        ' 4 would move back.'
    )
    past = {
        'requests_count': 50,
        'before': {'p50': 600.0},
        'after': {'p50': 60.0},
    }
    told = share_orders.foretold({**COUNTS, 'past_waits': past})
    assert told.endswith(
        'The 50 requests of the last week would have waited 1 min (median),'
        ' and without the change 10 min.'
    )


def test_a_preview_speaks_of_one_request_as_of_one():
    one = dict.fromkeys(COUNTS, 1)
    past = {'requests_count': 1, 'before': {'p50': 1}, 'after': {'p50': 1}}
    told = share_orders.foretold({**one, 'past_waits': past})
    assert told == (
        'Preview, nothing was changed: of 1 request that waits, 1 would start'
        ' now, and without the change 1. 1 would come nearer to its start,'
        ' 1 would move back. The 1 request of the last week would have waited'
        ' 1 s (median), and without the change 1 s.'
    )


@pytest.mark.parametrize(
    ('value', 'words'),
    [(1.0, '1 core'), (1.001, '1 core'), (0.5, '0.5 cores'), (None, '')],
)
def test_cores_are_counted(value, words):
    assert parts.cores(value) == words


def test_a_token_that_is_not_valid_ends_the_session():
    with pytest.raises(horizon_exceptions.NotAuthenticated):
        parts.ask(refusal(401))


def test_a_page_names_the_next_one_only_if_there_is_one():
    def listed(limit, marker='0'):
        first = int(marker) + 1
        return (types.SimpleNamespace(id=n) for n in range(first, 61))

    first, more = parts.page(listed, None)
    assert (len(first), more) == (parts.PAGE, '50')
    rest, end = parts.page(listed, more)
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
def test_a_span_has_one_unit(seconds, words):
    assert parts.span(seconds) == words


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
    assert parts.amount(resource, value) == words


def test_a_chart_escapes_its_label_and_keeps_within_its_width():
    drawn = charts.bar(3.0, 1.0, '<script>')
    assert '<script>' not in drawn
    assert 'width="238.0"' in drawn
    assert charts.line([1.0], 'x') == ''
    assert 'points="0.0,0.0 240.0,30.0"' in charts.line([1.0, 0.5], 'x')


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
    limits.ORDERS[order](api, {'account': 'p', **form})
    return api.done


def test_limits_that_a_form_leaves_as_they_are_stay():
    known = {'time_limit': 7200.0, 'ceiling': {'VCPU': 8.0, 'DISK_GB': 10.0}}
    texts = {each['name']: each['text'] for each in limits.fields(known)}
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


def test_an_emptied_limit_goes_back_to_that_of_the_file():
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
    with pytest.raises(ValueError, match='is expected'):
        sent(**{f'limit__{name}': text})
