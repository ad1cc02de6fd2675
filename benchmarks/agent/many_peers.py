# SPDX-License-Identifier: Apache-2.0

"""How long an agent takes to tell what it knows of many nodes.

An intake of real reports, the real answers and the real RPC, but no host
below it. The client is another process than the agent::

    python -m benchmarks.agent.call_latency
"""

import json
import logging
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import types

import msgpack
import numpy as np
from oslo_config import cfg
import oslo_messaging

from benchmarks.exchange import mesh_nodes
from nova_fairness.exchange import codec
from nova_fairness.exchange import desired_state
from nova_fairness.exchange import desired_store
from nova_fairness.exchange import intake
from nova_fairness.exchange import ledger
from nova_fairness.exchange import limits as bounds
from nova_fairness.measure import totals
from nova_fairness.model import report
from nova_fairness.observe import status
from nova_fairness.rpc import client
from nova_fairness.rpc import endpoint
from nova_fairness.rpc import server
from nova_fairness.runtime import quiet_log

PEERS = 1000
USERS_OF_A_NODE = 20
USERS = 5000
HOST = 'asked'
CALLS = 10


def peer_report(number: int) -> report.NodeReport:
    """Make the report of a node whose users have VMs on others, too."""
    made = mesh_nodes.node_report(number, USERS_OF_A_NODE, 3)
    first = number * USERS_OF_A_NODE % USERS
    table = report.UserTable.of(made.users)
    ids = tuple(f'{first + row:032x}' for row in range(len(table)))
    table.ids = ids
    return made


def _unexpected_question(*_: object) -> endpoint.Answer:
    raise AssertionError('a peer of this benchmark is asked for nothing')


Unasked = type(
    'Unasked',
    (endpoint.AgentCalls,),
    dict.fromkeys(
        endpoint.AgentCalls.__abstractmethods__, _unexpected_question
    ),
)


class Agent(Unasked):
    """Answers two questions about some peers.

    :param peers: how many.
    """

    def __init__(self, peers: int) -> None:
        directory = pathlib.Path(tempfile.gettempdir())
        limits = bounds.Bounds()
        self._intake = intake.Intake(
            ledger.ReportLedger(HOST, 'boot', limits),
            limits,
            desired_state.DesiredState(
                HOST, desired_store.FileStore(directory / 'unused.json')
            ),
            quiet_log.NameCounts(),
            quiet_log.QuietLog(logging.getLogger(__name__), time.monotonic),
            time.monotonic,
        )
        for number in range(peers):
            message = codec.encode(peer_report(number), as_bytes=True)
            self._intake.received({}, message)
        self.go_round()

    def _view(self) -> report.View:
        return self._intake.view(
            time.monotonic(), peer_report(PEERS), mesh_nodes.METRIC, 1e6
        )

    def go_round(self) -> None:
        """Add all reports up, as a round does."""
        found = totals.combine_reports(
            self._view(), mesh_nodes.INTERVAL_S, mesh_nodes.METRIC
        )
        measured = types.SimpleNamespace(
            ownership=types.SimpleNamespace(
                users=found.users, user_index=np.zeros(0, np.int64)
            ),
            user_heaviness=found.totals.instance_heaviness,
            user_usage=found.totals.usage,
            quota=found.totals.quota,
        )
        self._round = types.SimpleNamespace(measured=measured)

    def status(self) -> endpoint.Answer:
        """Say how old the report of each peer is."""
        return {'host': HOST, 'peers': status.peers_status(self._view(), HOST)}

    def users(self) -> endpoint.Answer:
        """Say how the users of all nodes are."""
        return {'host': HOST, 'users': status.users_status(self._round)}


def serve(url: str, peers: int) -> None:
    """Answer calls until standard input ends."""
    agent = Agent(peers)
    serving = server.FairnessServer(
        _transport(url),
        'nova-fairness',
        HOST,
        endpoint.FairnessEndpoint(agent),
    )
    serving.start()
    print(json.dumps(_cost_of_answers(agent)), flush=True)
    sys.stdin.read()
    serving.stop()


def _transport(url: str) -> oslo_messaging.Transport:
    cfg.CONF([])
    return oslo_messaging.get_rpc_transport(cfg.CONF, url=url)


def _cost_of_answers(agent: Agent) -> dict[str, dict[str, float]]:
    """Say how long each answer takes to make, and how large it is."""
    return {
        name: {
            'made_p50_ms': _p50_ms(make),
            'bytes': len(msgpack.packb(make())),
        }
        for name, make in (
            ('get_status', agent.status),
            ('list_users', agent.users),
        )
    }


def _p50_ms(ask: object) -> float:
    taken = []
    for _ in range(CALLS):
        before_s = time.perf_counter()
        ask()
        taken.append((time.perf_counter() - before_s) * 1e3)
    return statistics.median(taken)


def measure(url: str, peers: int) -> dict:
    """Ask an agent with so many peers.

    :param url: of a transport.
    """
    process = subprocess.Popen(
        [sys.executable, '-m', __spec__.name, url, str(peers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        found = json.loads(process.stdout.readline())
        transport = _transport(url)
        asking = client.FairnessClient(transport, 60.0)
        for name, entry in found.items():
            asking.call(HOST, name)
            entry['call_p50_ms'] = _p50_ms(
                lambda name=name: asking.call(HOST, name)
            )
        transport.cleanup()
    finally:
        process.stdin.close()
        process.wait(60)
    return {'peers': peers, **found}


if __name__ == '__main__':
    serve(sys.argv[1], int(sys.argv[2]))
