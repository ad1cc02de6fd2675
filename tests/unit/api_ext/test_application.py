# SPDX-License-Identifier: Apache-2.0

"""What every URL has in common."""

import io

import pytest
import webob

from api_ext import application
from api_ext import faults
from tests.unit.api_ext import fake_cloud

ACTION = '/fairness/cmp1/action'


def fault_of(answer):
    [(key, fault)] = answer.json.items()
    assert fault['code'] == answer.status_code
    assert answer.content_type == 'application/json'
    assert faults.FAULTS_BY_CODE[answer.status_code].key == key
    return fault['message']


@pytest.mark.parametrize(
    ('path', 'is_ours'),
    [
        ('/fairness', True),
        ('/fairness/', True),
        ('/fairness/hosts', True),
        (f'/{fake_cloud.RED}/fairness/users/me', True),
        ('/fairness/a\nb', True),
        ('/fairnessless', False),
        ('/servers/fairness', False),
        ('/servers', False),
        ('', False),
        ('/', False),
    ],
)
def test_only_paths_below_fairness_are_answered_by_the_filter(path, is_ours):
    assert application.is_fairness_request({'PATH_INFO': path}) is is_ours


def test_all_other_paths_are_passed_to_nova(cloud):
    assert cloud.ask('alice', 'GET', '/servers').text == 'Nova itself'


def test_without_a_token_nothing_is_told(cloud):
    for url in ('/fairness', '/fairness/hosts', '/fairness/no/such'):
        assert 'token' in fault_of(cloud.ask(None, 'GET', url))
    assert cloud.client.calls == []


def test_the_project_in_the_url_must_equal_that_of_the_token(cloud):
    url = '/{}/fairness/users/me'
    good = cloud.ask('alice', 'GET', url.format(fake_cloud.RED))
    assert good.status_code == 200
    bad = cloud.ask('alice', 'GET', url.format(fake_cloud.BLUE))
    assert bad.status_code == 400
    assert "doesn't match Context's project_id" in fault_of(bad)


@pytest.mark.parametrize(
    ('method', 'url', 'allowed'),
    [
        ('POST', '/fairness', 'GET'),
        ('DELETE', '/fairness/hosts', 'GET'),
        ('GET', ACTION, 'POST'),
        ('PUT', '/fairness/hosts/action', 'GET, POST'),
        ('PATCH', '/fairness/users/me', 'GET'),
    ],
)
def test_a_wrong_method_gives_405_with_the_allowed_methods(
    cloud, method, url, allowed
):
    answer = cloud.ask('admin', method, url)
    assert answer.status_code == 405
    assert answer.headers['Allow'] == allowed
    assert method in fault_of(answer)


@pytest.mark.parametrize(
    'url',
    ['/fairness/no', '/fairness/hosts/a/b', '/fairness//hosts', '/fairness//'],
)
def test_an_unknown_url_gives_404(cloud, url):
    answer = cloud.ask('admin', 'GET', url)
    assert answer.status_code == 404
    assert fault_of(answer) == 'The resource could not be found.'


@pytest.mark.parametrize(
    ('url', 'what'),
    [
        ('/fairness/hosts/%2e%2e%00', 'host'),
        ('/fairness/hosts/..', 'host'),
        ('/fairness/hosts/c%C3%B6mp', 'host'),
        ('/fairness/hosts/cmp1%0A', 'host'),
        ('/fairness/hosts/' + 'x' * 256, 'host'),
        ('/fairness/users/%7Bid%7D', 'id'),
        ('/fairness/projects/a%20b', 'id'),
        ('/fairness/instances/1234', 'uuid'),
        ('/fairness/hosts/%FF', 'UTF-8'),
    ],
)
def test_an_invalid_name_in_a_url_is_refused(cloud, url, what):
    answer = cloud.ask('admin', 'GET', url)
    assert answer.status_code == 400
    assert what in fault_of(answer)


