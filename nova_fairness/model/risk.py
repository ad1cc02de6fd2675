# SPDX-License-Identifier: Apache-2.0

"""Preemptible servers that are among the next to make room.

Their owners are notified before victims are chosen: nothing is decided yet.
"""

import dataclasses
import enum

from nova_fairness.model import reason


class RiskState(enum.Enum):
    """Whether the owner was notified of a risk or of its end."""

    AT_RISK = 'at_risk'
    """The server is among the next to make room."""

    SAFE = 'safe'
    """The server was at risk, and is no longer."""


@dataclasses.dataclass(frozen=True, slots=True)
class Risk:
    """A server that is or was at risk, and its notice.

    :ivar server: UUID of the server.
    :ivar project: project of the server.
    :ivar user: user who asked for it.
    :ivar state: state in the last notification to the owner.
    :ivar why: reason of the risk, for the owner.
    :ivar since: time of the first notification, seconds of the epoch.
    :ivar changed_at: time at which it entered its state, seconds of the epoch.
    :ivar is_written: whether the metadata of the server have this state.
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
        """Whether the server is at risk now."""
        return self.state is RiskState.AT_RISK

    def written(self) -> 'Risk':
        """A copy after the metadata of the server were written."""
        return dataclasses.replace(self, is_written=True)

    def over(self, now: float) -> 'Risk':
        """A copy after the end of the risk.

        :param now: seconds of the epoch.
        """
        return dataclasses.replace(
            self, state=RiskState.SAFE, changed_at=now, is_written=False
        )
