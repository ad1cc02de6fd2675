# SPDX-License-Identifier: Apache-2.0

"""Waits of requests: percentiles by group."""

import dataclasses
import enum

PERCENTILES = (50, 90, 95)

USUAL_S = 7 * 86400.0
"""Default age of the oldest waits that are counted, seconds."""


class WaitKey(enum.Enum):
    """Key by which waits are grouped. The values are part of the API: do not
    change them.
    """

    PROJECT = 'project'
    FLAVOR = 'flavor'
    REASON = 'reason'


@dataclasses.dataclass(frozen=True, slots=True)
class WaitFilter:
    """Waits that are counted.

    :ivar key: key by which they are grouped.
    :ivar project: project of the requests; ``None`` for all.
    :ivar since: earliest time at which requests were sent to Nova, seconds of
        the epoch; ``None`` for any.
    """

    key: WaitKey = WaitKey.PROJECT
    project: str | None = None
    since: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class WaitStatistics:
    """Waits of one group.

    :ivar name: name of the project, flavor or reason.
    :ivar count: number of requests, >= 1.
    :ivar percentiles: waits in seconds, by percent; each is the wait of a
        request.
    """

    name: str
    count: int
    percentiles: dict[int, float]
