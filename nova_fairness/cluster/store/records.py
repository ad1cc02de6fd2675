# SPDX-License-Identifier: Apache-2.0

"""Records of the store: rows of requests, and other stored values."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import json
import math
from typing import Any
from typing import NamedTuple

from nova_fairness import exception
from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.model import request as request_model

_AGAIN_S = 60.0
"""Retry interval that owners of unreadable rows see; each cycle reads all
rows.
"""
_ROWS = 30_000
"""Number of parsed columns that are cached: most rows do not change between
cycles.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class ReservedRoom:
    """Room that is reserved for a request.

    :ivar hosts: names of hosts, one per server.
    :ivar leaving: UUIDs of servers that are evicted for the request.
    :ivar at: when the room was reserved, seconds of the epoch.
    :ivar until: when the reservation ends, seconds of the epoch.
    """

    hosts: tuple[str, ...]
    leaving: tuple[str, ...]
    at: float
    until: float


@dataclasses.dataclass(frozen=True, slots=True)
class RequestRecord:
    """A stored request.

    :ivar request: the request, with state and version.
    :ivar cast_uuid: UUID of its message.
    :ivar why: reason that its owner sees.
    :ivar changed_at: when it entered its state, seconds of the epoch.
    :ivar hosts: hosts with its room when it was last sent, one per server;
        empty if it was never sent or was sent without a plan.
    :ivar room: its last reservation; ``None`` without one.
    :ivar fault: why its row cannot be read; ``None`` if it can. With a fault,
        the request has no demand, and one server with the UUID of the request.
    """

    request: request_model.Request
    cast_uuid: str
    why: reason.Why
    changed_at: float
    hosts: tuple[str, ...] = ()
    room: ReservedRoom | None = None
    fault: Exception | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class UseRecords:
    """Decayed use of accounts: older use counts less.

    :ivar at: seconds of the epoch up to which use is charged; 0 before the
        first charge.
    :ivar parts: parts of the cloud by resource class, by account.
    :ivar version: number of writes.
    :ivar since: when the period of budgets began, seconds of the epoch.
    :ivar spent: unit-seconds that were spent in this period, by account.
    """

    at: float = 0.0
    parts: Mapping[str, Mapping[str, float]] = dataclasses.field(
        default_factory=dict
    )
    version: int = 0
    since: float = 0.0
    spent: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class ChargeRecord:
    """One charge of the ledger.

    :ivar version: version of the ledger after it.
    :ivar begins: seconds of the epoch.
    :ivar ends: seconds of the epoch.
    :ivar capacity: capacity of the cloud by class.
    :ivar changed: amounts by class, by account, of accounts whose amounts
        differ from the charge before; of all accounts if there is an opening.
    :ivar opening: content of the ledger at the begin, parts of the cloud by
        class, by account; ``None`` if it continues the charge before.
    """

    version: int
    begins: float
    ends: float
    capacity: Mapping[str, float]
    changed: Mapping[str, Mapping[str, float]]
    opening: Mapping[str, Mapping[str, float]] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class AccountSettings:
    """Settings of accounts that callers changed while the service ran.

    :ivar accounts: values of JSON types by field, by account.
    :ivar version: number of writes.
    """

    accounts: Mapping[str, Mapping[str, Any]]
    version: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class PromisedStarts:
    """Estimated starts that owners saw, and the real starts.

    :ivar promises: fields of :class:`.calibration.Promise`, by UUID.
    :ivar past: fields of :class:`.calibration.Outcome`, the oldest first.
    :ivar version: number of writes.
    """

    promises: Mapping[str, Sequence[float]]
    past: Sequence[Sequence[float]]
    version: int = 0


class ServerMeter(NamedTuple):
    """CPU time for which a server was already charged.

    :ivar project: project of the server.
    :ivar host: host of its process.
    :ivar process: identifier of the process; only compared for equality.
    :ivar used: microseconds of CPU time of this process that are charged.
    :ivar at: time of the last charge, seconds of the epoch.
    """

    project: str
    host: str
    process: str
    used: int
    at: float


