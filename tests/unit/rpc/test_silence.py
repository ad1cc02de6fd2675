# SPDX-License-Identifier: Apache-2.0

"""Who was silent is not waited for again."""

import pytest

from nova_fairness.rpc import silence
from tests.unit.api_ext import fake_cloud


class FakeClock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


def test_a_silent_host_is_left_out_for_a_while():
    clock = FakeClock()
    who = silence.Silence(10.0, clock)
    who.note(['a'], {'b': 'why'})
    assert who.among(['a', 'b']) == {'b': 'why'}
    clock.now_s += 10.0
    assert who.among(['a', 'b']) == {}


def test_a_host_that_answers_is_asked_again():
    who = silence.Silence(10.0, FakeClock())
    who.note([], {'b': 'why'})
    who.note(['b'], {})
    assert who.among(['a', 'b']) == {}


def test_all_hosts_are_asked_if_all_were_silent():
    who = silence.Silence(10.0, FakeClock())
    who.note([], {'a': 'why', 'b': 'why'})
    assert who.among(['a', 'b']) == {}
    assert who.among(['a', 'b', 'c']) == {'a': 'why', 'b': 'why'}


@pytest.fixture
def cloud(tmp_path):
    cloud = fake_cloud.FakeCloud(tmp_path, silent_s=1000.0)
    cloud.client.silent = {'cmp2'}
    return cloud


def asked(cloud, host):
    return [method for name, method, _ in cloud.client.calls if name == host]


@pytest.mark.parametrize('noun', ['hosts', 'users', 'projects'])
def test_lists_omit_a_silent_host_and_name_it(cloud, noun):
    for _ in range(3):
        answer = cloud.ask('admin', 'GET', f'/fairness/{noun}').json
        assert answer['not_reached'] == [
            {'host': 'cmp2', 'reason': 'no answer within 1 s'}
        ]
    assert len(asked(cloud, 'cmp2')) == 1


def test_a_silent_host_is_asked_again_by_name_and_by_actions(cloud):
    cloud.ask('admin', 'GET', '/fairness/hosts')
    cloud.client.silent = set()
    answer = cloud.ask('admin', 'GET', '/fairness/hosts/cmp2')
    assert answer.status_code == 200
    answer = cloud.ask(
        'admin', 'POST', '/fairness/all/action', {'pause': None}
    )
    assert len(answer.json['hosts']) == 2
    hosts = cloud.ask('admin', 'GET', '/fairness/hosts').json
    assert hosts['partial'] is False
