# SPDX-License-Identifier: Apache-2.0

"""A cloud without the cluster service lets nobody wait twice."""

import pytest

from nova_fairness import exception
from nova_fairness.rpc import requests
from nova_fairness.rpc import silence


class FakeClient:
    """Answers what it was told, or nothing."""

    def __init__(self):
        self.asked = 0
        self.answer = None

    def for_request(self, request_id, user_id=''):
        return self

    def call(self, host, method, **given):
        self.asked += 1
        if self.answer is None:
            raise exception.HostNotReached('nobody answered')
        return self.answer


def test_after_a_silence_no_service_is_asked_for_a_while():
    now_s = [0.0]
    rpc = FakeClient()
    client = requests.RequestsClient(
        rpc, silence.Silence(10.0, lambda: now_s[0])
    )
    for second, asked in ((0.0, 1), (9.9, 1), (10.0, 2), (15.0, 2)):
        now_s[0] = second
        with pytest.raises(exception.HostNotReached, match='nobody answered'):
            client.for_request('req-1').call('get_capacity')
        assert rpc.asked == asked
    now_s[0], rpc.answer = 20.0, {'hosts': 1}
    assert client.call('get_capacity') == {'hosts': 1}
    assert client.call('get_capacity') == {'hosts': 1}
    assert rpc.asked == 4
