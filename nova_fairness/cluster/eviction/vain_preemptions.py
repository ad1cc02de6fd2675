# SPDX-License-Identifier: Apache-2.0

"""Delays of further preemptions for projects that wasted earlier ones.

Without delays a user could make a request, let victims leave, cancel the
request, and repeat that for ever. A preemption is in vain if its request was
cancelled, expired or failed, or ended too soon after its victims had to leave.
Then no server is evicted for the project for a delay. The delay doubles with
each such request within a day, and is a day at most. Requests of the project
still start in room that is free.

All delays are computed from stored requests, so another leader gets the same
result.
"""

from collections.abc import Mapping

from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import reason
from nova_fairness.model import request as request_model

_DAY_S = 86400.0
_OVERLAP_S = 60.0
"""Seconds before the last read that are read again, because clocks of leaders
differ, and writes take a moment.
"""

_MOST_TIMES = 20
"""Largest number of times that a delay doubles; it reaches a day long before.
"""

_S = request_model.State


class VainPreemptionDelays:
    """Delays before servers are evicted for projects again.

    :param store: reads requests.
    :param shortest_use_s: first delay, and the shortest use of preempted room,
        in seconds; 0: no delay.
    :param notice_s: seconds from the notice to the first action.
    """

    def __init__(
        self, store: store_module.Store, shortest_use_s: float, notice_s: float
    ) -> None:
        self._store = store
        self._least_s = shortest_use_s
        self._notice_s = notice_s
        self._read_at: float | None = None
        self._ended: dict[str, tuple[str, float]] = {}

    def delay_ends(self, now: float) -> dict[str, float]:
        """Return the ends of delays by project, in seconds of the epoch.

        :raises StoreError: if the store cannot be read.
        """
        if not self._least_s:
            return {}
        since = now - _DAY_S
        if self._read_at is not None:
            since = max(min(self._read_at, now) - _OVERLAP_S, since)
        for each in self._store.ended_requests_with_room(since):
            if is_in_vain(each, self._least_s, self._notice_s):
                request = each.request
                ended = request.project, each.changed_at
                self._ended[request.uuid] = ended
        self._read_at = now
        self._ended = {
            uuid: ended
            for uuid, ended in self._ended.items()
            if ended[1] > now - _DAY_S
        }
        found = delay_end_by_project(self._ended, self._least_s)
        return {name: at for name, at in found.items() if at > now}


def is_in_vain(
    record: records.RequestRecord, shortest_use_s: float, notice_s: float
) -> bool:
    """Return whether victims were evicted for a request that ended without
    using the room.

    Within their notice victims are spared, so a request that ends then does
    not count. A cancellation by an operator does not count against the owner.
    A request that was deleted before it was sent has no hosts.

    :param shortest_use_s: seconds from the end of the notice until the room
        counts as used.
    :param notice_s: seconds from the notice to the first action.
    """
    room = record.room
    if room is None or not room.leaving:
        return False
    if record.why.reason is reason.Reason.CANCELLED_BY_OPERATOR:
        return False
    used_s = record.changed_at - room.at - notice_s
    if used_s < 0:
        return False
    if record.request.state is not _S.ENDED or not record.hosts:
        return True
    return used_s < shortest_use_s


def delay_end_by_project(
    vain_requests: Mapping[str, tuple[str, float]], first_delay_s: float
) -> dict[str, float]:
    """Return the ends of delays by project, in seconds of the epoch.

    :param vain_requests: project and end time of each request that was in
        vain, by UUID.
    :param first_delay_s: first delay, in seconds.
    """
    times: dict[str, list[float]] = {}
    for project, at in vain_requests.values():
        times.setdefault(project, []).append(at)
    return {
        project: max(all_of)
        + min(first_delay_s * 2 ** min(len(all_of) - 1, _MOST_TIMES), _DAY_S)
        for project, all_of in times.items()
    }
