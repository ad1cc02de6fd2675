# SPDX-License-Identifier: Apache-2.0

"""Requests that wait, over HTTP."""

import pytest

from nova_fairness import exception
from nova_fairness.model import request
from nova_fairness.model import waits
from tests.unit.api_ext import fake_requests

S, K = request.State, waits.WaitKey
REDS, BLUES = fake_requests.REDS, fake_requests.BLUES
URLS = (
    *('requests', f'requests/{REDS}', 'shares', 'capacity', 'preemptions'),
    f'preemptions/{fake_requests.LENT}',
)


def uuids(answer):
    assert answer.status_code == 200, answer.json
    return [each['uuid'] for each in answer.json['requests']]


def test_a_project_sees_its_own_requests_and_no_others(cloud):
    assert uuids(cloud.ask('alice', 'GET', '/fairness/requests')) == [REDS]
    assert uuids(cloud.ask('carol', 'GET', '/fairness/requests')) == [BLUES]


@pytest.mark.parametrize('who', ['admin', 'auditor'])
def test_operators_see_requests_of_all_projects(cloud, who):
    url = '/fairness/requests?all_projects=true'
    assert uuids(cloud.ask(who, 'GET', url)) == [REDS, BLUES]


@pytest.mark.parametrize('who', ['alice', 'carol', 'nobody'])
def test_non_operators_cannot_list_all_requests(cloud, who):
    url = '/fairness/requests?all_projects=true'
    assert cloud.ask(who, 'GET', url).status_code == 403
    assert cloud.requests.rpc.calls == []


def test_a_list_comes_in_pages(cloud):
    url = '/fairness/requests?all_projects=true&limit=1'
    first = cloud.ask('admin', 'GET', url)
    assert uuids(first) == [REDS]
    [link] = first.json['requests_links']
    path = '/fairness' + link['href'].partition('/fairness')[2]
    second = cloud.ask('admin', 'GET', path)
    assert uuids(second) == [BLUES]
    assert 'requests_links' not in second.json


def test_preemptible_requests_can_be_listed_alone(cloud):
    cloud.requests.operations.items[BLUES]['preemptible'] = True
    for wanted, found in (('true', [BLUES]), ('false', [REDS])):
        url = f'/fairness/requests?all_projects=true&preemptible={wanted}'
        assert uuids(cloud.ask('admin', 'GET', url)) == found
    url = '/fairness/requests?preemptible=maybe'
    assert cloud.ask('alice', 'GET', url).status_code == 400


@pytest.mark.parametrize(
    ('query', 'wanted'),
    [
        ('state=failed', {'states': frozenset({S.FAILED})}),
        ('user_id=bob&running=true', {'user': 'bob'}),
        (f'server={REDS.upper()}', {'server': REDS}),
        ('since=2026-01-05&running=true', {'since': 1767571200.0}),
        (
            'since=2026-01-05T01:00%2B01:00',
            {'since': 1767571200.0, 'unsettled': True},
        ),
        ('ended=true', {'states': frozenset(S), 'unsettled': True}),
        ('ended=true&running=true', {'states': frozenset(S)}),
    ],
)
def test_requests_can_be_filtered(cloud, query, wanted):
    answer = cloud.ask('alice', 'GET', f'/fairness/requests?{query}')
    assert uuids(answer) == [REDS]
    found = cloud.requests.operations.wanted
    assert found == request.RequestFilter(**wanted)


@pytest.mark.parametrize(
    'query', ['state=lost', 'since=noon', 'since=9999-99-99', 'server=x']
)
def test_an_unknown_filter_of_requests_is_refused(cloud, query):
    answer = cloud.ask('alice', 'GET', f'/fairness/requests?{query}')
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ('query', 'hides'),
    [
        ('', True),
        ('ended=false', True),
        ('preemptible=true', True),
        ('running=true', False),
        ('state=active', False),
        ('state=active&running=false', True),
        (f'server={REDS}', False),
        ('host=cmp1', False),
    ],
)
def test_running_requests_are_listed_only_on_request(cloud, query, hides):
    cloud.ask('admin', 'GET', f'/fairness/requests?{query}')
    wanted = cloud.requests.operations.wanted
    assert (wanted is not None and wanted.unsettled) == hides


@pytest.mark.parametrize(
    ('who', 'code'), [('admin', 200), ('auditor', 200), ('alice', 403)]
)
def test_only_operators_may_filter_requests_by_host(cloud, who, code):
    url = '/fairness/requests?all_projects=true&host=cmp1'
    assert cloud.ask(who, 'GET', url).status_code == code
    if who == 'alice':
        url = '/fairness/requests?host=cmp1'
        assert cloud.ask(who, 'GET', url).status_code == code


def test_only_readers_of_a_project_may_name_it_as_a_filter(cloud):
    own = cloud.requests.operations.items[REDS]['project_id']
    other = cloud.requests.operations.items[BLUES]['project_id']

    def ask(who, project):
        url = f'/fairness/requests?project_id={project}'
        return cloud.ask(who, 'GET', url)

    assert uuids(ask('alice', own)) == [REDS]
    assert ask('alice', other).status_code == 403
    assert uuids(ask('admin', other)) == [BLUES]
    assert uuids(ask('admin', own)) == [REDS]


