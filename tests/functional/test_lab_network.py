# SPDX-License-Identifier: Apache-2.0

"""The network of a run and its Redis, on real namespaces."""

import os
import pathlib
import signal
import socket

import pytest

from fairness_lab.testbed import qemu
from fairness_lab.testbed.nodes import groups
from fairness_lab.testbed.nodes import hub as hub_module
from fairness_lab.testbed.nodes import namespace
from fairness_lab.testbed.nodes import processes
from fairness_lab.testbed.nodes import redis_server
from nova_fairness import exception

pytestmark = [pytest.mark.real, pytest.mark.beside]

PATIENCE_S = 20


@pytest.fixture
def run():
    made = qemu.begin_run(os.getpid())
    yield made
    qemu.finish_run(made)


@pytest.fixture
def hub(run):
    made = hub_module.Hub(run)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def link(run, hub):
    """Link a new namespace to the hub."""
    linked = []

    def make(name, number):
        made = namespace.NetworkNamespace(name, run)
        made.start()
        linked.append(made)
        hub.link(name, made.pid, number)
        return made

    yield make
    for made in linked:
        made.stop()


@pytest.fixture
def redis(run, hub):
    made = redis_server.RedisServer(run)
    made.open(hub)
    yield made
    made.close()


def listener(there, number):
    made = namespace.open_socket(there.pid, socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((hub_module.address(number), 7))
    made.settimeout(0.2)
    return made


def reaches(one, number, heard):
    """Tell whether a datagram arrives."""
    with namespace.open_socket(
        one.pid, socket.AF_INET, socket.SOCK_DGRAM
    ) as sender:
        sender.sendto(b'x', (hub_module.address(number), 7))
    try:
        return heard.recv(10) == b'x'
    except TimeoutError:
        return False


def interfaces_here():
    return {path.name for path in pathlib.Path('/sys/class/net').iterdir()}


def test_nodes_reach_each_other_until_one_is_cut_off(hub, link):
    before = interfaces_here()
    one, other, third = (
        link(name, number) for number, name in enumerate('abc', start=1)
    )
    with listener(other, 2) as heard, listener(third, 3) as also:
        assert processes.wait_until(lambda: reaches(one, 2, heard), PATIENCE_S)
        hub.cut('b')
        assert not reaches(one, 2, heard)
        assert reaches(one, 3, also), 'the others are not cut off'
        hub.heal('b')
        assert processes.wait_until(lambda: reaches(one, 2, heard), PATIENCE_S)
    assert interfaces_here() == before


def test_redis_is_unreachable_while_its_link_is_cut(redis):
    assert redis.answers()
    redis.freeze()
    assert not redis.answers()
    redis.thaw()
    assert redis.answers()
    redis.kill()
    assert not redis.running
    assert not redis.answers()
    redis.start()
    assert processes.wait_until(redis.answers, PATIENCE_S)


def test_redis_is_flushed_on_request(redis, link):
    said = b'SET key value\r\n'
    away = link('a', 1)
    with namespace.open_socket(
        away.pid, socket.AF_INET, socket.SOCK_STREAM
    ) as talking:
        talking.connect(
            (hub_module.address(hub_module.SERVICE), redis_server.PORT)
        )
        talking.sendall(said)
        assert talking.recv(10) == b'+OK\r\n'
    assert redis.keys() == 1
    redis.flush()
    assert redis.keys() == 0


def test_a_failed_command_in_a_network_is_reported(link):
    with pytest.raises(
        exception.LabError, match=r'network a failed .*: .*nonsense'
    ):
        link('a', 1).run(['ip', 'link', 'nonsense'])


def begin_run(writing):
    """Begin a run with a network, say which, and wait to be killed."""
    run = qemu.begin_run(os.getpid())
    hub = hub_module.Hub(run)
    hub.start()
    redis_server.RedisServer(run).open(hub)
    os.write(writing, f'{run.name} {hub.pid}'.encode())
    signal.pause()


def test_nothing_of_a_network_is_left_when_its_owner_dies(tmp_path):
    """The network of a killed run vanishes when the next one begins."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            begin_run(writing)
        finally:
            os._exit(1)
    name, pid = os.read(reading, 100).decode().split()
    os.close(reading)
    os.close(writing)
    holder = processes.identify(int(pid))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert processes.is_alive(holder), 'a killed run cannot clean up'
    assert name in qemu.remove_dead_runs()
    assert not processes.is_alive(holder)
    assert name not in groups.runs_with_groups()
