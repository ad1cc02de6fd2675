# SPDX-License-Identifier: Apache-2.0

"""How the client talks to the compute endpoint, and what it says of faults."""

from keystoneauth1 import exceptions as ksa_exceptions
from osc_lib import exceptions
import pytest

from tests.unit.client import fake_compute


@pytest.fixture
def cloud(requests_mock):
    return fake_compute.FakeCompute(requests_mock)


@pytest.fixture
def api(cloud):
    return cloud.manager.fairness


@pytest.mark.parametrize(
    'endpoint',
    [
        'http://compute.example.org/v2.1',
        'http://compute.example.org/v2.1/',
        'http://compute.example.org',
        'http://compute.example.org/',
    ],
)
def test_the_endpoint_of_the_catalog_may_have_a_version(
    requests_mock, endpoint
):
    cloud = fake_compute.FakeCompute(requests_mock, endpoint)
    cloud.answers('/users/me', {'user': {'id': 'u1'}})
    assert cloud.manager.fairness.get_user().answer == {'id': 'u1'}
    (asked,) = cloud.asked
    assert asked.headers['X-Auth-Token'] == 'secret'
    assert asked.headers['Accept'] == 'application/json'


def test_the_project_may_be_in_the_endpoint(requests_mock):
    cloud = fake_compute.FakeCompute(
        requests_mock, f'{fake_compute.COMPUTE}/p1'
    )
    cloud.base = f'{fake_compute.COMPUTE}/p1/fairness'
    cloud.answers('', {'metrics': []})
    assert cloud.manager.fairness.get_plugins() == {'metrics': []}


def test_a_cloud_without_the_service_is_named(cloud):
    cloud.manager.fairness.region_name = 'nowhere'
    with pytest.raises(
        ksa_exceptions.EndpointNotFound, match='compute service in nowhere'
    ):
        cloud.manager.fairness.get_plugins()


FAULTS = {
    'ours': (
        404,
        {'itemNotFound': {'code': 404, 'message': 'no host x'}},
        'no host x (HTTP 404) (Request-ID: req-1)',
    ),
    'of the middleware': (
        401,
        {'error': {'code': 401, 'message': 'The request needs a token.'}},
        'The request needs a token. (HTTP 401) (Request-ID: req-1)',
    ),
    'without a reason': (
        502,
        {},
        'Bad Gateway (HTTP 502) (Request-ID: req-1)',
    ),
    'of a Nova without the filter': (
        404,
        {
            'itemNotFound': {
                'code': 404,
                'message': 'The resource could not be found.',
            }
        },
        (
            'The resource could not be found. Is the filter of '
            'nova-fairness in the api-paste.ini of this cloud? (HTTP 404) '
            '(Request-ID: req-1)'
        ),
    ),
}


@pytest.mark.parametrize(
    ('status', 'content', 'said'), FAULTS.values(), ids=list(FAULTS)
)
def test_an_http_error_is_shown_in_one_line(cloud, api, status, content, said):
    cloud.answers(
        '/hosts/x',
        content,
        status,
        headers={'X-OpenStack-Request-Id': 'req-1'},
        reason='Bad Gateway',
    )
    with pytest.raises(exceptions.CommandError) as caught:
        api.get_host('x')
    assert str(caught.value) == said


def test_an_html_page_of_a_proxy_is_an_error(cloud, api):
    cloud.mock.get(f'{cloud.base}/users', text='<html>')
    with pytest.raises(exceptions.CommandError, match='not a JSON object'):
        next(api.users())


def test_an_answer_without_fairness_content_is_named(cloud, api):
    cloud.answers('/users/me', {'server': {}})
    with pytest.raises(exceptions.CommandError, match="lacks 'user'"):
        api.get_user()


def test_a_message_of_nova_is_text_without_tags(cloud, api):
    text = 'The resource could not be found.<br /><br />\n\n\n'
    cloud.answers('/instances/x', {'itemNotFound': {'message': text}}, 404)
    with pytest.raises(exceptions.CommandError) as caught:
        api.get_server('x')
    assert '<' not in str(caught.value)
    assert str(caught.value).startswith('The resource could not be found. Is')