@pytest.mark.parametrize(
    ('query', 'what'),
    [
        ('limit=x', 'limit'),
        ('limit=', 'limit'),
        ('limit=0', 'limit'),
        ('limit=-1', 'limit'),
        ('limit=%D9%A1', 'limit'),
        ('limit=99999999999999999999999', 'limit'),
        ('limit=1&limit=2', 'twice'),
        ('page=2', 'page'),
        ('sort_key=peers', 'sort_key'),
        ('sort_dir=up', 'sort_dir'),
        ('marker=%FF', 'decoded'),
        ('marker=a%20b', 'marker'),
        ('&'.join(f'x{n}=1' for n in range(50)), 'decoded'),
    ],
)
def test_an_invalid_query_is_refused(cloud, query, what):
    answer = cloud.ask('admin', 'GET', f'/fairness/hosts?{query}')
    assert answer.status_code == 400
    assert what in fault_of(answer)


@pytest.mark.parametrize(
    ('body', 'what'),
    [
        (b'', 'not JSON'),
        (b'{', 'not JSON'),
        (b'\xff\xfe', 'not JSON'),
        (b'[' * 60000, 'deep'),
        (b'{"pause": null, "pause": null}', 'twice'),
        (b'{"set-metric": {"name": NaN}}', 'NaN'),
        ([], 'body'),
        (None, 'not JSON'),
        ({}, 'body'),
        ({'pause': None, 'resume': None}, 'body'),
        ({'explode': None}, 'explode'),
        ({'pause': {'for': 1}}, 'pause'),
        ({'pause': 1}, 'pause'),
        ({'set-metric': 'GreedinessMetric'}, 'set-metric'),
        ({'set-metric': {}}, 'name'),
        ({'set-metric': {'name': 7}}, 'name'),
        ({'set-metric': {'name': ''}}, 'name'),
        ({'set-metric': {'name': '\ud800'}}, 'name'),
        ({'set-metric': {'name': '../metric'}}, 'name'),
        ({'set-metric': {'name': 'x', 'epoch': 9}}, 'epoch'),
    ],
)
def test_a_body_against_the_schema_is_refused(cloud, body, what):
    answer = cloud.ask(
        'admin', 'POST', ACTION, body, Content_Type='application/json'
    )
    assert answer.status_code == 400
    assert what in fault_of(answer)
    assert cloud.client.calls == []


@pytest.mark.parametrize(
    'content_type', ['', 'text/plain', 'application/xml', 'a/b/c']
)
def test_a_body_that_is_not_json_is_refused(cloud, content_type):
    body = b'{"pause": null}'
    answer = cloud.ask(
        'admin', 'POST', ACTION, body, Content_Type=content_type
    )
    assert answer.status_code == 415
    assert 'application/json' in fault_of(answer)


def test_an_action_sent_by_plain_curl_is_accepted(cloud):
    form = 'application/x-www-form-urlencoded'
    body = b'{"pause": null}'
    answer = cloud.ask('admin', 'POST', ACTION, body, Content_Type=form)
    assert answer.status_code == 202, answer.text
    for wrong in (b'pause=1', b'%7B%22pause%22%3A+null%7D', b''):
        answer = cloud.ask('admin', 'POST', ACTION, wrong, Content_Type=form)
        assert answer.status_code == 400
        assert 'is not JSON' in fault_of(answer)


def test_only_actions_accept_form_encoded_bodies(cloud):
    answer = cloud.ask(
        'admin',
        'PUT',
        '/fairness/shares',
        b'{"account": "p", "share": 1}',
        Content_Type='application/x-www-form-urlencoded',
    )
    assert answer.status_code == 415
    assert 'expected application/json' in fault_of(answer)


def test_a_charset_in_the_content_type_is_ignored(cloud):
    answer = cloud.ask(
        'admin',
        'POST',
        ACTION,
        b'{"pause": null}',
        Content_Type='application/json; charset=UTF-8',
    )
    assert answer.status_code == 202


