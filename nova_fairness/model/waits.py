# SPDX-License-Identifier: Apache-2.0

"""How long requests waited: percentiles of groups of them."""

import dataclasses
import enum

PERCENTILES = (50, 90, 95)

USUAL_S = 7 * 86400.0
"""How far back waits are counted if no one says it."""


class WaitKey(enum.Enum):
    """By what waits are grouped. The words are an interface."""

    PROJECT = 'project'
    FLAVOR = 'flavor'
    REASON = 'reason'


@dataclasses.dataclass(frozen=True, slots=True)
class WaitFilter:
    """Waits that are counted.

    :ivar key: by what they are grouped.
    :ivar project: of the requests; ``None`` for all.
    :ivar since: when requests were sent to Nova, seconds of the epoch, or
        later; ``None`` for any time.
    """

    key: WaitKey = WaitKey.PROJECT
    project: str | None = None
    since: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class WaitStatistics:
    """Waits of one group.

    :ivar name: of the project, flavor or reason.
    :ivar count: number of requests, >= 1.
    :ivar percentiles: seconds, each one a wait that was, by percent.
    """

    name: str
    count: int
    percentiles: dict[int, float]
