# SPDX-License-Identifier: Apache-2.0

"""The watcher of a guest, beside a fake metadata service."""

import contextlib
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


@contextlib.contextmanager
def watching(service, program, **more):
    host, port = service.server_address
    watcher = subprocess.Popen(
        [SCRIPT, 'sh', '-c', program],
        env={
            'METADATA_URL': f'http://{host}:{port}',
            'EVERY_S': '0',
            'LOOK_S': '0.05',
            'NOTICE_FILE': '/nowhere',
            'PATH': '/usr/bin:/bin',
            **more,
        },
    )
    try:
        yield
    finally:
        watcher.kill()
        watcher.wait()


@pytest.mark.parametrize('code', [0, 1])
def test_the_watcher_reports_success_of_its_program(service, tmp_path, code):
    ran, done = tmp_path / 'ran', tmp_path / 'done'
    program = f'touch {ran}; exit {code}'
    with watching(service, program, WHEN_DONE=f'echo done >> {done}'):
        service.metadata = {'fairness:leaves_at': AT}
        patience.wait_for_value(ran.exists)
        patience.wait_for_value(asked_again(service))
    assert done.exists() is (code == 0)
    if done.exists():
        assert done.read_text() == 'done\n'


def test_a_program_is_run_once_for_each_notice(service, tmp_path):
    said = tmp_path / 'said'
    with watching(service, f'echo "$LEAVES_AT" >> {said}'):
        patience.wait_for_value(asked_again(service))
        assert not said.exists()
        service.metadata = {'fairness:leaves_at': AT, 'other': 'x'}
        patience.wait_for_value(said.exists)
        patience.wait_for_value(asked_again(service))
        told, service.metadata = service.metadata, None
        patience.wait_for_value(asked_again(service))
        service.metadata = told
        patience.wait_for_value(asked_again(service))
        # It stays after all, and is told again later.
        service.metadata = {}
        patience.wait_for_value(asked_again(service))
        service.metadata = {'fairness:leaves_at': '2026-01-02T00:00:00Z'}
        patience.wait_for_value(asked_again(service))
    assert said.read_text().split() == [AT, '2026-01-02T00:00:00Z']


def test_the_watcher_saves_work_at_each_risk(service, tmp_path):
    saved, ran = tmp_path / 'saved', tmp_path / 'ran'
    with watching(
        service, f'touch {ran}', WHEN_AT_RISK=f'echo once >> {saved}'
    ):
        service.metadata = {'fairness:at_risk': AT}
        patience.wait_for_value(saved.exists)
        patience.wait_for_value(asked_again(service))
        service.metadata = {}
        patience.wait_for_value(asked_again(service))
        assert saved.read_text().split() == ['once']
        service.metadata = {'fairness:at_risk': '2026-01-02T00:00:00Z'}
        patience.wait_for_value(
            lambda: saved.read_text().split() == ['once'] * 2
        )
    assert not ran.exists()


def test_a_watcher_that_saves_for_long_still_hears_the_notice(
    service, tmp_path
):
    begun, ran = tmp_path / 'begun', tmp_path / 'ran'
    save = f'echo once >> {begun}; exec sleep 30'
    with watching(service, f'touch {ran}', WHEN_AT_RISK=save):
        service.metadata = {'fairness:at_risk': AT}
        patience.wait_for_value(begun.exists)
        service.metadata = {'fairness:at_risk': '2026-01-02T00:00:00Z'}
        patience.wait_for_value(asked_again(service))
        service.metadata = {'fairness:leaves_at': AT}
        patience.wait_for_value(ran.exists)
    assert begun.read_text().split() == ['once']


@pytest.fixture
def file(tmp_path):
    """What the guest agent writes, as QEMU's does: emptied, then written."""
    made = tmp_path / 'notice.json'

    def write(notice):
        made.write_text('')
        made.write_text(json.dumps(notice) + '\n')

    write.path = made
    return write


def test_the_watcher_reads_notices_from_a_guest_agent_file(
    service, tmp_path, file
):
    service.metadata, said = None, tmp_path / 'said'
    with watching(
        service, f'echo "$LEAVES_AT" >> {said}', NOTICE_FILE=str(file.path)
    ):
        file({})
        patience.wait_for_value(asked_again(service))
        assert not said.exists()
        file({'fairness:leaves_at': AT, 'fairness:leaves_by': 'shelve'})
        patience.wait_for_value(said.exists)
        # A file that is being written says nothing else.
        file.path.write_text('')
        patience.wait_for_value(asked_again(service))
        file({'fairness:leaves_at': AT})
        patience.wait_for_value(asked_again(service))
    assert said.read_text().split() == [AT]


def test_the_watcher_acts_once_on_a_repeated_notice(service, tmp_path, file):
    said, later = tmp_path / 'said', '2026-01-02T00:00:00Z'
    with watching(
        service, f'echo "$LEAVES_AT" >> {said}', NOTICE_FILE=str(file.path)
    ):
        file({'fairness:leaves_at': AT})
        patience.wait_for_value(said.exists)
        service.metadata = {'fairness:leaves_at': AT}
        patience.wait_for_value(asked_again(service))
        # It stays; what metadata say is a little older.
        file({})
        patience.wait_for_value(asked_again(service))
        service.metadata = {}
        patience.wait_for_value(asked_again(service))
        service.metadata = {'fairness:leaves_at': later}
        patience.wait_for_value(lambda: len(said.read_text().split()) > 1)
    assert said.read_text().split() == [AT, later]