def test_a_large_body_is_refused_whether_or_not_it_says_how_large(cloud):
    body = b' ' * (application.LARGEST_BODY + 1)
    said = cloud.ask('admin', 'POST', ACTION, body)
    assert said.status_code == 413
    request = webob.Request.blank(f'/v2.1{ACTION}', method='POST')
    request.headers['X-Auth-Token'] = 'admin'
    request.content_type = 'application/json'
    request.environ['wsgi.input'] = io.BytesIO(body)
    request.environ['wsgi.input_terminated'] = True
    request.environ['HTTP_TRANSFER_ENCODING'] = 'chunked'
    request.content_length = None
    assert request.get_response(cloud).status_code == 413


def test_a_caller_without_rights_is_refused_for_a_body_of_any_size(cloud):
    answer = cloud.ask('alice', 'POST', ACTION, b'x' * 10_000_000)
    assert answer.status_code == 403
    assert 'any of these actions' in fault_of(answer)


@pytest.mark.parametrize(
    ('headers', 'status'),
    [
        ({'OpenStack_API_Version': 'compute 2.1'}, 200),
        ({'OpenStack_API_Version': 'compute latest'}, 200),
        ({'OpenStack_API_Version': 'compute 2.96, identity 3.0'}, 200),
        ({'OpenStack_API_Version': 'volume whatever'}, 200),
        ({'X_OpenStack_Nova_API_Version': '2.1'}, 200),
        ({'OpenStack_API_Version': 'compute new'}, 400),
        ({'OpenStack_API_Version': 'compute'}, 400),
        ({'OpenStack_API_Version': 'compute 2.01'}, 400),
        ({'X_OpenStack_Nova_API_Version': 'x' * 1000}, 400),
    ],
)
def test_only_a_valid_microversion_is_accepted(cloud, headers, status):
    answer = cloud.ask('alice', 'GET', '/fairness', **headers)
    assert answer.status_code == status


def test_a_microversion_is_repeated_in_the_answer(cloud):
    answer = cloud.ask(
        'alice', 'GET', '/fairness', OpenStack_API_Version='compute 2.79'
    )
    assert answer.headers['OpenStack-API-Version'] == 'compute 2.79'
    assert 'OpenStack-API-Version' in answer.headers['Vary']


def test_head_answers_as_get_without_a_body(cloud):
    answer = cloud.ask('alice', 'HEAD', '/fairness')
    assert answer.status_code == 200
    assert answer.body == b''


def test_every_rpc_call_carries_the_request_id(cloud):
    cloud.ask('admin', 'GET', '/fairness/hosts')
    ids = {request_id for _, _, request_id in cloud.client.calls}
    assert len(ids) == 1
    assert str(ids.pop()).startswith('req-')


def test_without_a_usable_transport_the_answer_is_503(tmp_path):
    def connect():
        raise faults.Unavailable('no way')

    cloud = fake_cloud.FakeCloud(tmp_path, connect=connect)
    answer = cloud.ask('admin', 'GET', '/fairness/hosts')
    assert answer.status_code == 503
    assert fault_of(answer) == 'no way'
    assert answer.headers['Retry-After'] == '5'


def test_without_any_agent_all_urls_give_503_and_log_the_reason(cloud, caplog):
    cloud.client.silent = {'cmp1', 'cmp2'}
    for url in (
        '/fairness',
        '/fairness/hosts',
        '/fairness/hosts/cmp1',
        '/fairness/users',
        '/fairness/users/me',
        '/fairness/projects',
        f'/fairness/instances/{fake_cloud.ALICES}',
    ):
        answer = cloud.ask('admin', 'GET', url)
        assert answer.status_code == 503, url
        assert 'no answer within 1 s' in caplog.text
        caplog.clear()
        fault_of(answer)
