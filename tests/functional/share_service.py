# SPDX-License-Identifier: Apache-2.0

"""The cluster service beside real agents; its Nova and Placement are fakes.

A program of tests: it reads a file of shares and answers agents until it is
told to end.

    python -m tests.functional.share_service URL DIRECTORY FILE
"""

import pathlib
import signal
import sys
import threading

from nova_fairness.cluster import operations
from nova_fairness.cluster import share_file
from nova_fairness.rpc import client
from nova_fairness.rpc import protocol
from nova_fairness.rpc import requests
from nova_fairness.rpc import server
from nova_fairness.runtime import transport
from tests.integration import fake_ends
from tests.unit.cluster import test_service

EVERY_S = 0.2
READY = 'the shares are served'


def main(url, directory, file):
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    world = test_service.World(directory)
    shares = share_file.ShareFile(pathlib.Path(file))
    world.accounts = shares.accounts()
    process = world.process()
    process.cycle()
    conf = fake_ends.configuration(url, pathlib.Path(directory), 'c1', {})
    opened = transport.open_transport(conf, client.ALLOWED_REMOTE_MODULES)
    serving = server.FairnessServer(
        opened,
        conf.fairness_exchange.domain,
        'c1',
        requests.RequestsEndpoint(operations.Operations(world.store, process)),
        protocol.REQUESTS_TOPIC,
    )
    serving.start()
    print(READY, flush=True)
    while not stopped.wait(EVERY_S):
        world.accounts = shares.accounts()
        world.now += EVERY_S
        process.cycle()
    serving.stop()
    opened.cleanup()


if __name__ == '__main__':
    main(*sys.argv[1:])
