# SPDX-License-Identifier: Apache-2.0

"""Receives reports: an RPC server that works on the thread that listens.

Decoding and storing a report takes less time than a switch to another thread.
"""

from collections.abc import Callable
import logging
import threading
from typing import Any

import oslo_messaging
from oslo_messaging.rpc import dispatcher as rpc_dispatcher
from oslo_messaging.rpc import server as rpc_server

from nova_fairness.runtime import quiet_log as tally_module

LOG = logging.getLogger(__name__)

TOPIC = 'fairness-reports'
VERSION = '1.0'
METHOD = 'report'

_RETRY_S = 5.0
_JOIN_S = 5.0

Received = Callable[[Any, Any], None]
"""Function (context, message) for each report; never raises."""


class ReportEndpoint:
    """The RPC endpoint for reports.

    :param received: called with each report.
    """

    target = oslo_messaging.Target(version=VERSION)

    def __init__(self, received: Received) -> None:
        self._received = received

    @oslo_messaging.expose  # type: ignore[untyped-decorator]
    def report(self, ctxt: Any, report: Any, **_later: Any) -> None:
        """Accept a report; arguments of later versions are ignored."""
        self._received(ctxt, report)


class _Dispatcher(rpc_dispatcher.RPCDispatcher):  # type: ignore[misc]
    """Counts unusable calls, for which oslo would log a traceback.

    :param endpoint: accepts reports.
    :param tally: counts ``refused_call``.
    :param log: for refusals.
    """

    def __init__(
        self,
        endpoint: ReportEndpoint,
        tally: tally_module.NameCounts,
        log: tally_module.QuietLog,
    ) -> None:
        super().__init__(
            [endpoint], None, rpc_dispatcher.ExplicitRPCAccessPolicy
        )
        self._report = endpoint.report
        self._tally = tally
        self._log = log

    def is_report(self, incoming: Any) -> bool:
        """Check whether a message is exactly a report."""
        message = incoming.message
        return (
            message.get('method') == METHOD
            and message.get('version', VERSION) == VERSION
            and message.get('namespace') is None
            and type(message.get('args')) is dict
            and not incoming.client_timeout
        )

    def dispatch_report(self, incoming: Any) -> None:
        """Process a report faster than the parent class.

        The parent creates a thread and an event for each message, for long
        calls, and compares versions in general. That takes longer than reading
        the report.
        """
        incoming.acknowledge()
        try:
            self._report(incoming.ctxt, **incoming.message['args'])
        except Exception as error:  # noqa: BLE001 # whatever was sent
            self.refuse(error)
        incoming.reply()

    def dispatch(self, incoming: Any) -> Any:
        """Call the endpoint; never raises."""
        try:
            return super().dispatch(incoming)
        except Exception as error:  # noqa: BLE001 # whatever was sent
            self.refuse(error)
            return None

    def refuse(self, error: Exception) -> None:
        """Count and log a message that is no report."""
        self._tally.add('refused_call')
        text = str(error)[:200]
        self._log.warning(
            'call',
            '',
            f'A message on topic {TOPIC} was refused: '
            f'{type(error).__name__}: {text!a}; expected a cast of '
            f'{METHOD}, version {VERSION}',
        )


class _InlineServer(rpc_server.RPCServer):  # type: ignore[misc]  # untyped
    """Processes each message on the thread that receives it."""

    def _on_incoming(self, incoming: Any) -> None:
        try:
            if self.dispatcher.is_report(incoming[0]):
                self.dispatcher.dispatch_report(incoming[0])
            else:
                self._process_incoming(incoming)
        except Exception as error:  # noqa: BLE001 # whatever was sent
            self.dispatcher.refuse(error)


class PersistentServer:
    """Starts a server, and retries whenever the transport fails.

    :param transport: of oslo.messaging, for RPC.
    :param domain: name of the exchange.
    :param host: name of the server.
    :param received: called with each report, one after another.
    :param tally: counts ``refused_call``.
    :param log: for refusals.
    """

    def __init__(
        self,
        transport: Any,
        domain: str,
        host: str,
        received: Received,
        tally: tally_module.NameCounts,
        log: tally_module.QuietLog,
    ) -> None:
        self._transport = transport
        self._target = oslo_messaging.Target(
            exchange=domain, topic=TOPIC, server=host
        )
        self._dispatcher = _Dispatcher(ReportEndpoint(received), tally, log)
        self._log = log
        self._stopping = threading.Event()
        self._listening = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name='exchange-listener', daemon=True
        )

    @property
    def is_listening(self) -> bool:
        """Whether the server is listening."""
        return self._listening.is_set()

    def start(self) -> None:
        """Start to listen; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; the thread remains if it hangs in the transport."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_S)

    def _run(self) -> None:
        # The transport may hang or fail while its broker is away.
        server = self._start_server()
        while server is None and not self._stopping.wait(_RETRY_S):
            server = self._start_server()
        if server is None:
            return
        self._listening.set()
        self._stopping.wait()
        self._listening.clear()
        server.stop()
        server.wait()

    def _start_server(self) -> _InlineServer | None:
        try:
            server = _InlineServer(
                self._transport, self._target, self._dispatcher
            )
            server.start()
        except Exception as error:  # noqa: BLE001 # of any transport
            self._log.warning(
                'listen', '', f'Reports cannot be received yet: {error}'
            )
            return None
        return server
