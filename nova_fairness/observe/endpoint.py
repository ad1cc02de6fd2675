# SPDX-License-Identifier: Apache-2.0

"""Serves ``/metrics`` and ``/status`` over HTTP."""

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

AT_ONCE = 500
"""Connections that are served at a time; each has a thread."""


SECTION = 'fairness_observe'
"""The section with the address and the certificate of endpoints."""


class Collector(Protocol):
    """The source of the endpoint's answers."""

    def collect(self) -> families.Metrics:
        """All metrics."""

    def status(self) -> Mapping[str, Any] | None:
        """The answer of ``/status``, JSON types; ``None`` for nothing yet."""


class EndpointOptions(Protocol):
    """The group of options of an endpoint."""

    prometheus_host: str
    prometheus_certificate: str
    prometheus_key: str
    prometheus_client_ca: str


class _QuietHandler(wsgiref.simple_server.WSGIRequestHandler):
    """Logs requests for those who debug, not on standard error."""

    timeout = 10
    """Seconds after which a client that says nothing is left."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base's
        LOG.debug(format, *args)


class _BoundedServer(exposition.ThreadingWSGIServer):
    """Closes connections beyond :data:`AT_ONCE`, unanswered."""

    request_queue_size = 128
    """Connections that may come at the same time without a wait."""

    def __init__(
        self, place: tuple[str, int], tls: ssl.SSLContext | None
    ) -> None:
        self._free = threading.BoundedSemaphore(AT_ONCE)
        self._tls = tls
        super().__init__(place, _QuietHandler)

    def get_request(self) -> tuple[Any, Any]:
        connection, client = super().get_request()
        if self._tls is None:
            return connection, client
        # The handshake comes with the first read, on the client's own thread
        # and under its timeout. Here, and in prometheus_client's own server,
        # a silent client would hold up all.
        wrapped = self._tls.wrap_socket(
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
            # Whoever says nothing would fill the log.
            LOG.debug('%s was not answered: %s', client_address, error)
        finally:
            self.shutdown_request(request)
            self._free.release()


class HttpEndpoint:
    """An HTTP server on a thread of its own.

    :param host: address to listen on.
    :param port: TCP port; 0 takes any free one, see :attr:`port`.
    :param collector: what to tell.
    :param section: of the configuration that names the port.
    :param tls: for HTTPS; ``None`` for HTTP.
    :raises ConfigurationError: if it cannot listen there.
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
        """Begin to answer."""
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
            return [b'no round has been finished yet\n']
        start_response('200 OK', [('Content-Type', 'application/json')])
        return [json.dumps(told).encode()]


def opened(
    options: EndpointOptions,
    port: int,
    collector: Collector,
    section: str = SECTION,
) -> HttpEndpoint | None:
    """Open the endpoint that a group of options describes.

    The program goes on without one if its files for TLS cannot be used. It
    is never served in the clear then.

    :param port: TCP port; 0: no endpoint.
    :param section: see :class:`HttpEndpoint`.
    :returns: ``None`` without an endpoint; the log says why.
    :raises ConfigurationError: if it cannot listen there.
    """
    if not port:
        return None
    try:
        tls = _tls(options)
    except exception.UnusableCertificate as error:
        LOG.error(
            'metrics are not served: %s; correct the file and restart', error
        )
        return None
    return HttpEndpoint(options.prometheus_host, port, collector, section, tls)


def _tls(options: EndpointOptions) -> ssl.SSLContext | None:
    """Read the files for TLS; ``None`` if none are named.

    :raises UnusableCertificate: if one cannot be used.
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
    with _fault_of('prometheus_certificate', certificate, key):
        # A key with a password would be asked for on the terminal.
        tls.load_cert_chain(certificate, key or None, password='')
    if issuers:
        tls.verify_mode = ssl.CERT_REQUIRED
        with _fault_of('prometheus_client_ca', issuers):
            tls.load_verify_locations(issuers)
    return tls


@contextlib.contextmanager
def _fault_of(option: str, path: str, key: str = '') -> Iterator[None]:
    """Name option and files in what OpenSSL says of a file."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = getattr(error, 'reason', None) or error.args[-1]
        beside = f' with prometheus_key {key}' if key else ''
        raise exception.UnusableCertificate(
            f'[{SECTION}] {option} {path}{beside} cannot be used: {why}'
        ) from error
