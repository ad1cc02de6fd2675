# SPDX-License-Identifier: Apache-2.0

"""The cluster service beside real agents; its Nova and Placement are fakes.

A program of tests: it reads a file of shares and one of UUIDs of servers that
are preemptible, a line each, and answers agents until it is told to end. A
third file says which servers run in which group, and what is spent for groups;
what was charged is written to a fourth.

    python -m tests.functional.share_service URL DIRECTORY SHARES \\
        [SERVERS [GROUPS CHARGED]]
"""

import json
import pathlib
import signal
import sys
import threading
import time

from nova_fairness.cluster.accounts import share_file
from nova_fairness.cluster.admission import intake
from nova_fairness.cluster.api import requests as requests_module
from nova_fairness.cluster.messages import parser
from nova_fairness.rpc import client
from nova_fairness.rpc import protocol
from nova_fairness.rpc import requests
from nova_fairness.rpc import server
from nova_fairness.runtime import state_file
from nova_fairness.runtime import transport
from tests.integration import fake_ends
from tests.unit.cluster import test_service

EVERY_S = 0.2
HOST = 'node-1'
"""Of the agents that ask: one is charged for servers of its own host only."""
READY = 'the shares are served'

TOO_LARGE = 99
"""vCPUs of servers that never start: the real ones run elsewhere."""

TERMS = intake.AdmissionOptions(
    preemptible=parser.PreemptibleRules(marks=True)
)
MARK = {'fairness:preemptible': ['true']}


class Servers:
    """Requests for the servers that a file names."""

    def __init__(self, world, file):
        self.world = world
        self.file = file
        self.known = set()

    def follow(self):
        named = set(self.file.read_text().split()) if self.file else set()
        for uuid in named - self.known:
            self.world.cloud.add_server(uuid)
            self.world.store.store_message(
                test_service.build(uuid, uuid, TOO_LARGE, hints=MARK)
            )
        for uuid in self.known - named:
            self.world.cloud.remove(uuid)
        self.known = named


class Groups:
    """Servers that run, and what is spent for them, as a file says."""

    def __init__(self, world, answers, file, charged):
        self.world, self.answers = world, answers
        self.file, self.charged = pathlib.Path(file), pathlib.Path(charged)
        self.said = ''
        world.cloud.add_host(HOST, vcpu=TOO_LARGE)

    def follow(self):
        if (now := self.file.read_text()) != self.said:
            self.said = now
            self.set(**json.loads(now))
        spent = self.world.store.market.read_if_changed(-1).spent
        state_file.replace(self.charged, json.dumps(spent), durable=False)

    def set(self, servers, rates):
        cloud = self.world.cloud
        for uuid in servers.keys() - cloud.servers.keys():
            group = {'fairness:group': servers[uuid]}
            cloud.add_server(uuid, 'p', 'u', metadata=group)
            cloud.build(uuid, HOST, {'VCPU': 1})
        listed = self.answers.groups('p', None, 99)['groups']
        there = {each['name'] for each in listed}
        for name, rate in rates.items():
            if name in there:
                self.answers.set_group('p', name, rate, None)
            else:
                self.answers.create_group('p', name, rate, 1)


def main(url, directory, file, servers=None, groups=None, charged=None):
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    world = test_service.World(directory)
    shares = share_file.open_watched_file(pathlib.Path(file))
    world.accounts = shares.content()
    follower = Servers(world, servers and pathlib.Path(servers))
    follower.follow()
    process = world.process(terms=TERMS)
    process.cycle()
    answers = requests_module.ClusterOperations(world.store, process)
    rates = groups and Groups(world, answers, groups, charged)
    conf = fake_ends.configuration(url, pathlib.Path(directory), 'c1', {})
    opened = transport.open_transport(conf, client.ALLOWED_REMOTE_MODULES)
    serving = server.FairnessServer(
        opened,
        conf.fairness_exchange.domain,
        'c1',
        requests.RequestsEndpoint(answers),
        protocol.REQUESTS_TOPIC,
    )
    serving.start()
    print(READY, flush=True)
    began = time.monotonic() - world.now
    while not stopped.wait(EVERY_S):
        world.accounts = shares.content()
        follower.follow()
        # CPU time is charged up to the time that passed.
        world.now = time.monotonic() - began
        process.cycle()
        if rates:
            rates.follow()
    serving.stop()
    opened.cleanup()


if __name__ == '__main__':
    main(*sys.argv[1:])
