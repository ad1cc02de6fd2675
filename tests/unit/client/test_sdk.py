# SPDX-License-Identifier: Apache-2.0

"""``conn.fairness`` of a real connection of openstacksdk."""

import pathlib
import re

from openstack import connection
from openstack import exceptions
import pytest

from api_ext.schemas import request as request_schema
from nova_fairness.client import resources
from nova_fairness.client import sdk
from tests.unit.client import fake_compute

TOP = pathlib.Path(__file__).parents[3]
UUID = '53a7a2a1-7d4e-4a55-9d3c-2a8f9d0a1c11'
NEXT = '63a7a2a1-7d4e-4a55-9d3c-2a8f9d0a1c11'


@pytest.fixture
def cloud(requests_mock):
    return fake_compute.FakeCompute(requests_mock)


def connected(cloud, endpoint=fake_compute.COMPUTE):
    made = connection.Connection(
        session=cloud.manager.session,
        region_name='one',
        compute_endpoint_override=endpoint,
        compute_api_version='2',
    )
    sdk.register(made)
    return made.fairness


@pytest.fixture
def fairness(cloud):
    return connected(cloud)


def request(uuid=UUID, state='waiting', **more):
    return {'uuid': uuid, 'state': state, 'explanation': 'why', **more}


def test_fairness_is_a_service_of_the_sdk_connection(cloud, fairness):
    assert isinstance(fairness, sdk.FairnessProxy)
    cloud.answers(f'/requests/{UUID}', {'request': request(odd=[1])})
    found = fairness.get_request(UUID)
    assert (found.id, found.state, found.odd) == (UUID, 'waiting', [1])
    assert cloud.asked[-1].headers['X-Auth-Token'] == 'secret'


def test_an_endpoint_without_a_version_gets_one(cloud):
    fairness = connected(cloud, 'http://compute.example.org')
    cloud.answers('/users/me', {'user': {'id': 'u1'}})
    assert fairness.get_user().id == 'u1'


def test_a_list_is_read_page_by_page_where_the_connection_goes(
    cloud, fairness
):
    behind = 'http://10.0.0.1:8774/v2.1/fairness/requests'
    link = {'rel': 'next', 'href': f'{behind}?marker={UUID}&all_projects=true'}
    first = {'requests': [request()], 'requests_links': [link]}
    cloud.answers('/requests', first)
    cloud.mock.get(
        f'{cloud.base}/requests?marker={UUID}',
        json={'requests': [request(NEXT)]},
    )
    found = [each.id for each in fairness.requests(all_projects=True, limit=1)]
    assert found == [UUID, NEXT]
    assert cloud.asked[0].qs == {'all_projects': ['true'], 'limit': ['1']}
    assert cloud.asked[1].qs['all_projects'] == ['true']
    assert len(cloud.asked) == 2


def test_requests_have_the_filters_of_the_http_interface(cloud, fairness):
    known = set(request_schema.QUERY['properties'])
    told = sdk.FairnessProxy.requests.__doc__
    assert set(re.findall('``([a-z_]+)``', told)) == known
    cloud.answers('/requests', {'requests': []})
    filters = dict.fromkeys(known - {'limit', 'marker'}, 'true')
    assert list(fairness.requests(**filters)) == []
    assert cloud.asked[0].qs == {name: ['true'] for name in filters}


@pytest.mark.parametrize(
    ('method', 'more', 'order'),
    [
        ('cancel_request', {}, {'cancel': None}),
        ('release_request', {}, {'release': None}),
        (
            'release_request',
            {'without_room': True},
            {'release': {'without_room': True}},
        ),
        ('put_request_first', {}, {'first': None}),
        ('put_request_back', {}, {'unfirst': None}),
        ('hold_request', {'why': 'x'}, {'hold': {'why': 'x'}}),
        ('hold_request', {}, {'hold': None}),
        ('unhold_request', {}, {'unhold': None}),
        ('extend_request', {'seconds': 9.0}, {'extend': {'seconds': 9.0}}),
    ],
)
def test_a_request_is_acted_on(cloud, fairness, method, more, order):
    path = f'/requests/{UUID}/action'
    cloud.answers(path, {'request': request()}, method='POST')
    assert getattr(fairness, method)(UUID, **more).id == UUID
    assert cloud.asked[-1].json() == order
    whole = resources.RequestResource.existing(**request())
    assert getattr(fairness, method)(whole, **more).state == 'waiting'


def test_the_history_of_a_request_is_read(cloud, fairness):
    whole = {**request(), 'events': [{'kind': 'waited'}]}
    cloud.answers(f'/requests/{UUID}', {'request': whole})
    assert fairness.request_events(UUID) == [{'kind': 'waited'}]
    assert cloud.asked[-1].qs == {'events': ['true']}
    cloud.answers(f'/requests/{UUID}', {'request': request()})
    assert fairness.request_events(UUID) == []


