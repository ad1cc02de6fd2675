# SPDX-License-Identifier: Apache-2.0

"""HTTP server for ``/metrics`` and ``/status``."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import json
import logging
import ssl
import threading
from typing import Any
from typing import Protocol
import wsgiref.simple_server

import prometheus_client
from prometheus_client import exposition
from prometheus_client import registry

from nova_fairness import exception
from nova_fairness.observe import families

LOG = logging.getLogger(__name__)

Answer = Iterable[bytes]

MAX_CONNECTIONS = 500
"""Largest number of open connections; each has a thread."""


SECTION = 'fairness_observe'
"""Configuration section with the address and the certificate of the
endpoints.
"""


class Collector(Protocol):
    """Source of the endpoint's answers."""

    def collect(self) -> families.Metrics:
        """Yield all metrics."""

    def status(self) -> Mapping[str, Any] | None:
        """Return the answer of ``/status`` as JSON types; ``None`` if there is
        no state yet.
        """


class EndpointOptions(Protocol):
    """Options of an endpoint, as in ``[fairness_observe]``."""

    prometheus_host: str
    prometheus_certificate: str
    prometheus_key: str
    prometheus_client_ca: str


class _QuietHandler(wsgiref.simple_server.WSGIRequestHandler):
    """Request handler that logs requests at debug level, not on standard
    error.
    """

    timeout = 10
    """Seconds after which a silent client is disconnected."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base's
        LOG.debug(format, *args)


class _BoundedServer(exposition.ThreadingWSGIServer):
    """HTTP server that closes connections beyond :data:`MAX_CONNECTIONS`
    without an answer.
    """

    request_queue_size = 128
    """Number of connections that may wait to be accepted."""

    def __init__(
        self, place: tuple[str, int], tls: ssl.SSLContext | None
    ) -> None:
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._tls_context = tls
        super().__init__(place, _QuietHandler)

    def get_request(self) -> tuple[Any, Any]:
        connection, client = super().get_request()
        if self._tls_context is None:
            return connection, client
        # The handshake happens at the first read, on the client's own thread
        # and with its timeout. A handshake in this thread would let a silent
        # client block all others.
        wrapped = self._tls_context.wrap_socket(
            connection, server_side=True, do_handshake_on_connect=False
        )
        return wrapped, client

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(
        self, request: Any, client_address: Any
    ) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError as error:
            # At a higher level, silent clients would fill the log.
            LOG.debug('client %s: connection ended: %s', client_address, error)
        finally:
            self.shutdown_request(request)
            self._free.release()


class HttpEndpoint:
    """HTTP server with a thread of its own.

    :param host: address to listen on.
    :param port: TCP port; 0 selects a free one, see :attr:`port`.
    :param collector: source of the answers.
    :param section: configuration section with the port, for errors.
    :param tls: TLS context for HTTPS; ``None`` for HTTP.
    :raises ConfigurationError: if it cannot listen on the address.
    """

    def __init__(
        self,
        host: str,
        port: int,
        collector: Collector,
        section: str = SECTION,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._collector = collector
        numbers = registry.CollectorRegistry()
        numbers.register(collector)
        prometheus_client.ProcessCollector(
            namespace='nova_fairness', registry=numbers
        )
        self._metrics = exposition.make_wsgi_app(numbers)
        try:
            self._server = _BoundedServer((host, port), tls)
        except OSError as error:
            raise exception.ConfigurationError(
                f'[{section}] cannot listen on {host}:{port}: '
                f'{error.strerror}; expected a local address and a free port'
            ) from error
        self._server.set_app(self._answer)
        self.port: int = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, name='endpoint', daemon=True
        )

    def start(self) -> None:
        """Start to answer requests."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering and free the port."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()

    def _answer(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Answer:
        path = environ.get('PATH_INFO', '')
        if path == '/metrics':
            answer: Answer = self._metrics(environ, start_response)
            return answer
        if path == '/status':
            return self._status(start_response)
        start_response('404 Not Found', [('Content-Type', 'text/plain')])
        return [b'expected /metrics or /status\n']

    def _status(self, start_response: Callable[..., Any]) -> Answer:
        told = self._collector.status()
        if told is None:
            start_response(
                '503 Service Unavailable', [('Content-Type', 'text/plain')]
            )
            return [b'no state yet: repeat the request after a round\n']
        start_response('200 OK', [('Content-Type', 'application/json')])
        return [json.dumps(told).encode()]


def open_endpoint(
    options: EndpointOptions,
    port: int,
    collector: Collector,
    section: str = SECTION,
) -> HttpEndpoint | None:
    """Open the endpoint that a group of options describes.

    If the files for TLS are not usable, the program continues without an
    endpoint. It never serves HTTP in that case.

    :param port: TCP port; 0: no endpoint.
    :param section: see :class:`HttpEndpoint`.
    :returns: ``None`` without an endpoint; the cause is logged.
    :raises ConfigurationError: if it cannot listen on the address.
    """
    if not port:
        return None
    try:
        tls = _tls_context(options)
    except exception.UnusableCertificate as error:
        LOG.error(
            'metrics endpoint not opened: %s; correct the file and restart',
            error,
        )
        return None
    return HttpEndpoint(options.prometheus_host, port, collector, section, tls)


def _tls_context(options: EndpointOptions) -> ssl.SSLContext | None:
    """Read the files for TLS; return ``None`` if no file is configured.

    :raises UnusableCertificate: if a file is not usable.
    """
    certificate = options.prometheus_certificate
    key, issuers = options.prometheus_key, options.prometheus_client_ca
    if not certificate:
        if key or issuers:
            raise exception.UnusableCertificate(
                f'[{SECTION}] prometheus_certificate is empty; expected the'
                ' certificate of this host, since prometheus_key or'
                ' prometheus_client_ca is set'
            )
        return None
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with _named_certificate_error('prometheus_certificate', certificate, key):
        # Without this, OpenSSL would ask for a password on the terminal.
        tls.load_cert_chain(certificate, key or None, password='')
    if issuers:
        tls.verify_mode = ssl.CERT_REQUIRED
        with _named_certificate_error('prometheus_client_ca', issuers):
            tls.load_verify_locations(issuers)
    return tls


@contextlib.contextmanager
def _named_certificate_error(
    option: str, path: str, key: str = ''
) -> Iterator[None]:
    """Add the option and the files to an error of OpenSSL."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = getattr(error, 'reason', None) or error.args[-1]
        beside = f' with prometheus_key {key}' if key else ''
        raise exception.UnusableCertificate(
            f'[{SECTION}] {option} {path}{beside} cannot be used: {why}'
        ) from error
