# SPDX-License-Identifier: Apache-2.0

"""Answers that a real slurmrestd seldom gives; see tests/integration/batch."""

import http.server
import json
import threading

import pytest

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.batch import slurmrestd
from tests.fixtures import slurm_written


def written(key, form=38):
    return slurm_written.answer(form, key, [], rest=True)


def offers(*forms):
    paths = [f'/slurm/v0.0.{form}/nodes/' for form in forms]
    return 200, json.dumps({'paths': dict.fromkeys(paths)})


class Server(http.server.ThreadingHTTPServer):
    """Gives what it is told to, and notes headers."""

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Answer)
        self.answers = {
            f'/slurm/v0.0.{form}/{key}/': (200, written(key, form))
            for form in slurm_written.FORMS
            for key in ('nodes', 'jobs')
        }
        self.answers['/openapi/v3'] = offers(36, 37, 38)
        self.asked = []
        self.headers = {}


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.headers = dict(self.headers)
        self.server.asked.append(self.path)
        status, text = self.server.answers.get(self.path, (404, ''))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        url = f'http://127.0.0.1:{made.server_port}'
        monkeypatch.setenv(slurmrestd.URL, url)
        for name in ('SLURM_JWT', 'SLURM_USER'):
            monkeypatch.delenv(name, raising=False)
        yield made
        made.shutdown()
        thread.join()


def look():
    return plugins.load_batch('slurmrestd', {'timeout_s': 60.0}).read_hosts()


def test_the_user_is_sent_only_with_a_token(server, monkeypatch):
    assert look().places == {}
    assert 'X-SLURM-USER-TOKEN' not in server.headers
    monkeypatch.setenv('SLURM_JWT', 'secret')
    look()
    assert server.headers['X-SLURM-USER-NAME'] == 'root'
    monkeypatch.setenv('SLURM_USER', 'mover')
    look()
    assert server.headers['X-SLURM-USER-NAME'] == 'mover'
    assert server.headers['X-SLURM-USER-TOKEN'] == 'secret'


@pytest.mark.parametrize(
    ('path', 'answer', 'error', 'message'),
    [
        ('nodes', (404, ''), 'BatchAway', 'v0.0.38/nodes/ with 404'),
        ('nodes', (401, 'who?'), 'BatchAway', 'with 401: who'),
        ('jobs', (500, ''), 'BatchAway', 'with 500'),
        ('jobs', (200, ''), 'BatchUnreadable', 'names its form'),
        (
            'nodes',
            (200, written('nodes', 46)),
            'BatchUnreadable',
            'the form data_parser/v0.0.46, and known are v0.0.38 to v0.0.45',
        ),
    ],
)
def test_an_unreadable_answer_is_refused_whole(
    server, path, answer, error, message
):
    server.answers[f'/slurm/v0.0.38/{path}/'] = answer
    with pytest.raises(getattr(exception, error), match=message):
        look()


@pytest.mark.parametrize(
    ('offered', 'chosen'),
    [
        *(((36, 37, 38), 38), ((38, 39), 39), ((40, 41, 42), 42)),
        *(((42, 43, 44, 45), 44), ((45, 46), 45)),
    ],
)
def test_slurmrestd_is_asked_in_the_newest_known_form(server, offered, chosen):
    server.answers['/openapi/v3'] = offers(*offered)
    batch = plugins.load_batch('slurmrestd', {'timeout_s': 60.0})
    for _ in range(2):
        assert batch.read_hosts().faults == ()
    root = f'/slurm/v0.0.{chosen}'
    lists = [f'{root}/nodes/', f'{root}/jobs/']
    assert server.asked == ['/openapi/v3', *lists, *lists]


def test_a_changed_slurmrestd_is_asked_again_for_its_forms(server):
    batch = plugins.load_batch('slurmrestd', {'timeout_s': 60.0})
    batch.read_hosts()
    server.answers['/openapi/v3'] = offers(44)
    for key in ('nodes', 'jobs'):
        del server.answers[f'/slurm/v0.0.38/{key}/']
    with pytest.raises(exception.BatchAway, match='404'):
        batch.read_hosts()
    assert batch.read_hosts().places == {}


@pytest.mark.parametrize(
    ('answer', 'error', 'message'),
    [
        (offers(46), 'BatchUnreadable', 'it offers v0.0.46, and known are'),
        (offers(), 'BatchUnreadable', 'it offers none, and known are'),
        ((200, 'hello'), 'BatchUnreadable', "of its paths: 'hello'"),
        ((404, ''), 'BatchAway', 'answers /openapi/v3 with 404'),
    ],
)
def test_a_slurmrestd_of_no_known_form_is_named(
    server, answer, error, message
):
    server.answers['/openapi/v3'] = answer
    with pytest.raises(getattr(exception, error), match=message):
        look()


@pytest.mark.parametrize(
    ('url', 'message'),
    [
        ('', 'must be http://host:port'),
        ('ftp://host', "got 'ftp://host'"),
        ('unix:', "got 'unix:'"),
        ('http://', "got 'http://'"),
        ('unix:/nowhere', 'at unix:/nowhere does not answer'),
        ('http://127.0.0.1:1', 'http://127.0.0.1:1 does not answer'),
        ('http://127.0.0.1:x', 'is no URL: Port'),
        ('http://127.0.0.1:99999', 'is no URL: Port'),
        ('http://[::1', 'is no URL: Invalid'),
    ],
)
def test_an_unreachable_slurmrestd_is_named_with_its_url(
    url, message, monkeypatch
):
    monkeypatch.setenv(slurmrestd.URL, url)
    with pytest.raises(exception.BatchAway, match=message):
        look()


@pytest.mark.parametrize('token', ['secret\nb', 'secret\u2028'])
def test_an_unusable_token_is_reported_without_showing_it(
    server, token, monkeypatch
):
    monkeypatch.setenv('SLURM_JWT', token)
    with pytest.raises(exception.BatchAway, match='SLURM_JWT') as caught:
        look()
    assert 'secret' not in str(caught.value)
