# SPDX-License-Identifier: Apache-2.0

"""Serves ``/metrics`` and ``/status`` over HTTP."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import json
import logging
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


class Collector(Protocol):
    """The source of the endpoint's answers."""

    def collect(self) -> families.Metrics:
        """All metrics."""

    def status(self) -> Mapping[str, Any] | None:
        """The answer of ``/status``, JSON types; ``None`` for nothing yet."""


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

    def __init__(self, *args: Any) -> None:
        self._free = threading.BoundedSemaphore(AT_ONCE)
        super().__init__(*args)

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
    :param section: of the configuration that names host and port.
    :raises ConfigurationError: if it cannot listen there.
    """

    def __init__(
        self,
        host: str,
        port: int,
        collector: Collector,
        section: str = 'fairness_observe',
    ) -> None:
        self._collector = collector
        numbers = registry.CollectorRegistry()
        numbers.register(collector)
        prometheus_client.ProcessCollector(
            namespace='nova_fairness', registry=numbers
        )
        self._metrics = exposition.make_wsgi_app(numbers)
        try:
            self._server = _BoundedServer((host, port), _QuietHandler)
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
