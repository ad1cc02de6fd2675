# SPDX-License-Identifier: Apache-2.0

"""The exchange of a cloud: reports by fanout over oslo.messaging.

How the agent uses it::

    limits = settings.exchange_limits(conf.fairness_exchange)
    transport = oslo_messaging.get_rpc_transport(conf, url)
    exchange = mesh.MeshExchange(
        transport, host, boot_id, interval_s, limits, state
    )
    exchange.start()           # returns at once, also with a dead broker
    exchange.publish(report)   # returns at once
    exchange.view(now_s, metric)
    exchange.statistics()      # counts by name
    exchange.stop()            # bounded; the transport is not cleaned up

Topic ``fairness-reports``, exchange name = domain, fanout cast
``report(report=<message of codec>)``, version 1.0, no namespace. In a context
``zmq_peer`` is what the transport knows of the sender by its key.
"""

from collections.abc import Callable
from collections.abc import Mapping
import logging
import threading
import time
from typing import Any

import oslo_messaging

from nova_fairness.exchange import base
from nova_fairness.exchange import codec
from nova_fairness.exchange import desired_state
from nova_fairness.exchange import intake
from nova_fairness.exchange import ledger as ledger_module
from nova_fairness.exchange import limits as bounds
from nova_fairness.exchange import report_server
from nova_fairness.model import report
from nova_fairness.runtime import quiet_log

LOG = logging.getLogger(__name__)

_JOIN_S = 2.0
"""Longest wait for the end of a thread that may hang in a transport, in
seconds."""


class PeerSender:
    """Sends the newest message on its own thread.

    A transport that hangs blocks only this thread. A waiting message is
    replaced by a newer one.

    :param send: sends a message; may block, and raise anything.
    :param tally: counts ``sent``, ``send_failed`` and ``replaced``.
    :param log: for failures.
    """

    def __init__(
        self,
        send: Callable[[Any], None],
        tally: quiet_log.NameCounts,
        log: quiet_log.QuietLog,
    ) -> None:
        self._send = send
        self._tally = tally
        self._log = log
        self._changed = threading.Condition()
        self._message: Any = None
        self._stopping = False
        self._thread = threading.Thread(
            target=self._run, name='exchange-sender', daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def replace_message(self, message: Any) -> None:
        """Replace the waiting message; returns at once."""
        with self._changed:
            if self._message is not None:
                self._tally.add('replaced')
            self._message = message
            self._changed.notify()

    def stop(self) -> None:
        """Stop the thread; it remains if it hangs in the transport."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_S)

    def _run(self) -> None:
        while (message := self._next()) is not None:
            try:
                self._send(message)
            except Exception as error:  # noqa: BLE001 # of any transport
                self._tally.add('send_failed')
                self._log.warning(
                    'send', '', f'The report was not sent: {error}'
                )
            else:
                self._tally.add('sent')

    def _next(self) -> Any:
        """Wait for a message; return ``None`` at the end."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping or self._message is not None
            )
            if self._stopping:
                return None
            message, self._message = self._message, None
            return message


_MAX_NAMED_HOSTS = 10
"""Largest number of hosts that a log line names."""