@pytest.mark.parametrize(
    ('query', 'wanted'),
    [
        ('', {}),
        ('?by=flavor', {'key': K.FLAVOR}),
        ('?by=reason&since=2026-01-05',
         {'key': K.REASON, 'since': 1767571200.0}),
    ],
)  # fmt: skip
def test_wait_times_are_those_of_the_project_of_the_caller(
    cloud, query, wanted
):
    answer = cloud.ask('alice', 'GET', f'/fairness/waits{query}')
    assert answer.status_code == 200
    own = cloud.requests.operations.items[REDS]['project_id']
    found = cloud.requests.operations.wanted
    assert found == waits.WaitFilter(project=own, **wanted)


def test_only_operators_see_wait_times_of_other_projects(cloud):
    other = cloud.requests.operations.items[BLUES]['project_id']
    for query in (f'project_id={other}', 'all_projects=true'):
        url = f'/fairness/waits?{query}'
        assert cloud.ask('alice', 'GET', url).status_code == 403
        told = cloud.ask('admin', 'GET', url).json['waits']
        assert told[-1] == {
            'name': other, 'explanation': None, 'requests_count': 3,
            'p50': 60.0, 'p90': 5400.0, 'p95': 7200.0,
        }  # fmt: skip


def test_wait_times_are_listed_in_pages(cloud):
    url = '/fairness/waits?all_projects=true&limit=1'
    first = cloud.ask('admin', 'GET', url).json
    [link] = first['waits_links']
    assert f'marker={first["waits"][0]["name"]}' in link['href']
    last = cloud.ask('admin', 'GET', f'{url}&marker=11').json
    assert last['waits'] == first['waits']


@pytest.mark.parametrize('query', ['by=host', 'since=noon', 'colour=red'])
def test_wait_times_by_an_unknown_group_are_refused(cloud, query):
    answer = cloud.ask('alice', 'GET', f'/fairness/waits?{query}')
    assert answer.status_code == 400


def test_an_older_service_without_filters_lists_no_other_requests(cloud):
    cloud.requests.operations.error = exception.BadArgument(
        "list_requests() got an unexpected keyword argument 'filters'"
    )
    answer = cloud.ask('alice', 'GET', '/fairness/requests?state=failed')
    assert answer.status_code == 503


def test_an_error_of_a_filter_from_the_service_is_returned(cloud):
    cloud.requests.operations.error = exception.BadArgument('state is odd')
    answer = cloud.ask('alice', 'GET', '/fairness/requests?state=failed')
    assert answer.status_code == 400
    assert 'state is odd' in answer.text


def test_a_marker_of_another_project_gives_404(cloud):
    url = f'/fairness/requests?marker={BLUES}'
    assert cloud.ask('alice', 'GET', url).status_code == 404


def test_a_request_of_another_project_gives_404(cloud):
    assert (
        cloud.ask('alice', 'GET', f'/fairness/requests/{REDS}').json[
            'request'
        ]['position']
        == 1
    )
    there = cloud.ask('alice', 'GET', f'/fairness/requests/{BLUES}')
    never = BLUES.replace('2', '9')
    not_there = cloud.ask('alice', 'GET', f'/fairness/requests/{never}')
    assert there.status_code == not_there.status_code == 404
    assert there.json['itemNotFound']['message'].replace(
        BLUES, ''
    ) == not_there.json['itemNotFound']['message'].replace(never, '')


def test_the_history_of_a_request_is_shown_where_it_is_asked_for(cloud):
    url = f'/fairness/requests/{REDS}'
    plain = cloud.ask('alice', 'GET', url).json['request']
    assert plain['waited'] == 'waited 2 h for its turn'
    assert 'events' not in plain
    assert (
        'events'
        not in cloud.ask('alice', 'GET', f'{url}?events=false').json['request']
    )
    whole = cloud.ask('alice', 'GET', f'{url}?events=true').json['request']
    assert whole['events'] == [fake_requests.event()]
    assert cloud.ask('alice', 'GET', f'{url}?events=1').status_code == 400


@pytest.mark.parametrize('who', ['carol', 'nobody'])
def test_the_history_of_a_request_of_another_project_gives_404(cloud, who):
    url = f'/fairness/requests/{REDS}?events=true'
    answer = cloud.ask(who, 'GET', url)
    assert answer.status_code == 404
    assert 'behind_others' not in answer.text


