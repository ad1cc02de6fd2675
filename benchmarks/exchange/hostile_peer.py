# SPDX-License-Identifier: Apache-2.0

"""Cost of a single hostile peer for an agent's messaging.

The listener, the answers and what is known of a thousand nodes are those of
an agent (``agent/many_peers.py``). One honest peer asks it all the time, and
one attacker at a time does what ``hostile_peer_attacks.py`` has. Before each
attack the same is measured without one. Needs redis-server and no root;
loopback only::

    python -m benchmarks.exchange.hostile_peer --out FILE
"""

import argparse
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from oslo_config import cfg
import oslo_messaging

from benchmarks.agent import many_peers
from benchmarks.exchange import hostile_peer_attacks as attacks
from nova_fairness.rpc import client
from nova_fairness.rpc import endpoint
from nova_fairness.rpc import server
from tests.fixtures import curve_cloud
from tests.fixtures import redis_server

DOMAIN = 'nova-fairness'
PAUSE_S = 0.02
TIMEOUT_S = 30.0
ROUND_S = 1.0
RECOVERY_S = 14.0
"""Longer than a handshake may take."""

_TICKS = os.sysconf('SC_CLK_TCK')
_PAGE = os.sysconf('SC_PAGE_SIZE')


def transport(url: str) -> oslo_messaging.Transport:
    """Open a transport."""
    cfg.CONF([])
    return oslo_messaging.get_rpc_transport(cfg.CONF, url=url)


def serve(url: str) -> None:
    """Answer calls until standard input ends."""
    made = transport(url)
    agent = many_peers.Agent(many_peers.PEERS)
    serving = server.FairnessServer(
        made,
        DOMAIN,
        many_peers.HOST,
        endpoint.FairnessEndpoint(agent),
    )
    rounds = Rounds(agent)
    rounds.start()
    serving.start()
    serving.wait_ready(TIMEOUT_S)
    # The port and the key of a listener, which Redis would tell as well.
    peer = made._driver._engine_of_process()._listeners[0].peer  # noqa: SLF001
    address = f'{peer.exchange}/{peer.topic}/{peer.server}'
    print(json.dumps([peer.rpc, peer.key, address]), flush=True)
    sys.stdin.read()
    print(json.dumps(rounds.end()), flush=True)
    serving.stop()


class Rounds(threading.Thread):
    """The rounds of an agent, until they are ended."""

    def __init__(self, agent: many_peers.Agent) -> None:
        super().__init__(daemon=True)
        self._agent = agent
        self._ended = threading.Event()
        self._ends: list[tuple[float, float]] = []

    def run(self) -> None:
        """Go round each second; late ones are made up for."""
        due_s = time.monotonic()
        while not self._ended.wait(max(0.0, due_s - time.monotonic())):
            self._agent.go_round()
            self._ends.append((due_s, time.monotonic()))
            due_s += ROUND_S

    def end(self) -> list[tuple[float, float]]:
        """When each was due, and when it was done."""
        self._ended.set()
        self.join()
        return self._ends