def test_accounts_are_set(cloud, fairness):
    for path in ('/shares', '/limits'):
        cloud.answers(path, {'account': 'p'}, method='PUT')
    fairness.set_share('p', 2.0)
    assert cloud.asked[-1].json() == {'account': 'p', 'share': 2.0}
    fairness.set_limits('p', budget=3.0)
    assert cloud.asked[-1].json() == {'account': 'p', 'budget': 3.0}
    fairness.set_share('p', 2.0, dry_run=True)
    assert cloud.asked[-1].json() == {
        'account': 'p', 'share': 2.0, 'dry_run': True
    }  # fmt: skip
    fairness.set_limits('p', dry_run=True, budget=3.0)
    assert cloud.asked[-1].json()['dry_run'] is True


def test_an_order_is_previewed(cloud, fairness):
    found = {'requests_count': 0}
    cloud.answers('/orders/multifactor/preview', {'dry_run': found})
    assert fairness.preview_order('multifactor', age=1.5, size=2) == found
    assert cloud.asked[-1].qs == {'parameters': ['age=1.5,size=2']}
    fairness.preview_order('multifactor')
    assert cloud.asked[-1].qs == {}


def test_groups_are_created_changed_and_deleted(cloud, fairness):
    for method, code in (('POST', 201), ('PUT', 200)):
        group = {'name': 'web', 'rate': 2.0}
        cloud.answers('/groups', {'group': group}, code, method)
    found = fairness.create_group('web', 2.0, count=3, project_id='p')
    assert (found.id, found.rate) == ('web', 2.0)
    told = {'name': 'web', 'rate': 2.0, 'count': 3, 'project_id': 'p'}
    assert (cloud.asked[-1].method, cloud.asked[-1].json()) == ('POST', told)
    assert fairness.set_group('web', rate=2.0).id == 'web'
    told = {'name': 'web', 'rate': 2.0}
    assert (cloud.asked[-1].method, cloud.asked[-1].json()) == ('PUT', told)
    cloud.answers('/groups', {'group': None}, method='PUT')
    assert fairness.delete_group('web').answer == {}
    assert cloud.asked[-1].json() == {'name': 'web', 'rate': None}


def test_prices_are_listed_now_and_in_the_past(cloud, fairness):
    cloud.answers('/prices', {'prices': [{'host': 'h1', 'price': 2.0}]})
    assert [each.price for each in fairness.prices()] == [2.0]
    link = {'rel': 'next', 'href': 'http://10.0.0.1/x?marker=1'}
    told = {'prices': [{'price': 3.0}], 'prices_links': [link]}
    path = '/hosts/h%2F1/prices'
    cloud.answers(path, told)
    cloud.answers(f'{path}?marker=1', {'prices': [{'price': 4.0}]})
    found = fairness.price_history('h/1', limit=1)
    assert [each.price for each in found] == [3.0, 4.0]


@pytest.mark.parametrize('name', ['../x', 'a b', 'a/b?c=d', 'ü', '%2e'])
def test_a_name_is_one_part_of_the_path(cloud, fairness, name):
    anything = re.compile(re.escape(fake_compute.COMPUTE))
    cloud.mock.post(anything, json={'hosts': [], 'plan': {}})
    cloud.mock.get(anything, json={'host': {}})
    for ask, parts in (
        (lambda: fairness.act_on_host(name, 'reset'), ['action']),
        (lambda: fairness.stop_plan(name), ['plans', 'action']),
        (lambda: fairness.get_host(name), ['hosts']),
    ):
        ask()
        path = cloud.asked[-1].url.removeprefix(fake_compute.COMPUTE)
        first, *found = path.removeprefix('/').split('/')
        assert (first, len(found)) == ('fairness', len(parts) + 1)
        assert set(parts) < set(found)
        assert '?' not in path


@pytest.mark.parametrize(
    ('plural', 'key'),
    [
        ('groups', 'name'),
        ('shares', 'name'),
        ('limits', 'account'),
        ('hosts', 'name'),
        ('users', 'id'),
        ('projects', 'id'),
        ('plans', 'uuid'),
        ('preemptions', 'uuid'),
    ],
)
def test_every_list_method_of_the_sdk_works(cloud, fairness, plural, key):
    cloud.answers(f'/{plural}', {plural: [{key: 'x'}]})
    assert [each.id for each in getattr(fairness, plural)()] == ['x']


@pytest.mark.parametrize(
    ('noun', 'path', 'key'),
    [
        ('host', 'hosts', 'name'),
        ('plan', 'plans', 'uuid'),
        ('preemption', 'preemptions', 'uuid'),
        ('project', 'projects', 'id'),
        ('server', 'instances', 'uuid'),
    ],
)
def test_every_get_method_of_the_sdk_works(cloud, fairness, noun, path, key):
    told = 'instance' if noun == 'server' else noun
    cloud.answers(f'/{path}/x', {told: {key: 'x'}})
    assert getattr(fairness, f'get_{noun}')('x').id == 'x'