@pytest.mark.parametrize(
    ('who', 'uuid', 'action', 'code'),
    [
        ('alice', REDS, 'cancel', 202),
        ('admin', BLUES, 'cancel', 202),
        ('admin', REDS, 'release', 202),
        ('alice', REDS, 'release', 403),
        ('admin', BLUES, 'first', 202),
        ('admin', BLUES, 'unfirst', 202),
        ('alice', REDS, 'first', 403),
        ('alice', REDS, 'unfirst', 403),
        ('alice', REDS, 'hold', 202),
        ('alice', REDS, 'unhold', 202),
        ('alice', BLUES, 'hold', 404),
        ('alice', BLUES, 'unhold', 404),
        ('auditor', REDS, 'hold', 403),
        ('auditor', REDS, 'unhold', 403),
        ('alice', BLUES, 'cancel', 404),
        ('alice', BLUES, 'release', 404),
        ('auditor', REDS, 'cancel', 403),
        ('nobody', BLUES, 'cancel', 404),
        ('admin', REDS, 'shelve', 400),
    ],
)
def test_each_caller_may_act_as_the_policy_says(
    cloud, who, uuid, action, code
):
    url = f'/fairness/requests/{uuid}/action'
    answer = cloud.ask(who, 'POST', url, {action: None})
    assert answer.status_code == code
    done = cloud.requests.operations.done
    assert len(done) == (code == 202)
    if code == 202 and action == 'cancel':
        assert done[0][2] is (who == 'admin')


def act(cloud, who, action, order=None, uuid=REDS):
    url = f'/fairness/requests/{uuid}/action'
    return cloud.ask(who, 'POST', url, {action: order})


def test_a_full_cloud_refuses_a_release_unless_no_room_is_asked_for(cloud):
    cloud.requests.operations.is_full = True
    answer = act(cloud, 'admin', 'release')
    assert answer.status_code == 409
    assert 'no room' in answer.json['conflictingRequest']['message']
    assert act(cloud, 'admin', 'release', {}).status_code == 409
    order = {'without_room': True}
    assert act(cloud, 'admin', 'release', order).status_code == 202


def test_a_hold_names_its_holder_and_only_operators_end_their_own(cloud):
    told = act(cloud, 'alice', 'hold').json['request']
    assert told['held_by'] == 'owner'
    assert act(cloud, 'alice', 'unhold').json['request']['held_by'] is None
    told = act(cloud, 'admin', 'hold', {'why': 'open invoice'})
    assert told.json['request']['held_by'] == 'operator'
    assert cloud.requests.operations.why == 'open invoice'
    assert act(cloud, 'alice', 'unhold').status_code == 409
    assert act(cloud, 'admin', 'unhold').status_code == 202


@pytest.mark.parametrize(
    'body',
    [
        {'hold': {'why': ''}},
        {'hold': {'why': 'x' * 201}},
        {'hold': {'why': 'a\nb'}},
        {'hold': {'why': 'a\u2028b'}},
        {'hold': {'by_operator': True}},
        {'release': {'without_room': 1}},
        {'release': {'room': True}},
        {'first': {'turn': 1}},
        {'unhold': {'by_operator': True}},
    ],
)
def test_a_body_that_is_no_action_is_refused(cloud, body):
    url = f'/fairness/requests/{REDS}/action'
    assert cloud.ask('admin', 'POST', url, body).status_code == 400
    assert not cloud.requests.operations.done


def test_a_cancel_that_is_too_late_gives_409(cloud):
    url = f'/fairness/requests/{REDS}/action'
    cloud.ask('alice', 'POST', url, {'cancel': None})
    answer = cloud.ask('alice', 'POST', url, {'cancel': {}})
    assert answer.status_code == 409
    assert 'cancelled' in answer.json['conflictingRequest']['message']


def test_everybody_sees_how_full_the_cloud_is(cloud):
    answer = cloud.ask('carol', 'GET', '/fairness/capacity')
    assert answer.json['capacity']['classes'][0]['largest'] == 1
    assert cloud.ask('nobody', 'GET', '/fairness/capacity').status_code == 403


def test_requests_go_to_the_leading_process(cloud):
    cloud.requests.rpc.leader = 'other'
    cloud.ask('alice', 'GET', f'/fairness/requests/{REDS}')
    assert cloud.requests.rpc.calls == [
        (None, 'get_request'), ('other', 'get_request')
    ]  # fmt: skip


@pytest.mark.parametrize(
    'error',
    [
        exception.HostNotReached('no answer'),
        exception.NotLeading(''),
        exception.StoreAway('mysql://user:password@host'),
        exception.CloudAway('placement answers 503'),
    ],
)
def test_an_error_of_the_service_gives_503_without_details(cloud, error):
    cloud.requests.operations.error = error
    for url in URLS:
        answer = cloud.ask('alice', 'GET', f'/fairness/{url}')
        assert answer.status_code == 503
        assert 'password' not in answer.text
        said = next(iter(answer.json.values()))['message']
        is_away = isinstance(
            error, exception.HostNotReached | exception.NotLeading
        )
        begun = 'does not answer' if is_away else 'failed to execute this'
        assert said.startswith(f'The cluster service {begun}')
        assert 'Waiting requests are not lost' in said


@pytest.mark.parametrize(
    'broken',
    [
        [1],
        {'request': {}},
        {'requests': [{'uuid': 3}]},
        {'shares': [{'name': 'p'}]},
        {'preemptions': [{}], 'preemption': {}},
    ],
)
def test_an_invalid_answer_gives_503(cloud, broken):
    cloud.requests.rpc.broken = broken
    for url in URLS:
        answer = cloud.ask('alice', 'GET', f'/fairness/{url}')
        assert answer.status_code == 503
