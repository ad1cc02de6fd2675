# SPDX-License-Identifier: Apache-2.0

"""The interface under abuse: nothing breaks, nothing is told."""

import http.client
import threading

import pytest
import waitress
import webob

from tests.fixtures import api_abuse
from tests.unit.api_ext import fake_cloud

PLACE = api_abuse.AbusedCloud(
    host='cmp1',
    tokens={'admin': 'admin', 'user': 'alice', 'stranger': 'carol'},
    user_id=fake_cloud.ALICE,
    project_id=fake_cloud.RED,
    instance=fake_cloud.ALICES,
    secrets=('cmp1', 'cmp2', fake_cloud.BOB, fake_cloud.BOBS),
    strangers_secrets=(
        fake_cloud.ALICE,
        fake_cloud.RED,
        fake_cloud.ALICES,
    ),
)


@pytest.fixture
def send(cloud):
    def to_cloud(method, path, headers, body):
        path, _, query = path.partition('?')
        request = webob.Request.blank(path, method=method)
        request.environ['QUERY_STRING'] = query
        request.headers.update(headers)
        if body:
            request.body = body
        answer = request.get_response(cloud)
        return api_abuse.Response(
            answer.status_code, dict(answer.headers), answer.body
        )

    return to_cloud


def test_abusive_requests_are_refused(send):
    assert api_abuse.run(PLACE, api_abuse.cases(PLACE), send) == []


@pytest.mark.parametrize('seed', range(4))
def test_random_requests_cause_no_server_error(send, seed):
    cases = api_abuse.random_cases(PLACE, seed, 500)
    assert api_abuse.run(PLACE, cases, send) == []


@pytest.mark.parametrize('silent', [{'cmp2'}, {'cmp1', 'cmp2'}])
def test_abusive_requests_are_refused_while_hosts_are_silent(
    cloud, send, silent
):
    cloud.client.silent = silent
    cases = api_abuse.random_cases(PLACE, 99, 500)
    assert api_abuse.run(PLACE, cases, send) == []


@pytest.fixture
def served(cloud):
    """The same behind a server of HTTP, which reads what is really sent."""
    server = waitress.create_server(cloud, host='127.0.0.1', port=0)
    serving = threading.Thread(target=server.run, daemon=True)
    serving.start()
    yield api_abuse.over_http(
        lambda: http.client.HTTPConnection(
            '127.0.0.1', server.effective_port, timeout=60
        )
    )
    server.close()
    serving.join()


def test_a_server_passes_all_abuse_cases(served):
    assert api_abuse.run(PLACE, api_abuse.cases(PLACE), served) == []
    cases = api_abuse.random_cases(PLACE, 7, 300)
    assert api_abuse.run(PLACE, cases, served) == []


@pytest.mark.parametrize(
    ('who', 'status', 'body', 'headers'),
    [
        ('admin', 500, b'oops', {}),
        ('admin', 200, b'Traceback (most recent call last)', {}),
        ('admin', 200, b'', {'X-Injected': 'yes'}),
        ('user', 200, b'cmp2', {}),
        ('stranger', 200, fake_cloud.RED.encode(), {}),
        ('admin', 404, b'', {}),
        ('admin', 0, b'', {}),
    ],
)
def test_the_abuse_check_detects_a_wrong_response(who, status, body, headers):
    case = api_abuse.AbusiveRequest('a', who, 'GET', '/v2.1/fairness', (200,))
    response = api_abuse.Response(status, headers, body)
    assert list(api_abuse.list_faults(PLACE, case, response))
