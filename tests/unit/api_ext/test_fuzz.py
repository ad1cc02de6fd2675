# SPDX-License-Identifier: Apache-2.0

"""Requests that a fuzzer makes of the OpenAPI document."""

import pytest
import schemathesis
import webob

from tests.fixtures import api_fuzz

URL = '/v2.1/fairness/openapi.json'


def schema(cloud, who):
    return schemathesis.openapi.from_wsgi(
        URL, cloud, headers={'X-Auth-Token': who}
    )


@pytest.mark.parametrize(
    'count', [200, pytest.param(1000, marks=pytest.mark.slow)]
)
def test_requests_are_answered_as_described(cloud, count):
    sent = api_fuzz.run(schema(cloud, 'admin'), 'admin', count)
    assert sent >= count


def test_a_tenant_learns_nothing_by_trying(cloud):
    secrets = ('cmp1', 'cmp2', 'b' * 32, 'c' * 32)

    def judge(case, response):
        # The fuzzer tries words of the tests as well: an echo tells nothing.
        sent = f'{case.path_parameters} {case.query} {case.body}'
        learnt = {each for each in secrets if each in response.text}
        assert not {each for each in learnt if each not in sent}

    assert api_fuzz.run(schema(cloud, 'alice'), 'alice', 200, judge) >= 200


def test_silent_hosts_give_no_worse_answer_than_503(cloud):
    fuzzed = schema(cloud, 'admin')
    cloud.client.silent = {'cmp1', 'cmp2'}
    assert api_fuzz.run(fuzzed, 'admin', 100) >= 100


@pytest.mark.parametrize('status', [500, 502, 418])
def test_the_fuzz_check_detects_an_undescribed_answer(cloud, status):
    fuzzed = schema(cloud, 'admin')
    cloud.own.answer = lambda request, context: webob.Response(
        status=status, json_body={}
    )
    with pytest.raises(BaseExceptionGroup):
        api_fuzz.run(fuzzed, 'admin', 10)
