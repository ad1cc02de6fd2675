# SPDX-License-Identifier: Apache-2.0

"""The command that exports requests, as a trace for the simulator."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import csv
import dataclasses
import pathlib
import statistics
import sys
import time

from oslo_config import cfg

from nova_fairness import exception
from nova_fairness.cluster.assembly import storage
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import plain
from nova_fairness.model import request as request_model
from nova_fairness.model import wording

COLUMNS = (
    'asked_s',
    'project',
    'user',
    'vcpus',
    'memory_gib',
    'lifetime_s',
    'servers',
    'deleted_s',
    'limit_s',
)
"""Columns of a trace for ``nova-fairness-sim cluster run``."""

_PAGE = 1000
_MOST = 10_000_000
_SHORTEST_S = 1.0
_UNKNOWN_S = 3600.0

_State = request_model.State
_NEVER_SENT = frozenset({_State.WAITING, _State.CANCELLED, _State.EXPIRED})


@dataclasses.dataclass(frozen=True, slots=True)
class ExportedRequest:
    """A request, and how long its servers ran.

    :ivar request: the stored request.
    :ivar lifetime_s: seconds from the start of its servers to their end, or
        to the export; ``None`` if the request was not sent to Nova.
    :ivar deleted_at: time at which its user deleted it while it waited,
        seconds of the epoch; ``None`` if it was not deleted.
    """

    request: request_model.Request
    lifetime_s: float | None
    deleted_at: float | None


def export(conf: cfg.ConfigOpts) -> None:
    """Write the requests that the database contains to a file.

    :raises ConfigurationError: if no file is named, or it cannot be written.
    """
    if not conf.to:
        raise exception.ConfigurationError('--to FILE says where it goes')
    found = exported(storage.open_store(conf), time.time())
    rows = table(found, is_anonymous=conf.anonymous)
    try:
        with pathlib.Path(conf.to).open(
            'w', encoding='utf-8', newline=''
        ) as f:
            writer = csv.DictWriter(f, COLUMNS, lineterminator='\n')
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise exception.ConfigurationError(
            f'{conf.to}: cannot be written: {error.strerror}'
        ) from error
    sys.stdout.write(
        plain.lines(f'{conf.to} has {wording.counted(len(rows), "row")}\n')
    )


def exported(store: store_module.Store, now: float) -> list[ExportedRequest]:
    """Read the requests that need room and are not preemptible.

    Requests that failed are left out.

    :param now: seconds of the epoch; servers that run have run until then.
    :returns: the requests, the oldest first.
    """
    found = []
    for each in store.waits.sent_requests(0.0, _MOST):
        record = each.record
        if record.request.state is not _State.FAILED:
            is_over = record.request.state is _State.ENDED
            end = record.changed_at if is_over else now
            lifetime_s = max(end - each.sent_at, _SHORTEST_S)
            found.append(ExportedRequest(record.request, lifetime_s, None))
    for record in _never_sent(store):
        is_deleted = record.request.state is _State.CANCELLED
        deleted_at = record.changed_at if is_deleted else None
        found.append(ExportedRequest(record.request, None, deleted_at))
    kept = [
        each
        for each in found
        if not each.request.is_preemptible and _vcpus(each.request)
    ]
    return sorted(kept, key=lambda e: (e.request.asked_at, e.request.uuid))


def table(
    requests: Sequence[ExportedRequest], *, is_anonymous: bool
) -> list[dict[str, str]]:
    """Rows of the trace; times are seconds after the first request.

    A request that was not sent has the median lifetime of the others.

    :param requests: requests, the oldest first.
    :param is_anonymous: whether projects and users have numbers for names.
    """
    known = [e.lifetime_s for e in requests if e.lifetime_s is not None]
    usual_s = statistics.median(known) if known else _UNKNOWN_S
    begin = min((each.request.asked_at for each in requests), default=0.0)
    numbers: Mapping[str, dict[str, int]] = {'project': {}, 'user': {}}

    def named(noun: str, name: str) -> str:
        if not is_anonymous:
            return name
        known = numbers[noun]
        return f'{noun}-{known.setdefault(name, len(known) + 1)}'

    rows = []
    for each in requests:
        request, deleted_at = each.request, each.deleted_at
        amounts = dict(request.demand.amounts)
        values: Mapping[str, float | str | None] = {
            'asked_s': request.asked_at - begin,
            'project': named('project', request.project),
            'user': named('user', request.user),
            'vcpus': _vcpus(request),
            'memory_gib': amounts.get('MEMORY_MB', 0) / 1024,
            'lifetime_s': each.lifetime_s or usual_s,
            'servers': len(request.servers),
            'deleted_s': None if deleted_at is None else deleted_at - begin,
            'limit_s': request.time_limit_s,
        }
        rows.append({name: _text(value) for name, value in values.items()})
    return rows


def _never_sent(
    store: store_module.Store,
) -> Iterator[records.RequestRecord]:
    wanted = request_model.RequestFilter(states=_NEVER_SENT)
    after: tuple[float, str] | None = None
    while page := store.page_of_requests(None, wanted, after, _PAGE):
        yield from (each for each in page if not each.fault)
        last = page[-1].request
        after = last.asked_at, last.uuid


def _vcpus(request: request_model.Request) -> int:
    amounts = dict(request.demand.amounts)
    return amounts.get('VCPU', 0) + amounts.get('PCPU', 0)


def _text(value: float | str | None) -> str:
    if value is None:
        return ''
    return value if isinstance(value, str) else f'{value:.12g}'
