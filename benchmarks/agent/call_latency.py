# SPDX-License-Identifier: Apache-2.0

"""How long an RPC call takes, over this package's driver and over RabbitMQ.

Client and server are processes of their own on the loopback interface; blocks
of calls over the two transports take turns, so that both see the same
machine. Also how long an agent with many peers takes to tell of them (see
``many_peers.py``). Needs redis-server and rabbitmq-server, and no
root::

    python -m benchmarks.agent.call_latency --out results.json
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from oslo_config import cfg
import oslo_messaging

from benchmarks.agent import many_peers

TOPIC = 'latency'
BLOCK = 100
WARM_UP = 200


def free_port() -> int:
    """An unused port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def wait_for(port: int, seconds: float) -> None:
    """Wait until a process listens on the port."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        with contextlib.suppress(OSError):
            socket.create_connection(('127.0.0.1', port), 1).close()
            return
        time.sleep(0.2)
    raise RuntimeError(f'port {port}: no process listens after {seconds} s')


@contextlib.contextmanager
def run_server(command: list[str], port: int, **environment: str):
    """Run a server until the block ends."""
    server = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    try:
        wait_for(port, 300)
        yield
    finally:
        server.terminate()
        server.wait()


@contextlib.contextmanager
def redis_server(directory: str):
    """Run a Redis of our own; give the transport URL."""
    port = free_port()
    command = ['redis-server', '--port', str(port), '--bind', '127.0.0.1',
               '--save', '', '--dir', directory]  # fmt: skip
    with run_server(command, port):
        yield f'zmq+redis://127.0.0.1:{port}/?insecure=true'


@contextlib.contextmanager
def rabbit_server(directory: str):
    """Run a RabbitMQ of our own; give the transport URL."""
    port, names = free_port(), free_port()
    environment = {
        'HOME': directory,
        'RABBITMQ_NODENAME': 'latency@localhost',
        'RABBITMQ_NODE_IP_ADDRESS': '127.0.0.1',
        'RABBITMQ_NODE_PORT': str(port),
        'RABBITMQ_DIST_PORT': str(free_port()),
        'RABBITMQ_MNESIA_BASE': directory,
        'RABBITMQ_LOG_BASE': directory,
        'RABBITMQ_ENABLED_PLUGINS_FILE': f'{directory}/plugins',
        'ERL_EPMD_PORT': str(names),
        'ERL_EPMD_ADDRESS': '127.0.0.1',
    }
    program = '/usr/lib/rabbitmq/bin/rabbitmq-server'
    # Started by the server itself, the name daemon would outlive it.
    daemon = ['epmd', '-port', str(names), '-address', '127.0.0.1']
    with (
        run_server(daemon, names),
        run_server([program], port, **environment),
    ):
        yield f'rabbit://guest:guest@127.0.0.1:{port}/'


class Echo:
    """Gives back what it is given."""

    def echo(self, ctxt: dict, value: object) -> object:
        """Answer."""
        del ctxt
        return value


def transport(url: str) -> oslo_messaging.Transport:
    """Open a transport."""
    cfg.CONF([])
    return oslo_messaging.get_rpc_transport(cfg.CONF, url=url)


def serve(url: str) -> None:
    """Answer calls until standard input ends."""
    server = oslo_messaging.get_rpc_server(
        transport(url),
        oslo_messaging.Target(topic=TOPIC, server='server'),
        [Echo()],
        executor='threading',
    )
    server.start()
    print('ready', flush=True)
    sys.stdin.read()
    server.stop()
    server.wait()


class Caller:
    """A client, and its server in another process."""

    def __init__(self, url: str) -> None:
        self._server = subprocess.Popen(
            [sys.executable, '-m', __spec__.name, '--serve', url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._server.stdout.readline()
        self._transport = transport(url)
        self._client = oslo_messaging.get_rpc_client(
            self._transport,
            oslo_messaging.Target(topic=TOPIC, server='server'),
            timeout=30,
        )
        self.taken_us: list[float] = []

    def calls(self, count: int) -> list[float]:
        """Call one after the other; give microseconds."""
        taken = []
        for number in range(count):
            before = time.perf_counter()
            self._client.call({}, 'echo', value=number)
            taken.append((time.perf_counter() - before) * 1e6)
        return taken

    def stop(self) -> None:
        """End both."""
        self._transport.cleanup()
        self._server.stdin.close()
        self._server.wait(30)


def measure(urls: dict[str, str], count: int) -> dict[str, dict]:
    """Call over all transports in turns."""
    callers = {name: Caller(url) for name, url in urls.items()}
    try:
        for caller in callers.values():
            caller.calls(WARM_UP)
        for _ in range(0, count, BLOCK):
            for caller in callers.values():
                caller.taken_us += caller.calls(BLOCK)
    finally:
        for caller in callers.values():
            caller.stop()
    return {
        name: {
            'calls': len(caller.taken_us),
            'p50_us': statistics.median(caller.taken_us),
            'p99_us': statistics.quantiles(caller.taken_us, n=100)[98],
        }
        for name, caller in callers.items()
    }


def main() -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--calls', type=int, default=3000)
    parser.add_argument('--out', type=pathlib.Path)
    parser.add_argument('--serve', metavar='URL', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return 0
    with contextlib.ExitStack() as stack:
        directories = [
            stack.enter_context(tempfile.TemporaryDirectory())
            for _ in range(2)
        ]
        urls = {
            'zmq': stack.enter_context(redis_server(directories[0])),
            'rabbit': stack.enter_context(rabbit_server(directories[1])),
        }
        found = measure(urls, options.calls)
        answers = [
            many_peers.measure(urls['zmq'], peers)
            for peers in (10, many_peers.PEERS)
        ]
    result = {
        'version': 1,
        'command': ' '.join(['python', *sys.orig_argv[1:]]),
        'machine': {
            'kernel': platform.release(),
            'python': platform.python_version(),
        },
        'transports': found,
        'p50_ratio': found['zmq']['p50_us'] / found['rabbit']['p50_us'],
        'p99_ratio': found['zmq']['p99_us'] / found['rabbit']['p99_us'],
        'answers': answers,
    }
    print(json.dumps(result, indent=2))
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + '\n')
    return 0


if __name__ == '__main__':
    sys.exit(main())