class Victim:
    """The process that is attacked, and what it costs."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, '-m', __spec__.name, '--serve', url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.place = json.loads(self._process.stdout.readline())
        self._proc = pathlib.Path('/proc', str(self._process.pid))

    def cpu_s(self) -> float:
        """CPU seconds so far."""
        words = (self._proc / 'stat').read_text().rpartition(')')[2].split()
        return (int(words[11]) + int(words[12])) / _TICKS

    def resident(self) -> int:
        """Bytes in memory."""
        return int((self._proc / 'statm').read_text().split()[1]) * _PAGE

    def descriptors(self) -> int:
        """How many files are open."""
        return sum(1 for _ in (self._proc / 'fd').iterdir())

    def stop(self) -> list[tuple[float, float]]:
        """End it; when its rounds were due, and done."""
        ends, _ = self._process.communicate(timeout=TIMEOUT_S)
        return json.loads(ends)


class Peaks(threading.Thread):
    """The most memory and descriptors until it is ended."""

    def __init__(self, victim: Victim) -> None:
        super().__init__(daemon=True)
        self._victim = victim
        self._ended = threading.Event()
        self.resident = self.descriptors = 0

    def run(self) -> None:
        """Look twenty times a second."""
        while not self._ended.wait(0.05):
            self.resident = max(self.resident, self._victim.resident())
            self.descriptors = max(
                self.descriptors, self._victim.descriptors()
            )

    def end(self) -> None:
        """Stop looking."""
        self._ended.set()
        self.join()


def measure_attack(
    name: str,
    victim: Victim,
    asking: client.FairnessClient,
    keys: pathlib.Path,
    seconds: float,
) -> dict:
    """Ask all the time while one attack lasts.

    :param name: of the attack.
    :returns: what it cost the victim, and what asking took.
    """
    attacker = subprocess.Popen(
        [
            *(sys.executable, '-m', attacks.__name__, name),
            *(*victim.place, str(keys), str(seconds)),
        ],
        stdout=subprocess.PIPE,
    )
    peaks, took_ms, failed = Peaks(victim), [], 0
    peaks.start()
    began_s, spent_s = time.monotonic(), victim.cpu_s()
    while attacker.poll() is None or not took_ms:
        before_s = time.perf_counter()
        try:
            asking.call(many_peers.HOST, 'get_status')
        except Exception:  # noqa: BLE001 - any is an answer that is missing
            failed += 1
        took_ms.append((time.perf_counter() - before_s) * 1e3)
        time.sleep(PAUSE_S)
    ended_s = time.monotonic()
    wall_s = ended_s - began_s
    peaks.end()
    return {
        'lasted_s': [began_s, ended_s],
        'did': json.loads(attacker.stdout.read() or '{}'),
        'cpu_share': (victim.cpu_s() - spent_s) / wall_s,
        'resident_peak_bytes': peaks.resident,
        'descriptors_peak': peaks.descriptors,
        'calls': len(took_ms),
        'failed': failed,
        'p50_ms': statistics.median(took_ms),
        'p99_ms': statistics.quantiles([*took_ms, took_ms[-1]], n=100)[98],
        'longest_ms': max(took_ms),
    }


def measure(directory: pathlib.Path, url: str, options: object) -> dict:
    """Attack one victim after the other, in each way."""
    cloud = curve_cloud.Cloud(directory)
    places = {
        name: cloud.node(name) for name in (many_peers.HOST, 'honest', 'evil')
    }

    def of(name: str) -> str:
        return f'{url}?bind_address=127.0.0.1&keys_path={places[name]}'

    found = {}
    for name in options.attacks:
        victim = Victim(of(many_peers.HOST))
        opened = transport(of('honest'))
        try:
            asking = client.FairnessClient(opened, TIMEOUT_S, DOMAIN)
            asking.call(many_peers.HOST, 'get_status')
            arguments = victim, asking, places['evil'], options.seconds
            quiet = measure_attack('nothing', *arguments)
            attacked = measure_attack(name, *arguments)
            time.sleep(RECOVERY_S)
            found[name] = _compare_with_quiet(name, quiet, attacked) | {
                'resident_after_bytes': victim.resident(),
                'descriptors_after': victim.descriptors(),
            }
        finally:
            opened.cleanup()
            rounds = victim.stop()
        for each in (quiet, attacked):
            each['rounds'] = _rounds_in_period(rounds, *each.pop('lasted_s'))
        print(json.dumps({name: found[name]}, indent=1), flush=True)
    return found


def _rounds_in_period(
    rounds: list[tuple[float, float]], began_s: float, ended_s: float
) -> dict:
    """Those due in a time, and how long after that each was done."""
    took_ms = [
        (done_s - due_s) * 1e3
        for due_s, done_s in rounds
        if began_s <= due_s < ended_s
    ]
    return {
        'due': int((ended_s - began_s) / ROUND_S),
        'done': len(took_ms),
        'p50_ms': statistics.median(took_ms),
        'longest_ms': max(took_ms),
    }


def _compare_with_quiet(name: str, quiet: dict, attacked: dict) -> dict:
    return {
        'has_key': name in attacks.WITH_KEY,
        'what': attacks.ATTACKS[name].__doc__.splitlines()[0],
        'quiet': quiet,
        'attacked': attacked,
        'p50_ratio': attacked['p50_ms'] / quiet['p50_ms'],
        'resident_more_bytes': attacked['resident_peak_bytes']
        - quiet['resident_peak_bytes'],
    }


def main() -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seconds', type=float, default=8.0)
    parser.add_argument('--out', type=pathlib.Path)
    parser.add_argument('--serve', metavar='URL', help=argparse.SUPPRESS)
    parser.add_argument(
        'attacks', nargs='*', default=[*attacks.ATTACKS][1:], metavar='ATTACK'
    )
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return 0
    # Attackers need them; the victim's unit allows more.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with (
        tempfile.TemporaryDirectory() as directory,
        redis_server.running() as redis,
    ):
        found = measure(pathlib.Path(directory), redis.url, options)
    if options.out:
        result = {
            'version': 1,
            'command': ' '.join(['python', *sys.orig_argv[1:]]),
            'machine': {
                'kernel': platform.release(),
                'python': platform.python_version(),
                'libzmq': attacks.zmq.zmq_version(),
            },
            'attacks': found,
        }
        options.out.write_text(json.dumps(result, indent=2) + '\n')
    return 0


if __name__ == '__main__':
    sys.exit(main())
