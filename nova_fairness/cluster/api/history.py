# SPDX-License-Identifier: Apache-2.0

"""Answers about the history and the waits of requests."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import history
from nova_fairness.model import reason
from nova_fairness.model import waits as waits_model

MOST_EVENTS = 1000
"""Largest number of events in an answer; the newest ones. A request may
have many servers.
"""


def lineage(
    record: records.RequestRecord, others: Iterable[records.RequestRecord]
) -> list[records.RequestRecord]:
    """Return a request and all earlier requests of the same servers, the
    oldest first.

    :param others: requests that may have the same servers.
    """
    servers = frozenset(record.request.servers)
    before = [
        each
        for each in others
        if each.request.uuid != record.request.uuid
        and each.request.asked_at <= record.request.asked_at
        and not servers.isdisjoint(each.request.servers)
    ]
    before.sort(key=lambda each: each.request.asked_at)
    return [*before, record]


def event_facts(
    store: store_module.Store,
    lived: Sequence[records.RequestRecord],
    audience: reason.Audience,
) -> list[dict[str, Any]]:
    """Return the events of a request and its servers, the oldest first.

    :param lived: the request, preceded by earlier requests of its servers.
    :param audience: role of the reader.
    """
    newest = lived[-1].request
    begin = lived[0].request.asked_at
    stages = store.events.events_by_request(
        [each.request.uuid for each in lived]
    )
    moves = [
        m
        for plan in store.plans.open_or_changed_since(begin)
        for m in plan.moves
    ]
    found = [
        *(
            history.HistoryEvent(
                each.request.asked_at, history.EventKind.SUBMITTED
            )
            for each in lived
        ),
        *(event for some in stages.values() for event in some),
        *(
            event
            for leave in store.leaves.all_of_servers(newest.servers)
            for event in history.eviction_events(leave)
        ),
        *history.move_events(moves, newest.servers),
    ]
    found.sort(key=lambda event: event.at)
    return [
        history.event_facts(event, audience, newest.project)
        for event in found[-MOST_EVENTS:]
    ]


def page_of_wait_percentiles(
    store: store_module.Store,
    wanted: waits_model.WaitFilter,
    marker: str | None,
    limit: int,
) -> dict[str, Any]:
    """Return one page of percentiles of waits.

    :param marker: name of the last group of the previous page.
    """
    found = store.waits.percentiles(wanted, marker or '', limit + 1)
    is_reason = wanted.key is waits_model.WaitKey.REASON
    told = [
        {
            'name': each.name,
            'explanation': history.purpose(each.name) if is_reason else None,
            'requests_count': each.count,
            **{
                f'p{part}': wait_s for part, wait_s in each.percentiles.items()
            },
        }
        for each in found[:limit]
    ]
    return {'waits': told, 'more': len(found) > limit}


def wait_sentence(
    store: store_module.Store, record: records.RequestRecord, now: float
) -> str | None:
    """Return a sentence about what a request waited for, and how long;
    ``None`` if it did not wait.

    :param now: seconds of the epoch.
    """
    uuid = record.request.uuid
    stages = store.events.events_by_request([uuid])[uuid]
    return history.wait_sentence(history.wait_sums(stages, now)) or None
