# SPDX-License-Identifier: Apache-2.0

"""Metrics over HTTPS, for clients with a certificate alone if that is set."""

import http.client
import logging
import socket
import ssl
import types

import pytest

from nova_fairness.observe import endpoint
from nova_fairness.observe import metrics
from tests.fixtures import certificates
from tests.fixtures import ports


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp('tls')
    ours = certificates.Issuer(folder, 'ours')
    others = certificates.Issuer(folder, 'others')
    certificate, key = ours.certify('host')
    return types.SimpleNamespace(
        ours=ours.path,
        certificate=certificate,
        key=key,
        client=ours.certify('prometheus'),
        stranger=others.certify('stranger'),
        folder=folder,
    )


def options(**named):
    given = dict.fromkeys(('certificate', 'key', 'client_ca'), '')
    given.update((name, str(value)) for name, value in named.items())
    return types.SimpleNamespace(
        prometheus_host='127.0.0.1',
        **{f'prometheus_{name}': value for name, value in given.items()},
    )


def open_tls_endpoint(**named):
    collector = metrics.RoundCollector(dict)
    return endpoint.open_endpoint(options(**named), ports.free(), collector)


@pytest.fixture
def serve():
    made = []

    def start(**named):
        made.append(open_tls_endpoint(**named))
        made[-1].start()
        return made[-1]

    yield start
    for each in made:
        each.stop()


def ask(files, served, client=None):
    trusting = ssl.create_default_context(cafile=files.ours)
    if client:
        trusting.load_cert_chain(*client)
    connection = http.client.HTTPSConnection(
        '127.0.0.1', served.port, timeout=10, context=trusting
    )
    try:
        connection.request('GET', '/metrics')
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_metrics_are_served_over_https(files, serve):
    served = serve(certificate=files.certificate, key=files.key)
    status, body = ask(files, served)
    assert status == 200
    assert b'nova_fairness_rounds_total' in body


def test_a_key_may_be_in_the_file_of_the_certificate(files, serve):
    both = files.folder / 'both.pem'
    both.write_bytes(files.certificate.read_bytes() + files.key.read_bytes())
    assert ask(files, serve(certificate=both))[0] == 200


def test_a_client_in_the_clear_gets_nothing(files, serve):
    served = serve(certificate=files.certificate, key=files.key)
    connection = http.client.HTTPConnection(
        '127.0.0.1', served.port, timeout=10
    )
    connection.request('GET', '/metrics')
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        connection.getresponse()
    connection.close()


def test_a_client_with_a_certificate_is_served(files, serve):
    served = serve(
        certificate=files.certificate, key=files.key, client_ca=files.ours
    )
    assert ask(files, served, files.client)[0] == 200


@pytest.mark.parametrize('kind', [None, 'stranger'])
def test_a_client_without_a_good_certificate_is_refused(files, serve, kind):
    served = serve(
        certificate=files.certificate, key=files.key, client_ca=files.ours
    )
    client = kind and getattr(files, kind)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(files, served, client)
    assert ask(files, served, files.client)[0] == 200


def test_a_client_that_never_shakes_hands_delays_no_other(
    files, serve, monkeypatch
):
    monkeypatch.setattr(endpoint._QuietHandler, 'timeout', 2.0)
    served = serve(certificate=files.certificate, key=files.key)
    place = ('127.0.0.1', served.port)
    silent = [socket.create_connection(place, timeout=10) for _ in range(20)]
    try:
        assert ask(files, served)[0] == 200
        assert all(each.recv(1) == b'' for each in silent)
    finally:
        for each in silent:
            each.close()


def damaged(files):
    path = files.folder / 'damaged.pem'
    path.write_text('-----BEGIN CERTIFICATE-----\nx\n')
    return path


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        ({'certificate': '/no/such'}, 'No such file or directory'),
        ({'certificate': damaged}, 'prometheus_certificate'),
        ({'key': lambda files: files.client[1]}, 'KEY_VALUES_MISMATCH'),
        ({'client_ca': '/no/such'}, 'prometheus_client_ca /no/such'),
        ({'client_ca': damaged}, 'prometheus_client_ca'),
        ({'certificate': ''}, 'prometheus_certificate is empty'),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_ends_nothing(
    files, caplog, change, said
):
    named = {'certificate': files.certificate, 'key': files.key}
    for name, given in change.items():
        named[name] = given(files) if callable(given) else given
    with caplog.at_level(logging.ERROR):
        assert open_tls_endpoint(**named) is None
    [line] = caplog.messages
    assert line.startswith('metrics endpoint not opened: [fairness_observe] ')
    assert said in line
    for name in change:
        assert str(named[name]) in line


def test_without_a_port_there_is_no_endpoint():
    collector = metrics.RoundCollector(dict)
    assert endpoint.open_endpoint(options(), 0, collector) is None
