# SPDX-License-Identifier: Apache-2.0

"""Takes messages of peers in.

A message may differ from the one of its host before in its numbers only. It
then waits until they are asked for.
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
"""Where a transport that knows keys says who sent a message."""


class SenderKey(msgspec.Struct, frozen=True):
    """A sender's key, from the transport; empty if it knows no keys."""

    name: bounds.Name
    role: bounds.Name

    def __post_init__(self) -> None:
        bounds.check_printable(name=self.name, role=self.role)

    @classmethod
    def of(cls, context: Any) -> 'SenderKey':
        """The sender's key that the transport wrote into a context.

        :raises ReportRefused: if that cannot be.
        """
        given = context.get(PEER) if isinstance(context, dict) else None
        if given is None:
            return NO_KEY
        if isinstance(given, dict) and given.get('insecure') is True:
            return NO_KEY
        return bounds.converted(given, cls, PEER)

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


NO_KEY = SenderKey('', '')


_EVERY_DAY = ('own', 'duplicate', 'late')
"""Refusals that need no attention."""


class Intake:
    """Checks and keeps what peers send; any thread.

    :param ledger: keeps it.
    :param limits: what is believed and kept of peers.
    :param desired: hears what others tell.
    :param tally: counts ``received``, ``accepted`` and ``refused_<reason>``.
    :param log: where refusals are told.
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
        """Take a message, or count and name what is wrong; never raises."""
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
        """The ledger's view of all that came until now."""
        with self._lock:
            settled = self._ledger.settle()
            view = self._ledger.view(now_s, own, metric, interval_s)
        self._note(settled)
        return view

    def remembered(self) -> tuple[int, int]:
        """Count the hosts, and the rows of users, that are kept now."""
        with self._lock:
            settled = self._ledger.settle()
            found = self._ledger.hosts, self._ledger.rows
        self._note(settled)
        return found

    def _accept(self, message: Any, key: SenderKey) -> None:
        key.check_role()
        head = codec.head(message)
        key.check_host(head.host)
        now_s = self._clock()
        before = self._expected(head, now_s)
        # Where no keys are known, whoever has access to the transport is
        # believed.
        trusted = not key.name
        if before is not None and self._postponed(
            message, head, before, now_s
        ):
            self._desired.offer(before.desired, trusted=trusted)
            return
        seen = codec.decode(message, self._limits, before)
        with self._lock:
            self._ledger.accept(seen.report, now_s, seen.lasting)
        if before is not None and seen.lasting is not before:
            self._compare(before.resources, seen.report.resources)
        self._desired.offer(seen.desired, trusted=trusted)
        self._tally.add('received', 'accepted')

    def _expected(
        self, head: codec.Head, now_s: float
    ) -> codec.StaticContent | None:
        with self._lock:
            settled = self._ledger.settle(head.host)
        if settled is not ledger_module.NOTHING_SETTLED:
            self._note(settled)
        with self._lock:
            return self._ledger.expect(head, now_s)

    def _postponed(
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

    def _note(self, settled: ledger_module.MessageResults) -> None:
        if settled.accepted:
            self._tally.add('received', 'accepted', count=settled.accepted)
        for host, error in settled.refusals:
            self._refuse(host, error)

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

    def _refuse(self, host: str, error: exception.ReportRefused) -> None:
        self._tally.add('received', f'refused_{error.reason}')
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
