# SPDX-License-Identifier: Apache-2.0

"""What is remembered of one peer."""

import collections
import dataclasses

from nova_fairness import exception
from nova_fairness.exchange import codec
from nova_fairness.exchange import known as known_module
from nova_fairness.model import report

RETIRED = 64
"""Boot ids of former runs that are refused, per host."""

AHEAD = 1_000
"""Rounds that a sequence number may leap without time for them."""

_ROUNDS_PER_S = 10.0
"""More than the shortest interval allows."""


@dataclasses.dataclass(slots=True)
class Peer:
    """Its newest report, and what is needed to judge the next.

    :ivar heard_s: when something of it was accepted or refused last.
    :ivar arrived_s: when the newest report was accepted.
    :ivar refusal: why the newest message was not accepted, empty if it was.
    :ivar known: what its newest message said; goes with ``newest``.
    """

    heard_s: float
    newest: report.NodeReport | None = None
    known: known_module.Known | None = None
    boot_id: str = ''
    sequence: int = -1
    arrived_s: float = 0.0
    refusal: str = ''
    retired: collections.deque[str] = dataclasses.field(
        default_factory=lambda: collections.deque(maxlen=RETIRED)
    )

    @property
    def rows(self) -> int:
        """Rows of users in its newest report."""
        return 0 if self.newest is None else len(self.newest.users)

    def take(
        self,
        new: report.NodeReport,
        known: known_module.Known | None,
        arrived_s: float,
    ) -> None:
        """Put a report in the place of the one before."""
        if self.boot_id and self.boot_id != new.boot_id:
            self.retired.append(self.boot_id)
        self.newest, self.known = new, known
        self.boot_id, self.sequence = new.boot_id, new.sequence
        self.arrived_s, self.refusal = arrived_s, ''

    def why_nothing(self, age_s: float) -> str:
        """Say why it has no report that can be used.

        :param age_s: since its newest report was accepted.
        """
        silent = f'{report.SILENT} for {age_s:.0f} s' if self.boot_id else ''
        return self.refusal or silent or 'sent nothing usable'

    def check_order(
        self, new: codec.Head | report.NodeReport, now_s: float
    ) -> None:
        """Let only what is newer than the newest pass.

        :raises ReportRefused: if it is not.
        """
        if new.boot_id in self.retired:
            raise exception.ReportRefused(
                'replayed',
                f'{new.host} sent a report of a run that ended: either it is '
                'replayed, or two agents have this name',
            )
        if new.boot_id != self.boot_id:
            return
        if new.sequence <= self.sequence:
            same = new.sequence == self.sequence
            raise exception.ReportRefused(
                'duplicate' if same else 'late',
                f'{new.host} sent number {new.sequence} after {self.sequence}',
            )
        elapsed_s = max(0.0, now_s - self.arrived_s)
        most = self.sequence + AHEAD + int(elapsed_s * _ROUNDS_PER_S)
        if new.sequence > most:
            raise exception.ReportRefused(
                'future',
                f'{new.host} sent number {new.sequence} after '
                f'{self.sequence}; expected at most {most}',
            )
