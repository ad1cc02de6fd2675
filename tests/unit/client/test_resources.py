# SPDX-License-Identifier: Apache-2.0

"""Lists are read page by page, as far as they are used."""

import itertools

import pytest

from tests.unit.client import fake_compute


@pytest.fixture
def cloud(requests_mock):
    return fake_compute.FakeCompute(requests_mock)


@pytest.fixture
def users(cloud):
    """Three pages of two items."""
    for number, marker in enumerate(('', '?marker=i1', '?marker=i3')):
        items = [{'id': f'i{number * 2 + n}'} for n in (0, 1)]
        away = [{'host': 'h1', 'reason': 'late'}] if number == 1 else []
        content = {'users': items, 'partial': bool(away), 'not_reached': away}
        if number < 2:
            href = f'{cloud.base}/users?marker={items[-1]["id"]}'
            content['users_links'] = [{'rel': 'next', 'href': href}]
        cloud.answers(f'/users{marker}', content)
    return cloud.manager.fairness.users()


def test_all_pages_are_read(cloud, users):
    assert [each['id'] for each in users.answers] == [
        f'i{number}' for number in range(6)
    ]
    assert users.partial
    assert users.not_reached == {'h1': 'late'}
    assert len(cloud.asked) == 3


def test_no_page_is_read_that_is_not_used(cloud, users):
    assert cloud.asked == []
    first = list(itertools.islice(users.answers, 2))
    assert [each['id'] for each in first] == ['i0', 'i1']
    assert (len(cloud.asked), users.partial) == (1, False)
    # The rest, as things.
    third = next(users)
    assert (third.id, third.answer) == ('i2', {'id': 'i2'})
    assert (len(cloud.asked), users.partial) == (2, True)


def test_a_list_ends_at_an_invalid_next_link(cloud):
    content = {
        'users': [],
        'users_links': [{'rel': 'next', 'href': f'{cloud.base}/users?a=b'}],
    }
    cloud.answers('/users', content)
    assert list(cloud.manager.fairness.users()) == []
    assert len(cloud.asked) == 1


def test_a_resource_keeps_all_fields_of_the_answer_in_sequence(cloud):
    told = {'odd': [1], 'state': 'waiting', 'name': 'x', 'uuid': 'u1'}
    cloud.answers('/requests/u1', {'request': told})
    found = cloud.manager.fairness.get_request('u1')
    assert list(found.answer.items()) == list(told.items())
    assert (found.id, found.state, found.odd) == ('u1', 'waiting', [1])