@dataclasses.dataclass(frozen=True, slots=True)
class SpendingRecords:
    """Groups with spending rates, and spent units.

    :ivar groups: project, name, rate and count of each group.
    :ivar spent: units of :mod:`.shares.spending` by account of a user.
    :ivar meters: charged CPU time of servers, by UUID.
    :ivar version: number of writes.
    """

    groups: Sequence[tuple[str, str, float, int]]
    spent: Mapping[str, int]
    meters: Mapping[str, ServerMeter]
    version: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Leader:
    """The service process that leads: only the leader changes requests.

    :ivar epoch: > 0, larger with every takeover; 0 if no process ever led.
    :ivar holder: name of the process; '' if the last leader returned the
        lease.
    :ivar since: last renewal of the lease, seconds of the epoch of time.
    """

    epoch: int = 0
    holder: str = ''
    since: float = 0.0

    @property
    def host(self) -> str:
        """Return the host of the leader; '' without a leader."""
        return self.holder.rpartition(':')[0]


def compact_json(content: object) -> str:
    """Return content as JSON without spaces."""
    return json.dumps(content, separators=(',', ':'))


def request_columns(record: RequestRecord) -> dict[str, Any]:
    """Return the columns of a request."""
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
        'wanted': _request_content_json(request),
        'state': request.state.value,
        'version': request.version,
        'changed_at': record.changed_at,
        'hosts': json.dumps(record.hosts),
        'stage': 0,
        'stage_at': record.changed_at,
        'first_turn': request.first,
        'flavor': request.flavor or None,
        **hold_columns(request.hold),
        **reason_columns(record.why),
    }


def hold_columns(hold: request_model.Hold | None) -> dict[str, Any]:
    """Return the columns of a hold; all ``None`` without a hold."""
    return {
        'held_by': hold and hold.by.value,
        'held_at': hold and hold.since,
        'held_why': hold and hold.text,
    }


def _parse_hold(row: Mapping[str, Any]) -> request_model.Hold | None:
    """Return the hold of a row; ``None`` without a hold."""
    if row['held_by'] is None:
        return None
    by, at = (
        request_model.Holder(row['held_by']),
        _finite_number(row['held_at']),
    )
    return request_model.Hold(by, at, row['held_why'])


def preemptible_servers(
    open_requests: Iterable[RequestRecord],
) -> frozenset[str]:
    """Return the UUIDs of preemptible servers; the newest request of each
    server decides.

    :param open_requests: records of requests, the oldest first.
    """
    newest = request_model.newest_by_server(
        each.request for each in open_requests
    )
    return frozenset(
        server for server, each in newest.items() if each.is_preemptible
    )


def reason_columns(why: reason.Why) -> dict[str, Any]:
    """Return the columns of a reason."""
    return {
        'reason': why.reason.value,
        'subject': why.subject,
        'numbers': json.dumps(why.numbers),
    }


def reason_parameters(
    request: request_model.Request,
    why: reason.Why,
    stage: int,
    begins_at: float,
) -> dict[str, Any]:
    """Return the parameters of :func:`.tables.update_reasons` for one request.

    :param stage: number of events before this event.
    :param begins_at: begin of this event, seconds of the epoch.
    """
    return {
        'stage': stage,
        'stage_at': begins_at,
        'its_uuid': request.uuid,
        'its_state': request.state.value,
        'its_version': request.version,
        **reason_columns(why),
    }


