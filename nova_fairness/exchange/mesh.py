# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The exchange of a cloud: reports by fanout over oslo.messaging.

How the agent uses it::

    limits = beliefs.from_options(conf.fairness_exchange)
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
from typing import NamedTuple

import oslo_messaging

from nova_fairness import exception
from nova_fairness.exchange import attendance
from nova_fairness.exchange import base
from nova_fairness.exchange import bounds
from nova_fairness.exchange import codec
from nova_fairness.exchange import desired_state
from nova_fairness.exchange import fields
from nova_fairness.exchange import ledger as ledger_module
from nova_fairness.exchange import listening
from nova_fairness.exchange import sender
from nova_fairness.exchange import tally
from nova_fairness.model import node
from nova_fairness.model import report
from nova_fairness.model import resources

LOG = logging.getLogger(__name__)

PEER = 'zmq_peer'
"""Where a transport that knows keys says who sent a message."""

_EVERY_DAY = ('own', 'duplicate', 'late')
"""Refusals that need nobody's attention."""


class MeshExchange(base.Exchange):
    """Sends to all nodes of a domain, and hears all of them.

    :param transport: of oslo.messaging, for RPC.
    :param host: the node's own name.
    :param boot_id: of its agent's run.
    :param interval_s: of its rounds.
    :param limits: what is believed and kept of peers.
    :param desired: told with every report, and hears what others tell.
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
        self._host = host
        self._limits = limits
        self._desired = desired
        self._clock = clock
        self._lock = threading.Lock()
        self._ledger = ledger_module.Ledger(host, boot_id, limits)
        self._own: report.NodeReport | None = None
        driver = getattr(transport, '_driver', None)
        self._as_bytes = getattr(driver, 'carries_bytes', False) is True
        self._tally = tally.Tally()
        self._log = tally.QuietLog(LOG, clock)
        self._attendance = attendance.Attendance(LOG)
        self._client = oslo_messaging.get_rpc_client(
            transport,
            oslo_messaging.Target(
                exchange=limits.domain,
                topic=listening.TOPIC,
                version=listening.VERSION,
            ),
        ).prepare(fanout=True, retry=0)
        self._sender = sender.Sender(self._send, self._tally, self._log)
        self.listener = listening.Listener(
            transport,
            limits.domain,
            host,
            self._received,
            self._tally,
            self._log,
        )

    def start(self) -> None:
        """Begin to send and to listen; returns at once."""
        self.listener.start()
        self._sender.start()

    def stop(self) -> None:
        """End both; returns in bounded time. The transport stays open."""
        self._sender.stop()
        self.listener.stop()

    def publish(self, node_report: report.NodeReport) -> None:
        """Hand a report over for sending; returns at once.

        :raises ExchangeError: if it holds a number that is not finite.
        """
        message = codec.encode(
            node_report, self._desired.current(), as_bytes=self._as_bytes
        )
        with self._lock:
            self._own = node_report
        self._sender.put(message)

    def view(self, now_s: float, metric: str = '') -> report.View:
        """Give the newest usable report of every node, and why not others.

        :param now_s: of the clock that the exchange was given.
        :param metric: what others must measure with; empty: what the own
            newest report was measured with.
        """
        with self._lock:
            own = self._own
            wanted = metric or (own.metric if own is not None else '')
            # After a pause of this node the others' newest are as old as its
            # own interval is long.
            own_s = own.interval_s if own is not None else 0.0
            interval_s = max(self.interval_s, own_s)
            view = self._ledger.view(now_s, own, wanted, interval_s)
            self._attendance.note(view)
        return view

    def statistics(self) -> Mapping[str, int]:
        """Count what happened so far.

        :returns: ``sent``, ``send_failed``, ``replaced`` (not sent before
            something newer), ``received``, ``accepted``, ``refused_<reason>``
            as far as they happened; ``listening`` (0 or 1), ``peers`` and
            ``rows`` that are remembered now.
        """
        with self._lock:
            peers, rows = self._ledger.hosts, self._ledger.rows
        return {
            **self._tally.counts(),
            'listening': int(self.listener.is_listening),
            'peers': peers,
            'rows': rows,
        }

    def _send(self, message: codec.Message) -> None:
        self._client.cast({}, listening.METHOD, report=message)

    def _received(self, context: Any, message: Any) -> None:
        key = _NO_KEY
        try:
            key = _Key.of(context, self._limits)
            self._accept(message, key)
        except exception.ReportRefused as error:
            self._refuse(key, message, error)
        else:
            self._tally.add('received', 'accepted')

    def _accept(self, message: Any, key: '_Key') -> None:
        key.check_role()
        head = codec.head(message, self._limits)
        key.check_host(head.host)
        now_s = self._clock()
        with self._lock:
            before = self._ledger.expect(head, now_s)
        seen = codec.decode(message, self._limits, before)
        with self._lock:
            self._ledger.accept(seen.report, now_s, seen.known)
        if before is not None and seen.known is not before:
            self._compare(before.resources, seen.report.resources)
        # Where no keys are known, whoever has access to the transport is
        # believed.
        self._desired.offer(seen.desired, trusted=not key.name)

    def _compare(
        self, before: node.NodeResources, now: node.NodeResources
    ) -> None:
        """Say what a node claims to have now: it makes all quotas grow."""
        changes = [
            f'{name} {old:g} became {new:g}'
            for name, old, new in zip(
                resources.RESOURCES.names,
                before.capacity.tolist(),
                now.capacity.tolist(),
                strict=True,
            )
            if old != new
        ]
        if changes:
            self._log.warning(
                'capacity',
                now.host,
                f'{now.host} says that it has another capacity: '
                f'{", ".join(changes)}',
            )

    def _refuse(
        self, key: '_Key', message: Any, error: exception.ReportRefused
    ) -> None:
        self._tally.add('received', f'refused_{error.reason}')
        host = key.name or codec.claimed_host(message, self._limits)
        if error.reason in _EVERY_DAY:
            return
        with self._lock:
            self._ledger.refused(
                host, f'{report.REFUSED} {error}', self._clock()
            )
        self._log.warning(
            error.reason,
            host,
            f'A report of {host or "an unnamed node"} is not used: {error}',
        )


class _Key(NamedTuple):
    """What the transport knows of a sender; empty if it knows no keys."""

    name: str = ''
    role: str = ''

    @classmethod
    def of(cls, context: Any, limits: bounds.Bounds) -> '_Key':
        """Read what the transport wrote into a context.

        :raises ReportRefused: if that cannot be.
        """
        if not isinstance(context, dict) or context.get(PEER) is None:
            return _NO_KEY
        given = fields.Fields(context[PEER], PEER)
        if given.is_set('insecure'):
            return _NO_KEY
        return cls(
            given.text('name', limits.max_text),
            given.text('role', limits.max_text),
        )

    def check_role(self) -> None:
        """Let only nodes report.

        :raises ReportRefused: if it is another key's message.
        """
        if self.name and self.role != 'node':
            raise exception.ReportRefused(
                'role',
                f'the key of {self.name} has the role {self.role}; '
                'expected node',
            )

    def check_host(self, host: str) -> None:
        """Let everybody report on itself only.

        :raises ReportRefused: if it is another host's report.
        """
        if self.name and host != self.name:
            raise exception.ReportRefused(
                'identity',
                f'the key of {self.name} sent a report of {host}; expected '
                'its own',
            )


_NO_KEY = _Key()
