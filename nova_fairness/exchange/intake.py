# SPDX-License-Identifier: Apache-2.0

"""Receives and validates messages of peers.

A message that differs from the host's last one only in its numbers waits until
the numbers are needed.
"""

from collections.abc import Callable
import threading
from typing import Any

import msgspec

from nova_fairness import exception
from nova_fairness.exchange import codec
from nova_fairness.exchange import desired_state
from nova_fairness.exchange import ledger as ledger_module
from nova_fairness.exchange import limits as bounds
from nova_fairness.model import node
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.runtime import quiet_log as tally_module

PEER = 'zmq_peer'
"""Key of the sender's identity in the context, set by a transport with
keys."""


class SenderKey(msgspec.Struct, frozen=True):
    """The identity of a sender's key; empty if the transport has no keys."""

    name: bounds.Name
    role: bounds.Name

    def __post_init__(self) -> None:
        bounds.check_printable(name=self.name, role=self.role)

    @classmethod
    def of(cls, context: Any) -> 'SenderKey':
        """Return the sender's key from a context of the transport.

        :raises ReportRefused: if it is malformed.
        """
        given = context.get(PEER) if isinstance(context, dict) else None
        if given is None:
            return NO_KEY
        if isinstance(given, dict) and given.get('insecure') is True:
            return NO_KEY
        return bounds.convert(given, cls, PEER)

    def check_role(self) -> None:
        """Check that the sender is a node.

        :raises ReportRefused: if the key has another role.
        """
        if self.name and self.role != 'node':
            raise exception.ReportRefused(
                'role',
                f'the key of {self.name} has the role {self.role}; '
                'expected node',
            )

    def check_host(self, host: str) -> None:
        """Check that a node reports on itself only.

        :raises ReportRefused: if the report is about another host.
        """
        if self.name and host != self.name:
            raise exception.ReportRefused(
                'identity',
                f'the key of {self.name} sent a report of {host}; expected '
                'its own',
            )


NO_KEY = SenderKey('', '')


_ROUTINE = ('own', 'duplicate', 'late')
"""Refusals that need no attention."""


class Intake:
    """Validates and stores messages of peers, on any thread.

    :param ledger: stores the reports.
    :param limits: bounds of peers' claims.
    :param desired: receives the desired state of peers.
    :param tally: counts ``received``, ``accepted`` and ``refused_<reason>``.
    :param log: for refusals.
    :param clock: monotonic, seconds.
    """

    def __init__(
        self,
        ledger: ledger_module.ReportLedger,
        limits: bounds.Bounds,
        desired: desired_state.DesiredState,
        tally: tally_module.NameCounts,
        log: tally_module.QuietLog,
        clock: Callable[[], float],
    ) -> None:
        self._lock = threading.Lock()
        self._ledger = ledger
        self._limits = limits
        self._desired = desired
        self._tally = tally
        self._log = log
        self._clock = clock

    def received(self, context: Any, message: Any) -> None:
        """Accept a message, or count and log its error; never raises."""
        key = NO_KEY
        try:
            key = SenderKey.of(context)
            self._accept(message, key)
        except exception.ReportRefused as error:
            host = key.name or codec.claimed_host(message)
            self._refuse(host, error)

    def view(
        self,
        now_s: float,
        own: report.NodeReport | None,
        metric: str,
        interval_s: float,
    ) -> report.View:
        """Return the ledger's view, with all messages received until now."""
        with self._lock:
            settled = self._ledger.settle()
            view = self._ledger.view(now_s, own, metric, interval_s)
        self._count_results(settled)
        return view

    def remembered(self) -> tuple[int, int]:
        """Return the number of hosts and of user rows that are stored."""
        with self._lock:
            settled = self._ledger.settle()
            found = self._ledger.hosts, self._ledger.rows
        self._count_results(settled)
        return found

    def _accept(self, message: Any, key: SenderKey) -> None:
        key.check_role()
        head = codec.parse_head(message)
        key.check_host(head.host)
        now_s = self._clock()
        before = self._last_content(head, now_s)
        # Without keys, everyone with access to the transport is
        # trusted.
        trusted = not key.name
        if before is not None and self._postpone(message, head, before, now_s):
            self._desired.offer(before.desired, trusted=trusted)
            return
        seen = codec.decode(message, self._limits, before)
        with self._lock:
            self._ledger.accept(seen.report, now_s, seen.lasting)
        if before is not None and seen.lasting is not before:
            self._log_capacity_change(before.resources, seen.report.resources)
        self._desired.offer(seen.desired, trusted=trusted)
        self._tally.add('received', 'accepted')

    def _last_content(
        self, head: codec.Head, now_s: float
    ) -> codec.StaticContent | None:
        with self._lock:
            settled = self._ledger.settle(head.host)
        if settled is not ledger_module.NOTHING_SETTLED:
            self._count_results(settled)
        with self._lock:
            return self._ledger.static_content(head, now_s)

    def _postpone(
        self,
        message: Any,
        head: codec.Head,
        before: codec.StaticContent,
        now_s: float,
    ) -> bool:
        short = codec.shorten(message, head, before)
        if short is None:
            return False
        with self._lock:
            return self._ledger.postpone(short, now_s)

    def _count_results(self, settled: ledger_module.MessageResults) -> None:
        if settled.accepted:
            self._tally.add('received', 'accepted', count=settled.accepted)
        for host, error in settled.refusals:
            self._refuse(host, error)

    def _log_capacity_change(
        self, before: node.NodeResources, now: node.NodeResources
    ) -> None:
        """Log a change of a node's claimed capacity, which changes all
        quotas.
        """
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

    def _refuse(self, host: str, error: exception.ReportRefused) -> None:
        self._tally.add('received', f'refused_{error.reason}')
        if error.reason in _ROUTINE:
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