class ViewLog:
    """Logs the changes from one view to the next; not thread-safe.

    :param log: the logger.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._usable: set[str] = set()
        self._left_out: dict[str, str] = {}

    def log_changes(self, view: report.View) -> None:
        """Log the hosts whose reports began or ceased to be used.

        The first word of a cause identifies its kind.
        """
        left_out = {
            host: why.split(' ', 1)[0] for host, why in view.left_out.items()
        }
        gone = [
            f'{host} ({view.left_out[host]})'
            for host, kind in left_out.items()
            if self._left_out.get(host) != kind
        ]
        come = [host for host in view.reports if host not in self._usable]
        if gone:
            self._log.warning('Reports not in use: %s', _named_hosts(gone))
        if come:
            self._log.info('Reports in use: %s', _named_hosts(come))
        self._usable, self._left_out = set(view.reports), left_out


def _named_hosts(items: list[str]) -> str:
    more = len(items) - _MAX_NAMED_HOSTS
    return ', '.join(items[:_MAX_NAMED_HOSTS]) + (
        f' and {more} more' if more > 0 else ''
    )


class MeshExchange(base.Exchange):
    """Sends reports to all nodes of a domain, and receives theirs.

    :param transport: of oslo.messaging, for RPC.
    :param host: name of this node.
    :param boot_id: of this node's run.
    :param interval_s: of its rounds.
    :param limits: bounds of peers' claims.
    :param desired: sent with every report, and updated from reports of peers.
    :param clock: monotonic, seconds.
    """

    def __init__(
        self,
        transport: Any,
        host: str,
        boot_id: str,
        interval_s: float,
        limits: bounds.Bounds,
        desired: desired_state.DesiredState,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.interval_s = interval_s
        self._desired = desired
        self._lock = threading.Lock()
        self._own: report.NodeReport | None = None
        driver = getattr(transport, '_driver', None)
        self._as_bytes = getattr(driver, 'carries_bytes', False) is True
        self._tally = quiet_log.NameCounts()
        self._log = quiet_log.QuietLog(LOG, clock)
        self.intake = intake.Intake(
            ledger_module.ReportLedger(host, boot_id, limits),
            limits,
            desired,
            self._tally,
            self._log,
            clock,
        )
        self._view_log = ViewLog(LOG)
        self._client = oslo_messaging.get_rpc_client(
            transport,
            oslo_messaging.Target(
                exchange=limits.domain,
                topic=report_server.TOPIC,
                version=report_server.VERSION,
            ),
        ).prepare(fanout=True, retry=0)
        self._sender = PeerSender(self._send, self._tally, self._log)
        self.listener = report_server.PersistentServer(
            transport,
            limits.domain,
            host,
            self.intake.received,
            self._tally,
            self._log,
        )

    def start(self) -> None:
        """Start to send and to receive; returns at once."""
        self.listener.start()
        self._sender.start()

    def stop(self) -> None:
        """Stop both, in bounded time. The transport stays open."""
        self._sender.stop()
        self.listener.stop()

    def publish(self, node_report: report.NodeReport) -> None:
        """Queue a report for sending; returns at once.

        :raises ExchangeError: if it contains a number that is not finite.
        """
        message = codec.encode(
            node_report, self._desired.current(), as_bytes=self._as_bytes
        )
        with self._lock:
            self._own = node_report
        self._sender.replace_message(message)

    def view(self, now_s: float, metric: str = '') -> report.View:
        """Return the newest usable report of every node, and why others are
        unusable.

        :param now_s: of the clock of this exchange.
        :param metric: of usable reports; empty means the metric of this node's
            newest report.
        """
        with self._lock:
            own = self._own
            wanted = metric or (own.metric if own is not None else '')
            # After a pause of this node the others' newest are as old as its
            # own interval is long.
            own_s = own.interval_s if own is not None else 0.0
            interval_s = max(self.interval_s, own_s)
        view = self.intake.view(now_s, own, wanted, interval_s)
        with self._lock:
            self._view_log.log_changes(view)
        return view

    def statistics(self) -> Mapping[str, int]:
        """Return event counts since the start.

        :returns: ``sent``, ``send_failed``, ``replaced`` (before they were
            sent), ``received``, ``accepted``, ``refused_<reason>`` if any;
            ``listening`` (0 or 1), ``peers`` and ``rows`` that are stored now.
        """
        peers, rows = self.intake.remembered()
        return {
            **self._tally.counts(),
            'listening': int(self.listener.is_listening),
            'peers': peers,
            'rows': rows,
        }

    def _send(self, message: codec.Message) -> None:
        self._client.cast({}, report_server.METHOD, report=message)
