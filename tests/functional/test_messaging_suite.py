# SPDX-License-Identifier: Apache-2.0

"""oslo.messaging's own functional suite, with the driver zmq."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

from tests.fixtures import redis_server

RUNNER = pathlib.Path(__file__).with_name('oslo_suite.py')
TOP = pathlib.Path(__file__).parents[2]
LIMIT_S = 300

# It skips them for every driver that it has not heard of. Equals of them are
# in tests/integration/messaging/test_calls.py.
SKIPPED = {
    'test_a_mandatory_call_without_a_listener_raises_at_once',
    'test_a_monitored_call_outlasts_its_timeout_while_heartbeats_come',
}

# These sleep, for 10 s and more each; the others share two processes.
SLEEPERS = (
    'test_logging',
    'test_timeout_with_concurrently_queues',
    'test_multiple_servers',
    'test_simple_batch',
    'test_different_exchanges',
    'MetricsTestCase',
)


def environment(server: redis_server.RedisServer) -> dict[str, str]:
    url = server.url
    # The suite lets another driver read the second one, which refuses a
    # query; notifications need none, as only Redis sees them.
    return os.environ | {
        'RPC_TRANSPORT_URL': f'{url}?insecure=true&bind_address=127.0.0.1',
        'NOTIFY_TRANSPORT_URL': url,
        'PATH': f'{pathlib.Path(sys.executable).parent}:{os.environ["PATH"]}',
        'PYTHONPATH': str(TOP),
        'PYTHONWARNINGS': 'ignore',
    }


def names(env: dict[str, str]) -> list[str]:
    return subprocess.run(
        [sys.executable, RUNNER],
        env=env,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()


def shared_out(tests: list[str]) -> list[list[str]]:
    groups = collections.defaultdict(list)
    for number, name in enumerate(tests):
        is_sleeper = any(word in name for word in SLEEPERS)
        groups[f'sleeper{number}' if is_sleeper else number % 2].append(name)
    return list(groups.values())


def start(
    group: list[str], number: int, folder: pathlib.Path, env: dict[str, str]
) -> subprocess.Popen[bytes]:
    wanted = folder / f'names{number}'
    wanted.write_text('\n'.join(group))
    with (folder / f'log{number}').open('w') as log:
        return subprocess.Popen(
            [sys.executable, RUNNER, wanted, folder / f'ended{number}'],
            env=env,
            stdout=log,
            stderr=log,
        )


def run(
    groups: list[list[str]], folder: pathlib.Path, env: dict[str, str]
) -> dict[str, list]:
    ended = collections.defaultdict(list)
    running = [
        start(group, number, folder, env)
        for number, group in enumerate(groups)
    ]
    deadline = time.monotonic() + LIMIT_S
    try:
        for number, process in enumerate(running):
            process.wait(timeout=max(deadline - time.monotonic(), 1))
            written = (folder / f'ended{number}').read_text()
            for kind, tests in json.loads(written).items():
                ended[kind] += tests
    finally:
        for process in running:
            process.kill()
            process.wait()
    return ended


@pytest.mark.slow
@pytest.mark.beside
@pytest.mark.timeout(LIMIT_S + 60)
def test_every_test_of_oslo_messaging_passes(tmp_path):
    with redis_server.running() as server:
        env = environment(server)
        tests = names(env)
        ended = run(shared_out(tests), tmp_path, env)
    assert not ended['failed'], '\n'.join(
        f'{name}\n{why}' for name, why in ended['failed']
    )
    skipped = {name.rpartition('.')[2] for name, _ in ended['skipped']}
    assert skipped == SKIPPED
    assert len(tests) >= 31
    assert len(ended['passed']) == len(tests) - len(SKIPPED)
