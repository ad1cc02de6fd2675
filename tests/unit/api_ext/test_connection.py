# SPDX-License-Identifier: Apache-2.0

"""How a process of nova-api comes to its agents."""

import os

from oslo_config import cfg
import pytest

from api_ext import agents
from api_ext import assembly
from api_ext import connection
from api_ext import faults
from nova_fairness.conf import api as api_conf
from tests.unit.api_ext import fake_agents


class FakeMaker:
    def __init__(self, *results):
        self.results = list(results)

    def __call__(self):
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


def test_each_process_makes_one_connection():
    process_id = [1]
    connect = connection.PerProcess(
        FakeMaker('of 1', 'of 2'), lambda: process_id[0]
    )
    assert [connect(), connect()] == ['of 1', 'of 1']
    process_id[0] = 2
    assert [connect(), connect()] == ['of 2', 'of 2']
    process_id[0] = 1
    assert connect() == 'of 1'


def test_a_forked_process_makes_its_own_connection():
    connect = connection.PerProcess(os.getpid)
    assert connect() == os.getpid()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, str(connect() == os.getpid()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b'True'
    os.close(reading)
    os.close(writing)


def test_a_failed_connection_gives_503_and_is_tried_again(caplog):
    connect = connection.PerProcess(
        FakeMaker(ValueError('redis://:secret@host'), 'agents')
    )
    with pytest.raises(faults.Unavailable) as caught:
        connect()
    assert 'secret' not in str(caught.value)
    assert 'secret' in caplog.text
    assert connect() == 'agents'


def configuration(**fairness):
    conf = cfg.ConfigOpts()
    api_conf.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    for name, value in fairness.items():
        conf.set_override(name, value, group='fairness')
    return conf


def test_a_broker_transport_is_allowed_for_few_hosts_only():
    conf = configuration(transport_url='fake://')
    conf.set_override('max_broker_hosts', 3, group='fairness_api')
    made = connection.connect_agents(conf)
    assert made._limits.hosts_count == 3


@pytest.mark.parametrize(('hosts', 'is_refused'), [(3, False), (4, True)])
def test_a_domain_too_large_for_a_broker_is_refused(hosts, is_refused):
    names = tuple(f'cmp{number}' for number in range(hosts))
    client = fake_agents.FakeClient(fake_agents.FakeAgent('cmp0', peers=names))
    some = agents.Agents(client, agents.CallLimits(hosts_count=3))
    if not is_refused:
        assert some.hosts() == names
        return
    with pytest.raises(faults.Unavailable, match='more than 3'):
        some.hosts()


def test_an_unusable_transport_url_is_503():
    conf = configuration(transport_url='nothing://at-all')
    with pytest.raises(faults.Unavailable):
        connection.PerProcess(lambda: connection.connect_agents(conf))()


def test_options_of_the_filter_that_do_not_exist_are_named_at_start(
    tmp_path, caplog
):
    path = tmp_path / 'nova.conf'
    path.write_text('[fairness_api]\nrpc_timeot = 5\n[fairness_x]\ny = 1\n')
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[str(path)], default_config_dirs=[])
    assembly.build(conf)
    [said] = [each.getMessage() for each in caplog.records]
    assert 'did you mean rpc_timeout?' in said
