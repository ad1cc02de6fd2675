# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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


def test_a_thousand_requests_are_answered_as_described(cloud):
    sent = api_fuzz.run(schema(cloud, 'admin'), 'admin', 1000)
    assert sent >= 1000


def test_a_tenant_learns_nothing_by_trying(cloud):
    secrets = ('cmp1', 'cmp2', 'b' * 32, 'c' * 32)

    def judge(case, response):
        assert not any(secret in response.text for secret in secrets)

    assert api_fuzz.run(schema(cloud, 'alice'), 'alice', 200, judge) >= 200


def test_silent_hosts_are_503_at_most(cloud):
    fuzzed = schema(cloud, 'admin')
    cloud.client.silent = {'cmp1', 'cmp2'}
    assert api_fuzz.run(fuzzed, 'admin', 100) >= 100


@pytest.mark.parametrize('status', [500, 502, 418])
def test_an_answer_that_is_not_described_is_found(cloud, status):
    fuzzed = schema(cloud, 'admin')
    cloud.own.answer = lambda request, context: webob.Response(
        status=status, json_body={}
    )
    with pytest.raises(BaseExceptionGroup):
        api_fuzz.run(fuzzed, 'admin', 10)
