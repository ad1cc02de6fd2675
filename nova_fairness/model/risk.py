# SPDX-License-Identifier: Apache-2.0

"""Preemptible servers that are among the next to make room.

Their owners are told before anybody is chosen: nothing is decided yet.
"""

import dataclasses
import enum

from nova_fairness.model import reason


class RiskState(enum.Enum):
    """Whether the owner was notified of a risk or of its end."""

    AT_RISK = 'at_risk'
    """It is among the next to make room."""

    SAFE = 'safe'
    """It was, and is no longer."""


@dataclasses.dataclass(frozen=True, slots=True)
class Risk:
    """A server that is or was at risk, and its notice.

    :ivar server: UUID.
    :ivar project: that it belongs to.
    :ivar user: who asked for it.
    :ivar state: what is told last.
    :ivar why: for its owner, why it is or was at risk.
    :ivar since: when it was first told so, seconds of the epoch.
    :ivar changed_at: when it came into its state, seconds of the epoch.
    :ivar is_written: whether its metadata say the same.
    """

    server: str
    project: str
    user: str
    state: RiskState
    why: reason.Why
    since: float
    changed_at: float
    is_written: bool = False

    @property
    def is_at_risk(self) -> bool:
        """Whether it is told so now."""
        return self.state is RiskState.AT_RISK

    def written(self) -> 'Risk':
        """It once its metadata say what is told."""
        return dataclasses.replace(self, is_written=True)

    def over(self, now: float) -> 'Risk':
        """It once it is no longer at risk.

        :param now: seconds of the epoch.
        """
        return dataclasses.replace(
            self, state=RiskState.SAFE, changed_at=now, is_written=False
        )