def test_the_sdk_reads_hosts_plans_and_capacity(cloud, fairness):
    cloud.answers('/all/action', {'hosts': []}, 202, 'POST')
    done = fairness.act_on_host('all', 'set-metric', {'name': 'M'})
    assert done == {'hosts': []}
    assert cloud.asked[-1].json() == {'set-metric': {'name': 'M'}}
    cloud.answers('/plans', {'plan': {'uuid': UUID}}, method='POST')
    assert fairness.empty_host('h1').id == UUID
    assert cloud.asked[-1].json() == {'empty': 'h1'}
    path = f'/plans/{UUID}/action'
    cloud.answers(path, {'plan': {'uuid': UUID}}, method='POST')
    assert fairness.approve_plan(UUID).id == UUID
    assert fairness.stop_plan(UUID).id == UUID
    assert cloud.asked[-1].json() == {'stop': None}
    cloud.answers('/capacity', {'capacity': {'flavors': []}})
    assert fairness.get_capacity() == {'flavors': []}


def test_hosts_of_the_border_are_read_and_moved(cloud, fairness):
    cloud.answers('/partition', {'partition': {'target': None}})
    assert fairness.get_border() == {'target': None}
    cloud.answers('/partition', {'target': 2}, method='PUT')
    assert fairness.set_border_target(2) == {'target': 2}
    assert cloud.asked[-1].json() == {'target': 2}
    told = {'name': 'h1', 'state': 'batch'}
    cloud.answers('/partition/hosts', {'hosts': [told]})
    assert [each.id for each in fairness.border_hosts()] == ['h1']
    cloud.answers('/partition/hosts/h1', {'host': {**told, 'work': []}})
    assert fairness.get_border_host('h1').work == []
    path = '/partition/hosts/h1/action'
    moved = {**told, 'state': 'cloud_asked'}
    cloud.answers(path, {'host': moved}, 202, 'POST')
    assert fairness.act_on_border_host('h1', 'move').state == 'cloud_asked'
    assert cloud.asked[-1].json() == {'move': None}


def test_status_plugins_and_previews_are_read(cloud, fairness):
    cloud.answers('/status', {'status': {'leader': 'ctl1'}})
    assert fairness.get_status() == {'leader': 'ctl1'}
    cloud.answers('', {'metrics': [], 'policies': []})
    assert fairness.get_plugins() == {'metrics': [], 'policies': []}
    cloud.answers('/hosts/h%2F1/preview', {'preview': {'name': 'h/1'}})
    assert fairness.get_preview('h/1') == {'name': 'h/1'}


def test_the_page_about_scripts_names_every_method():
    own = vars(sdk.FairnessProxy)
    public = {name for name in own if not name.startswith('_')}
    page = (TOP / 'doc/source/user/sdk.rst').read_text('utf-8')
    named = set(re.findall('``([a-z_]+)``', page))
    # Of every service of openstacksdk, or for the command line alone.
    assert public - named == {'request', 'attach'}


def test_a_refusal_is_an_error_with_its_reason(cloud, fairness):
    fault = {'conflictingRequest': {'message': 'It ended.'}}
    cloud.answers(f'/requests/{UUID}/action', fault, 409, 'POST')
    with pytest.raises(exceptions.ConflictException, match=r'It ended\.'):
        fairness.cancel_request(UUID)


def test_an_answer_of_something_else_is_an_error(cloud, fairness):
    cloud.mock.get(f'{cloud.base}/users/me', text='<html>')
    with pytest.raises(exceptions.SDKException, match='not a JSON object'):
        fairness.get_user()
    cloud.answers('/users/me', {'server': {}})
    with pytest.raises(exceptions.SDKException, match="lacks 'user'"):
        fairness.get_user()


def states(cloud, path, noun, *found):
    cloud.mock.get(
        f'{cloud.base}{path}',
        [{'json': {noun: request(state=state)}} for state in found],
    )


def test_a_wait_ends_when_the_request_runs(cloud, fairness):
    states(
        cloud, f'/requests/{UUID}', 'request', 'waiting', 'sending', 'active'
    )
    found = fairness.wait_for_request(UUID, interval=0.01)
    assert (found.state, len(cloud.asked)) == ('active', 3)


def test_a_wait_for_a_state_that_never_comes_ends(cloud, fairness):
    states(cloud, f'/requests/{UUID}', 'request', 'waiting', 'failed')
    with pytest.raises(exceptions.ResourceFailure, match='is failed: why'):
        fairness.wait_for_request(UUID, interval=0.01)
    states(cloud, f'/requests/{UUID}', 'request', 'cancelled')
    ended = fairness.wait_for_request(UUID, ('cancelled',), interval=0.01)
    assert ended.state == 'cancelled'
    states(cloud, f'/plans/{UUID}', 'plan', 'running', 'stopped')
    with pytest.raises(exceptions.ResourceFailure, match=r'plan .* stopped'):
        fairness.wait_for_plan(UUID, interval=0.01)


def test_a_wait_takes_no_longer_than_it_may(cloud, fairness):
    states(cloud, f'/requests/{UUID}', 'request', 'waiting')
    with pytest.raises(exceptions.ResourceTimeout, match='not active in'):
        fairness.wait_for_request(UUID, wait=0.05, interval=0.01)
