# SPDX-License-Identifier: Apache-2.0

"""The HTTP interface of a real nova-api under abuse."""

import pytest
import schemathesis

from tests.fixtures import api_abuse
from tests.fixtures import api_fuzz
from tests.fixtures.nova_cloud import places
from tests.fixtures.nova_cloud import rest

pytestmark = [pytest.mark.real, pytest.mark.timeout(3600)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)

RANDOM_COUNT = 1000


@pytest.fixture
def place(cloud, servers):
    alice, bob = cloud.users['alice'], cloud.users['bob']
    return api_abuse.AbusedCloud(
        host='cmp1',
        tokens={
            'admin': cloud.admin.token,
            'user': alice.token,
            'stranger': bob.token,
        },
        user_id=alice.user,
        project_id=alice.project,
        instance=servers['alice-1'],
        secrets=(*cloud.nodes, cloud.admin.token),
        strangers_secrets=(alice.user, alice.project, servers['alice-1']),
    )


@pytest.fixture
def send(cloud):
    return api_abuse.over_http(
        lambda: rest.Connection(cloud.controller, places.PORTS['compute'])
    )


@pytest.fixture(autouse=True)
def steered_afterwards(cloud):
    """What administrators do by chance is undone."""
    yield
    path = '/fairness/all/action'
    cloud.admin.post('compute', path, {'resume': None})


def logged(cloud):
    return cloud.controller.log('compute').read_text(errors='replace')


def test_abusive_requests_are_refused(cloud, place, send):
    assert api_abuse.run(place, api_abuse.cases(place), send) == []
    assert 'Unexpected exception in API method' not in logged(cloud)


@pytest.mark.slow
def test_random_requests_cause_no_server_error(cloud, place, send):
    cases = api_abuse.random_cases(place, 1, RANDOM_COUNT)
    assert api_abuse.run(place, cases, send) == []
    assert 'Unexpected exception in API method' not in logged(cloud)


class Application:
    """Lets the fuzzer, which knows WSGI, reach nova-api."""

    def __init__(self, send):
        self._send = send

    def __call__(self, environ, start_response):
        path = environ['REQUEST_URI'].partition('?')[0]
        if environ['QUERY_STRING']:
            path += f'?{environ["QUERY_STRING"]}'
        headers = {
            name.removeprefix('HTTP_').replace('_', '-').title(): value
            for name, value in environ.items()
            if name.startswith('HTTP_') or name == 'CONTENT_TYPE'
        }
        length = int(environ.get('CONTENT_LENGTH') or 0)
        body = environ['wsgi.input'].read(length)
        method = environ['REQUEST_METHOD']
        answer = self._send(method, path, headers, body)
        start_response(
            f'{answer.status} as answered', list(answer.headers.items())
        )
        return [answer.body]


@pytest.mark.parametrize(
    'count', [200, pytest.param(1000, marks=pytest.mark.slow)]
)
def test_answers_to_a_fuzzer_match_the_openapi_document(cloud, send, count):
    token = cloud.admin.token
    schema = schemathesis.openapi.from_wsgi(
        '/v2.1/fairness/openapi.json',
        Application(send),
        headers={'X-Auth-Token': token},
    )
    # A token goes with every request, so one that is bad for want of it, and
    # for nothing else, is answered; tests without Nova look at that.
    judged_by = [c for c in api_fuzz.CHECKS if c != 'negative_data_rejection']
    sent = api_fuzz.run(schema, token, count, judged_by=judged_by)
    assert sent >= count
