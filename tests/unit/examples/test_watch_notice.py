# SPDX-License-Identifier: Apache-2.0

"""The watcher of a guest, beside a fake metadata service."""

import http.server
import json
import pathlib
import subprocess
import threading

import pytest

from tests.fixtures import patience

SCRIPT = (
    pathlib.Path(__file__).parents[3] / 'examples/preemptible/watch-notice'
)
AT = '2026-01-01T03:00:00Z'


class FakeMetadata(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = self.server.metadata
        if found is None:
            self.send_error(503)
            self.server.asked += 1
            return
        self.send_response(200)
        self.end_headers()
        whole = {'uuid': 'u', 'meta': found, 'name': 'n'}
        self.wfile.write(json.dumps(whole).encode())
        self.server.asked += 1

    def log_message(self, *_):
        pass


@pytest.fixture
def service():
    with http.server.ThreadingHTTPServer(
        ('127.0.0.1', 0), FakeMetadata
    ) as made:
        made.metadata, made.asked = {}, 0
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def asked_again(service):
    """Whether it was asked twice from now on: what it said was read."""
    before = service.asked
    return lambda: service.asked >= before + 2


def test_a_program_is_run_once_for_each_notice(service, tmp_path):
    said = tmp_path / 'said'
    host, port = service.server_address
    watcher = subprocess.Popen(
        [SCRIPT, 'sh', '-c', f'echo "$LEAVES_AT" >> {said}'],
        env={
            'METADATA_URL': f'http://{host}:{port}',
            'EVERY_S': '0.05',
            'PATH': '/usr/bin:/bin',
        },
    )
    try:
        patience.eventually(asked_again(service))
        assert not said.exists()
        service.metadata = {'fairness:leaves_at': AT, 'other': 'x'}
        patience.eventually(said.exists)
        patience.eventually(asked_again(service))
        told, service.metadata = service.metadata, None
        patience.eventually(asked_again(service))
        service.metadata = told
        patience.eventually(asked_again(service))
        # It stays after all, and is told again later.
        service.metadata = {}
        patience.eventually(asked_again(service))
        service.metadata = {'fairness:leaves_at': '2026-01-02T00:00:00Z'}
        patience.eventually(asked_again(service))
    finally:
        watcher.kill()
        watcher.wait()
    assert said.read_text().split() == [AT, '2026-01-02T00:00:00Z']