class RowCache:
    """Cache of the records of the rows that were last read.

    Most rows, and so their records, do not change between cycles.
    """

    def __init__(self) -> None:
        self._by_uuid: dict[str, tuple[tuple[Any, ...], RequestRecord]] = {}

    def records(
        self, names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]
    ) -> list[RequestRecord]:
        """Return the records of rows, in the order of the rows.

        :param names: names of the columns.
        """
        key = names.index('uuid')
        found, known = {}, self._by_uuid
        for row in rows:
            seen = known.get(row[key])
            if seen is None or seen[0] != row:
                record = read_row(dict(zip(names, row, strict=True)))
                seen = (row, record)
            found[row[key]] = seen
        # A small result is a query for other states: it only adds to the
        # cache.
        if 2 * len(found) < len(known):
            known.update(found)
        else:
            self._by_uuid = found
        return [record for _, record in found.values()]


def read_row(row: Mapping[str, Any]) -> RequestRecord:
    """Return the record of a row; its ``fault`` is set if the row cannot be
    read.
    """
    try:
        return parse_row(row)
    except Exception as error:  # noqa: BLE001 - other rows are read
        return _record_of_unreadable_row(row, error)


def _record_of_unreadable_row(
    row: Mapping[str, Any], error: Exception
) -> RequestRecord:
    """Return the record of an unreadable row, with the fields that are
    readable.
    """
    uuid, state, origin = str(row['uuid']), row['state'], row['origin']
    states = {each.value: each for each in request_model.State}
    request = request_model.Request(
        uuid,
        str(row['project']),
        str(row['owner']),
        (uuid,),
        request_model.Demand(()),
        _number_or_zero(row['asked_at']),
        request_model.Origin.UNSHELVE
        if origin == request_model.Origin.UNSHELVE.value
        else request_model.Origin.BUILD,
        state=states.get(state, request_model.State.FAILED),
        version=row['version'],
    )
    why = reason.why(reason.Reason.QUARANTINED, again_s=_AGAIN_S)
    return RequestRecord(
        request,
        row['cast_uuid'],
        why,
        _number_or_zero(row['changed_at']),
        parse_hosts(row['hosts']),
        fault=error,
    )


def _finite_number(value: object) -> float:
    """Return a finite number.

    :raises TypeError: if the value is not a finite number.
    """
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError('a time must be a number')
    return value


def _optional_time(value: object) -> float | None:
    """Return a time; ``None`` for ``None``."""
    return None if value is None else _finite_number(value)


def _optional_number(value: object) -> int | None:
    """Return a whole number; ``None`` for ``None``."""
    return None if value is None else int(_finite_number(value))


def _number_or_zero(value: object) -> float:
    """Return a finite number; 0 for other values."""
    try:
        return _finite_number(value)
    except TypeError:
        return 0.0


def parse_hosts(written: str | None) -> tuple[str, ...]:
    """Return stored names of hosts; empty if they cannot be read, because
    Placement has them too.
    """
    try:
        return tuple(map(str, json.loads(written))) if written else ()
    except exception.UNREADABLE:
        return ()


def parse_row(row: Mapping[str, Any]) -> RequestRecord:
    """Return the record of a row.

    :raises Exception: if the row cannot be read.
    """
    servers, names, demand, group = _parse_request_content(row['wanted'])
    request = request_model.Request(
        uuid=row['uuid'],
        project=row['project'],
        user=row['owner'],
        servers=servers,
        demand=demand,
        asked_at=_finite_number(row['asked_at']),
        origin=request_model.Origin(row['origin']),
        group=group,
        expires_at=_optional_time(row['expires_at']),
        band=request_model.Band(row['band']),
        leaves_by=eviction.EvictionAction(row['leaves_by'])
        if row['leaves_by']
        else None,
        time_limit_s=_optional_time(row['time_limit_s']),
        extended_s=_finite_number(row['extended_s']),
        hold=_parse_hold(row),
        first=_optional_number(row['first_turn']),
        flavor=row['flavor'] or '',
        names=names,
        state=request_model.State(row['state']),
        version=row['version'],
    )
    return RequestRecord(
        request,
        row['cast_uuid'],
        _stored_reason(row),
        _finite_number(row['changed_at']),
        parse_hosts(row['hosts']),
        _parse_room(row['room']),
    )


