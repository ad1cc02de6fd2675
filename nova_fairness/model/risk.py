# SPDX-License-Identifier: Apache-2.0

"""Preemptible servers that are at risk: they would be the next victims.

Their owners are notified before victims are chosen, when no eviction is
decided.
"""

import dataclasses
import enum

from nova_fairness.model import reason


class RiskState(enum.Enum):
    """Whether the last notification to the owner was of a risk or of its
    end.
    """

    AT_RISK = 'at_risk'
    """The server would be one of the next victims."""

    SAFE = 'safe'
    """The server was at risk, and is not at risk any more."""


@dataclasses.dataclass(frozen=True, slots=True)
class EvictionRisk:
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

    def written(self) -> 'EvictionRisk':
        """Return a copy after the metadata of the server were written."""
        return dataclasses.replace(self, is_written=True)

    def over(self, now: float) -> 'EvictionRisk':
        """Return a copy after the end of the risk.

        :param now: seconds of the epoch.
        """
        return dataclasses.replace(
            self, state=RiskState.SAFE, changed_at=now, is_written=False
        )
