# SPDX-License-Identifier: Apache-2.0

"""Rows of the table of requests, and the values they are made of."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import json
from typing import Any

from nova_fairness.model import leaving
from nova_fairness.model import reason
from nova_fairness.model import request as request_model

_USUAL = request_model.Band.NORMAL
_ROWS = 30_000
"""Columns that are read once: most rows are in a cycle as in the last."""


@dataclasses.dataclass(frozen=True, slots=True)
class Room:
    """Room that is promised to a request.

    :ivar hosts: names, one per server.
    :ivar leaving: UUIDs of servers that leave for it.
    :ivar at: when it was promised, seconds of the epoch.
    :ivar until: when the promise ends, likewise.
    """

    hosts: tuple[str, ...]
    leaving: tuple[str, ...]
    at: float
    until: float


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """A request as it is stored.

    :ivar request: what was asked for, with state and version.
    :ivar cast_uuid: of the message it was made of.
    :ivar why: what its owner is told.
    :ivar changed_at: when it came into its state, seconds of the epoch.
    :ivar hosts: where room was found when it was sent last, one per server;
        empty before, and if none was looked for.
    :ivar room: that was promised to it last; ``None`` if none was.
    """

    request: request_model.Request
    cast_uuid: str
    why: reason.Why
    changed_at: float
    hosts: tuple[str, ...] = ()
    room: Room | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Used:
    """What accounts used, the longer ago the less it counts.

    :ivar at: seconds of the epoch that is charged up to; 0 if nothing was.
    :ivar parts: of the cloud by class of Placement, by account.
    :ivar version: number of writes.
    :ivar since: when the period of budgets began, seconds of the epoch.
    :ivar spent: unit-seconds of it by account.
    """

    at: float = 0.0
    parts: Mapping[str, Mapping[str, float]] = dataclasses.field(
        default_factory=dict
    )
    version: int = 0
    since: float = 0.0
    spent: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Charge:
    """Amounts that were charged at once.

    :ivar version: of the ledger after it.
    :ivar begins: seconds of the epoch.
    :ivar ends: seconds of the epoch.
    :ivar capacity: of the cloud by class.
    :ivar changed: amounts by class, by account, of those that have others
        than in the charge before; of all if there is an opening.
    :ivar opening: what the ledger had at the begin, parts of the cloud by
        class, by account; ``None`` if it goes on from the charge before.
    """

    version: int
    begins: float
    ends: float
    capacity: Mapping[str, float]
    changed: Mapping[str, Mapping[str, float]]
    opening: Mapping[str, Mapping[str, float]] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Given:
    """What was set of accounts while the service ran.

    :ivar accounts: JSON types by name of the account and of its field.
    :ivar version: number of writes.
    """

    accounts: Mapping[str, Mapping[str, Any]]
    version: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Promised:
    """Starts that owners were told, and what became of them.

    :ivar promises: fields of :class:`.calibration.Promise`, by UUID.
    :ivar past: fields of :class:`.calibration.Outcome`, the oldest first.
    :ivar version: number of writes.
    """

    promises: Mapping[str, Sequence[float]]
    past: Sequence[Sequence[float]]
    version: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Traded:
    """Groups with spending rates, and what was charged.

    :ivar groups: project, name, rate and count of each.
    :ivar spent: units of :mod:`.shares.spending` by account of a user.
    :ivar meters: UUID of the server and microseconds of CPU up to which it
        was charged, by process.
    :ivar version: number of writes.
    """

    groups: Sequence[tuple[str, str, float, int]]
    spent: Mapping[str, int]
    meters: Mapping[str, tuple[str, int]]
    version: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Leader:
    """The process that acts.

    :ivar epoch: > 0, larger with every takeover; 0 if nobody ever led.
    :ivar holder: name of the process; '' if the last one gave the lease back.
    :ivar since: when it said so last, seconds of the epoch of time.
    """

    epoch: int = 0
    holder: str = ''
    since: float = 0.0


def short(content: object) -> str:
    """JSON in few characters."""
    return json.dumps(content, separators=(',', ':'))


def row_of(record: Record) -> dict[str, Any]:
    """The columns of a request."""
    request = record.request
    return {
        'uuid': request.uuid,
        'cast_uuid': record.cast_uuid,
        'project': request.project,
        'owner': request.user,
        'asked_at': request.asked_at,
        'expires_at': request.expires_at,
        'time_limit_s': request.time_limit_s,
        'extended_s': request.extended_s,
        'origin': request.origin.value,
        'band': request.band.value,
        'leaves_by': request.leaves_by and request.leaves_by.value,
        'wanted': _wanted(request),
        'state': request.state.value,
        'version': request.version,
        'changed_at': record.changed_at,
        'hosts': json.dumps(record.hosts),
        **columns_of(record.why),
    }


def preemptible(found: Iterable[Record]) -> frozenset[str]:
    """Servers that are; one that was unshelved goes by its newest request.

    :param found: the oldest first.
    """
    by_server = {
        server: record.request.is_preemptible
        for record in found
        for server in record.request.servers
    }
    return frozenset(server for server, is_one in by_server.items() if is_one)


def columns_of(why: reason.Why) -> dict[str, Any]:
    """The columns of a reason."""
    return {
        'reason': why.reason.value,
        'subject': why.subject,
        'numbers': json.dumps(why.numbers),
    }


def told(request: request_model.Request, why: reason.Why) -> dict[str, Any]:
    """Parameters of :func:`.tables.tell_requests`."""
    return {
        'its_uuid': request.uuid,
        'its_state': request.state.value,
        'its_version': request.version,
        **columns_of(why),
    }


class Known:
    """Records of the rows that were read last.

    Most rows are in a cycle as in the last, and so are their records.
    """

    def __init__(self) -> None:
        self._by_uuid: dict[str, tuple[tuple[Any, ...], Record]] = {}

    def records(
        self, names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]
    ) -> list[Record]:
        """Records of rows, in their order.

        :param names: of the columns.
        """
        key = names.index('uuid')
        found, known = {}, self._by_uuid
        for row in rows:
            seen = known.get(row[key])
            if seen is None or seen[0] != row:
                record = record_of(dict(zip(names, row, strict=True)))
                seen = (row, record)
            found[row[key]] = seen
        # Those of other states are read for themselves, now and then.
        if 2 * len(found) < len(known):
            known.update(found)
        else:
            self._by_uuid = found
        return [record for _, record in found.values()]


def record_of(row: Mapping[str, Any]) -> Record:
    """Make a record of a row."""
    servers, demand, group = _asked(row['wanted'])
    request = request_model.Request(
        uuid=row['uuid'],
        project=row['project'],
        user=row['owner'],
        servers=servers,
        demand=demand,
        asked_at=row['asked_at'],
        origin=request_model.Origin(row['origin']),
        group=group,
        expires_at=row['expires_at'],
        band=request_model.Band(row['band'] or _USUAL.value),
        leaves_by=leaving.Action(row['leaves_by'])
        if row['leaves_by']
        else None,
        time_limit_s=row['time_limit_s'],
        extended_s=row['extended_s'],
        state=request_model.State(row['state']),
        version=row['version'],
    )
    hosts = tuple(json.loads(row['hosts'])) if row['hosts'] else ()
    return Record(
        request,
        row['cast_uuid'],
        why_of(row),
        row['changed_at'],
        hosts,
        _room(row['room']),
    )


def _room(written: str | None) -> Room | None:
    if written is None:
        return None
    found = json.loads(written)
    return Room(
        tuple(found['hosts']),
        tuple(found['leaving']),
        found['at'],
        found['until'],
    )


def why_of(row: Mapping[str, Any]) -> reason.Why:
    """Make a reason of its columns."""
    return _why(row['reason'], row['subject'], row['numbers'])


@functools.lru_cache(_ROWS)
def _why(token: str, subject: str, numbers: str) -> reason.Why:
    return reason.Why(
        reason.Reason(token),
        subject,
        tuple((name, number) for name, number in json.loads(numbers)),
    )


@functools.lru_cache(_ROWS)
def _asked(
    written: str,
) -> tuple[tuple[str, ...], request_model.Demand, request_model.Group | None]:
    wanted = json.loads(written)
    return (
        tuple(wanted['servers']),
        _demand(wanted['demand']),
        _group(wanted['group']),
    )


def _wanted(request: request_model.Request) -> str:
    demand, group = request.demand, request.group
    return json.dumps(
        {
            'servers': request.servers,
            'demand': {
                'amounts': demand.amounts,
                'required': sorted(demand.required),
                'forbidden': sorted(demand.forbidden),
                'zone': demand.zone,
                'aggregates': [sorted(each) for each in demand.aggregates],
                'host': demand.host,
            },
            'group': group and [group.uuid, group.rule.value, group.per_host],
        },
        separators=(',', ':'),
    )


def _demand(written: Mapping[str, Any]) -> request_model.Demand:
    return request_model.Demand(
        amounts=tuple((name, amount) for name, amount in written['amounts']),
        required=frozenset(written['required']),
        forbidden=frozenset(written['forbidden']),
        zone=written['zone'],
        aggregates=tuple(frozenset(each) for each in written['aggregates']),
        host=written['host'],
    )


def _group(written: list[Any] | None) -> request_model.Group | None:
    if written is None:
        return None
    uuid, rule, per_host = written
    return request_model.Group(uuid, request_model.Rule(rule), per_host)