def _stored_reason(row: Mapping[str, Any]) -> reason.Why:
    """Return the reason that the owner sees; ``NOT_PLANNED`` if it cannot be
    read.
    """
    try:
        return parse_reason(row)
    except (exception.BadReason, *exception.UNREADABLE):
        return reason.why(reason.Reason.NOT_PLANNED)


def _parse_room(written: str | None) -> ReservedRoom | None:
    """Return reserved room; ``None`` if it cannot be read: then its evictions
    are cancelled, and the request waits.
    """
    if written is None:
        return None
    try:
        found = json.loads(written)
        return ReservedRoom(
            tuple(map(str, found['hosts'])),
            tuple(map(str, found['leaving'])),
            float(found['at']),
            float(found['until']),
        )
    except exception.UNREADABLE:
        return None


def parse_reason(row: Mapping[str, Any]) -> reason.Why:
    """Return the reason in the columns of a row."""
    return _cached_reason(row['reason'], row['subject'], row['numbers'])


@functools.lru_cache(_ROWS)
def _cached_reason(token: str, subject: str, numbers: str) -> reason.Why:
    """Return a reason of its stored parts; results are cached."""
    return reason.Why(
        reason.Reason(token),
        subject,
        tuple((name, number) for name, number in json.loads(numbers)),
    )


@functools.lru_cache(_ROWS)
def _parse_request_content(
    written: str,
) -> tuple[
    tuple[str, ...],
    tuple[str, ...],
    request_model.Demand,
    request_model.Group | None,
]:
    """Return servers, their names, demand and group of a request; results are
    cached.
    """
    wanted = json.loads(written)
    return (
        tuple(wanted['servers']),
        tuple(map(str, wanted['names'])),
        _parse_demand(wanted['demand']),
        _parse_group(wanted['group']),
    )


def _request_content_json(request: request_model.Request) -> str:
    """Return servers, their names, demand and group of a request as JSON."""
    demand, group = request.demand, request.group
    return json.dumps(
        {
            'servers': request.servers,
            'names': request.names,
            'demand': _demand_json(demand),
            'group': group and [group.uuid, group.rule.value, group.per_host],
        },
        separators=(',', ':'),
    )


def _demand_json(demand: request_model.Demand) -> dict[str, Any]:
    """Return the JSON form of a demand."""
    fallbacks = demand.fallbacks
    return {
        'amounts': demand.amounts,
        'required': sorted(demand.required),
        'forbidden': sorted(demand.forbidden),
        'zone': demand.zone,
        'aggregates': [sorted(each) for each in demand.aggregates],
        'host': demand.host,
        'without': sorted(demand.without),
        'fallbacks': fallbacks and [_demand_json(each) for each in fallbacks],
    }


def _parse_demand(written: Mapping[str, Any]) -> request_model.Demand:
    """Parse a demand from its stored JSON."""
    fallbacks = written['fallbacks']
    return request_model.Demand(
        amounts=tuple(
            (str(name), _checked_amount(amount))
            for name, amount in written['amounts']
        ),
        required=frozenset(written['required']),
        forbidden=frozenset(written['forbidden']),
        zone=written['zone'],
        aggregates=tuple(frozenset(each) for each in written['aggregates']),
        host=written['host'],
        without=frozenset(written['without']),
        fallbacks=None
        if fallbacks is None
        else tuple(map(_parse_demand, fallbacks)),
    )


def _checked_amount(value: object) -> int:
    """Return an amount.

    :raises ValueError: if it is not a whole number above 0.
    """
    if not isinstance(value, int) or not 0 < value <= request_model.LARGEST:
        raise ValueError('an amount must be a whole number above 0')
    return value


def _parse_group(written: list[Any] | None) -> request_model.Group | None:
    """Parse a server group from its stored JSON; ``None`` without a group."""
    if written is None:
        return None
    uuid, rule, per_host = written
    return request_model.Group(uuid, request_model.Rule(rule), per_host)
