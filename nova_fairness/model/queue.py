# SPDX-License-Identifier: Apache-2.0

"""What the cluster service tells of itself and its requests."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_fairness.model import reason
from nova_fairness.model import request as request_model


@dataclasses.dataclass(frozen=True)
class Queue:
    """The requests at one moment.

    :ivar leads: whether this process acts; else others know what waits.
    :ivar seen_at: when the cloud was looked at last, seconds of the epoch;
        ``None`` if it was not.
    :ivar waiting: number of requests that wait, by project and reason.
    :ivar oldest_at: when the one that waits longest was asked for, seconds
        of the epoch; ``None`` if nobody waits.
    :ivar doubtful: requests of which it is not known whether Nova has them.
    :ivar entered: how often requests came into a state, by its name.
    :ivar waited_s: sum of the waits of all that were released.
    :ivar cycles: that were begun.
    :ivar cycles_failed: that ended early.
    """

    leads: bool
    seen_at: float | None
    waiting: Mapping[tuple[str, str], int]
    oldest_at: float | None
    doubtful: int
    entered: Mapping[str, int]
    waited_s: float
    cycles: int
    cycles_failed: int


def facts(request: request_model.Request, why: reason.Why) -> dict[str, Any]:
    """What answers and notifications say of a request alike, JSON types."""
    return {
        'uuid': request.uuid,
        'project_id': request.project,
        'user_id': request.user,
        'origin': request.origin.name.lower(),
        'servers': list(request.servers),
        'resources': dict(request.demand.amounts),
        'state': request.state.value,
        'reason': why.reason.value,
        'explanation': why.sentence,
        'subject': why.subject,
        'numbers': dict(why.numbers),
    }
