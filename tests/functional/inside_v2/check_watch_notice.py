# SPDX-License-Identifier: Apache-2.0

"""The watcher of a guest, as its unit runs it below a real systemd."""

import http.server
import json
import pathlib
import subprocess
import threading

import pytest

from tests.fixtures import patience

EXAMPLES = pathlib.Path(__file__).parents[3] / 'examples/preemptible'
ADDRESS = '169.254.169.254'
UNIT = 'watch-notice.service'
AT, LATER = '2026-01-01T03:00:00Z', '2026-01-01T04:00:00Z'


class Metadata(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        assert self.path == '/openstack/latest/meta_data.json'
        self.server.asked += 1
        whole = {'uuid': 'u', 'meta': self.server.metadata, 'name': 'n'}
        text = json.dumps(whole).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def run(*argv):
    return subprocess.run(
        argv, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture(scope='module')
def service():
    """The metadata service, at the address at which guests find it."""
    run('ip', 'link', 'set', 'lo', 'up')
    run('ip', 'address', 'add', f'{ADDRESS}/32', 'dev', 'lo')
    made = http.server.ThreadingHTTPServer((ADDRESS, 80), Metadata)
    made.metadata, made.asked = {}, 0
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    run('ip', 'address', 'del', f'{ADDRESS}/32', 'dev', 'lo')


@pytest.fixture(scope='module')
def place(service, tmp_path_factory):
    """Where programs of the owner leave what they did."""
    place = tmp_path_factory.mktemp('watched')
    for name in ('saved', 'ran', 'done'):
        (place / name).write_text('')
    install(place)
    run('systemctl', 'daemon-reload')
    run('systemctl', 'start', UNIT)
    yield place
    run('systemctl', 'stop', UNIT)


def install(place):
    """Both files of the example, with what their comments say to change."""
    script = pathlib.Path('/usr/local/bin/watch-notice')
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_bytes((EXAMPLES / 'watch-notice').read_bytes())
    script.chmod(0o755)
    program = place / 'save-my-work'
    program.write_text(f'#!/bin/sh\necho "$LEAVES_AT" >> {place}/ran\n')
    program.chmod(0o755)
    text = (EXAMPLES / UNIT).read_text()
    for shipped, wanted in (
        ('/usr/local/bin/save-my-work\n# Save', f'{program}\n# Save'),
        (
            '# Environment="WHEN_AT_RISK=/usr/local/bin/save-my-work"',
            (
                f'Environment="WHEN_AT_RISK=echo saved >> {place}/saved"\n'
                'Environment="EVERY_S=0" "LOOK_S=0.2"'
            ),
        ),
        (
            '# Environment="WHEN_DONE=systemctl poweroff"',
            f'Environment="WHEN_DONE=echo done >> {place}/done"',
        ),
    ):
        assert shipped in text
        text = text.replace(shipped, wanted)
    units = pathlib.Path('/run/v2-units')
    (units / UNIT).write_text(text)
    # This machine boots without what every other one has.
    for target in ('sysinit', 'basic', 'network-online'):
        (units / f'{target}.target').write_text(
            '[Unit]\nDefaultDependencies=no\n'
        )


def words(path):
    return path.read_text().split()


def test_the_watcher_does_nothing_without_a_notice(service, place):
    patience.wait_for_value(lambda: service.asked >= 2)
    assert not any(words(place / name) for name in ('saved', 'ran', 'done'))
    shown = run('systemctl', 'show', '--value', '-p', 'ActiveState', UNIT)
    assert shown == 'active\n'


def test_the_watcher_saves_work_of_a_preemption_candidate(service, place):
    service.metadata = {'fairness:at_risk': AT}
    patience.wait_for_value(lambda: words(place / 'saved') == ['saved'])
    assert words(place / 'ran') == []


def test_the_watcher_ends_work_at_the_notice_and_reports_it(service, place):
    service.metadata = {
        'fairness:leaves_at': LATER,
        'fairness:leaves_by': 'shelve',
        'fairness:leaves_why': 'it makes room for a request of project "x"',
    }
    patience.wait_for_value(lambda: words(place / 'done') == ['done'])
    assert words(place / 'ran') == [LATER]
    asked = service.asked
    patience.wait_for_value(lambda: service.asked >= asked + 2)
    # Once for each notice.
    assert words(place / 'ran') == [LATER]


def test_systemd_restarts_a_watcher_that_dies(service, place):
    pid = run('systemctl', 'show', '--value', '-p', 'MainPID', UNIT).strip()
    run('kill', '-9', pid)
    shown = lambda name: run(  # noqa: E731
        'systemctl', 'show', '--value', '-p', name, UNIT
    ).strip()
    patience.wait_for_value(lambda: shown('ActiveState') == 'activating')
    patience.wait_for_value(lambda: shown('MainPID') not in ('0', pid))
    # It knows nothing of before: what is done must be fit to be done twice.
    patience.wait_for_value(lambda: words(place / 'ran') == [LATER, LATER])
