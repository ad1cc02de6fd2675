# SPDX-License-Identifier: Apache-2.0

"""Servers that had to make room, over HTTP."""

from tests.unit.api_ext import fake_cloud
from tests.unit.api_ext import fake_requests

BLUES = fake_requests.BLUES
LENT, OTHERS = fake_requests.LENT, fake_requests.OTHERS


def uuids(answer):
    assert answer.status_code == 200, answer.json
    return [each['uuid'] for each in answer.json['preemptions']]


def test_an_owner_whose_server_made_room_learns_no_name_of_the_other(cloud):
    url = '/fairness/preemptions'
    answer = cloud.ask('alice', 'GET', url)
    [told] = answer.json['preemptions']
    assert (told['for_project'], told['for_request']) == (None, None)
    assert told['server'] == cloud.requests.operations.times[LENT]['server']
    shown = cloud.ask('alice', 'GET', f'{url}/{LENT}')
    assert shown.json['preemption'] == told
    for each in (answer, shown):
        assert fake_cloud.BLUE not in each.text
        assert BLUES not in each.text


def test_the_owner_of_a_preemptor_learns_no_names_of_others(cloud):
    url = '/fairness/preemptions'
    answer = cloud.ask('carol', 'GET', url)
    assert uuids(answer) == [LENT, OTHERS]
    lent, own = answer.json['preemptions']
    assert [lent[key] for key in ('server', 'project_id', 'user_id')] == [
        None
    ] * 3
    assert lent['lost_vcpu_s'] == 7200.0
    known = cloud.requests.operations.times
    assert own == {
        **known[OTHERS],
        'for_project': None,
        'for_request': None,
    }
    for shown in (answer, cloud.ask('carol', 'GET', f'{url}/{LENT}')):
        assert known[LENT]['server'] not in shown.text
        assert known[LENT]['user_id'] not in shown.text


def test_preemptions_of_other_projects_give_404(cloud):
    url = '/fairness/preemptions'
    for uuid in (OTHERS, LENT.replace('1', '9')):
        for asked in (f'{url}/{uuid}', f'{url}?marker={uuid}'):
            answer = cloud.ask('alice', 'GET', asked)
            assert answer.status_code == 404
            assert uuid in answer.json['itemNotFound']['message']
    assert cloud.ask('nobody', 'GET', url).status_code == 403


def test_operators_see_all_preemptions_with_names(cloud):
    url = '/fairness/preemptions?all_projects=true'
    known = list(cloud.requests.operations.times.values())
    answer = cloud.ask('auditor', 'GET', url)
    assert answer.json['preemptions'] == sorted(
        known, key=lambda each: each['uuid']
    )
    for who in ('alice', 'carol'):
        assert cloud.ask(who, 'GET', url).status_code == 403


def test_preemptions_come_in_pages(cloud):
    url = '/fairness/preemptions?all_projects=true&limit=1'
    first = cloud.ask('admin', 'GET', url)
    [link] = first.json['preemptions_links']
    path = '/fairness' + link['href'].partition('/fairness')[2]
    second = cloud.ask('admin', 'GET', path)
    found = [uuids(each) for each in (first, second)]
    assert found == [[LENT], [OTHERS]]
    assert 'preemptions_links' not in second.json
