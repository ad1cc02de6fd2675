# SPDX-License-Identifier: Apache-2.0

"""The store of messages, requests and the leader, which survives every
process.

Correctness does not depend on a lease. Each takeover creates a new epoch. Each
statement that changes a request names the epoch of the leader and the version
of the request that its decision used. So a deposed leader, or a decision based
on an old version, changes nothing. A statement that an old leader began before
the takeover may still end after it: then the decision of the new leader on
that request is outdated.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import json
import pathlib
from typing import Any
from typing import NoReturn

import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster import pace
from nova_fairness.cluster.store import charges as charges_module
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import events as events_module
from nova_fairness.cluster.store import leaves as leaves_module
from nova_fairness.cluster.store import led
from nova_fairness.cluster.store import market as market_module
from nova_fairness.cluster.store import nodes as nodes_module
from nova_fairness.cluster.store import owned
from nova_fairness.cluster.store import plans as plans_module
from nova_fairness.cluster.store import pledges as pledges_module
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import risks as risks_module
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import servers as servers_module
from nova_fairness.cluster.store import tables
from nova_fairness.cluster.store import waits as waits_module
from nova_fairness.model import cast as cast_module
from nova_fairness.model import reason as reason_module
from nova_fairness.model import request as request_model

_CASTS, _REQUESTS, _LEADERS = tables.CASTS, tables.REQUESTS, tables.LEADERS
_LEDGER, _SHARES, _PROMISES = tables.LEDGER, tables.SHARES, tables.PROMISES
_NEW = reason_module.why(reason_module.Reason.NOT_PLANNED)
_LEADERS_KEPT = 1000

_News = tuple[request_model.Request, reason_module.Why]
Changed = Callable[[request_model.Request, reason_module.Why, float], None]
"""Listener for new requests and new states; its arguments are request, reason
and time.
"""
_FINAL = sorted(each.value for each in request_model.FINAL)
_SETTLED = sorted({request_model.State.ACTIVE.value, *_FINAL})


class Store:
    """The store in one database; threads may share it.

    :param engine: database with tables of this version.
    :param sealer: encrypts messages.
    :raises SchemaMismatch: if the tables are not those of this version.
    :ivar servers: servers of requests.
    :ivar events: past events of requests.
    :ivar waits: waits of requests, and their percentiles.
    :ivar leaves: evictions.
    :ivar risks: warnings of servers at risk of eviction.
    :ivar charges: charges of the ledger.
    :ivar nodes: hosts between batch system and cloud.
    :ivar market: groups with spending rates, and prices.
    :ivar plans: migration plans.
    :ivar pledges: use and shares of groups in the batch system.
    """

    def __init__(self, engine: sa.Engine, sealer: sealing.Sealer) -> None:
        with database.translate_errors():
            schema.check_revision(engine)
        self._tables = database.Tables(engine)
        self._sealer = sealer
        self._changed: Changed = lambda *_: None
        self._known = records.RowCache()
        rows, leads = self._tables, self._check_leads
        self._settings = owned.OwnerTable(rows, tables.SETTINGS, leads)
        self.servers = servers_module.ServerTable(rows)
        self.events = events_module.EventTable(rows)
        self.waits = waits_module.WaitTable(rows)
        self.leaves = leaves_module.EvictionTable(rows, leads)
        self.risks = risks_module.RiskTable(rows, leads)
        self.charges = charges_module.ChargeTable(rows, leads)
        self.nodes = nodes_module.BorderHostTable(rows, leads)
        self.pledges = pledges_module.PledgeTable(rows, self._replace_row)
        self.market = market_module.MarketTables(
            rows, self._replace_row, leads
        )
        self.plans = plans_module.PlanTable(rows, leads)

    def pseudonym(self, *parts: str) -> str:
        """Return a name that reveals nothing about its parts; see
        :meth:`.Sealer.pseudonym`.
        """
        return self._sealer.pseudonym(*parts)

    def pseudonyms(self, *parts: str) -> list[str]:
        """Return one pseudonym for each key; see
        :meth:`.Sealer.pseudonyms`.
        """
        return self._sealer.pseudonyms(*parts)

    def set_listener(self, listener: Changed) -> None:
        """Set the listener that is called after each change by this object."""
        self._changed = led.log_listener_errors(listener)

    def store_message(self, cast: cast_module.Cast) -> bool:
        """Store a message; when this returns, it is safe on disk.

        MariaDB accepts at most a tenth of its redo log in one row (9.6 MiB by
        default), PostgreSQL 1 GB. Messages are compressed before.

        :returns: ``False`` if the message was stored before, even if its
            content was deleted since.
        """
        return self.store_messages([cast])[0]

    def store_messages(self, casts: Sequence[cast_module.Cast]) -> list[bool]:
        """Store messages with few writes to the disk.

        :returns: result of :meth:`store_message` for each message.
        :raises StoreError: if a message cannot be stored; others may be
            stored.
        """
        rows = [
            {
                'uuid': cast.uuid,
                'method': cast.method,
                'received_at': cast.received_at,
                'sealed': self._sealer.seal(cast),
            }
            for cast in casts
        ]
        new: list[bool] = []
        for batch in database.batches(rows, 'sealed'):
            # If one row exists, none was written: each row is tried alone.
            if self._tables.insert(_CASTS, *batch):
                new += [True] * len(batch)
            elif len(batch) == 1:
                new.append(False)
            else:
                new += [self._tables.insert(_CASTS, row) for row in batch]
        return new

    def read_message(self, uuid: str) -> cast_module.Cast | None:
        """Return a message; ``None`` if it is unknown or its content was
        deleted.

        :raises SealBroken: if no key decrypts it.
        """
        rows = self._tables.select(
            sa.select(_CASTS).where(_CASTS.c.uuid == uuid)
        )
        if not rows or rows[0]['sealed'] is None:
            return None
        row = rows[0]
        return self._sealer.unseal(
            row['uuid'], row['method'], row['received_at'], row['sealed']
        )

    def messages_without_request(
        self, limit: int, skipped: int = 0
    ) -> list[str]:
        """Return the UUIDs of messages without a request, the oldest first.

        :param limit: largest number of messages.
        :param skipped: number of oldest messages to skip.
        """
        known = sa.exists().where(_REQUESTS.c.cast_uuid == _CASTS.c.uuid)
        query = (
            sa.select(_CASTS.c.uuid)
            .where(~known, _CASTS.c.kept)
            .order_by(_CASTS.c.received_at, _CASTS.c.uuid)
            .limit(limit)
            .offset(skipped)
        )
        return [row['uuid'] for row in self._tables.select(query)]

    def delete_message(self, uuid: str) -> None:
        """Delete the content of a message; its UUID remains, so that a second
        delivery is recognized.
        """
        self._tables.update(
            sa.update(_CASTS).where(_CASTS.c.uuid == uuid).values(sealed=None)
        )

    def reseal_messages(self, after: str, limit: int) -> str | None:
        """Encrypt messages again with the first key, in the order of their
        UUIDs.

        :param after: result of the previous call, '' in the first call.
        :param limit: largest number of messages.
        :returns: last UUID; ``None`` if no message remains.
        :raises SealBroken: if no key decrypts a message.
        """
        query = (
            sa.select(_CASTS.c.uuid, _CASTS.c.sealed)
            .where(_CASTS.c.uuid > after, _CASTS.c.kept)
            .order_by(_CASTS.c.uuid)
            .limit(limit)
        )
        last = None
        for row in self._tables.select(query):
            last = row['uuid']
            # Only an unchanged row: its content may have been deleted
            # meanwhile.
            same = (_CASTS.c.uuid == last) & (_CASTS.c.sealed == row['sealed'])
            renewed = self._sealer.reseal(row['sealed'])
            self._tables.update(
                sa.update(_CASTS).where(same).values(sealed=renewed)
            )
        return last

    def add_request(
        self,
        request: request_model.Request,
        cast_uuid: str,
        now: float,
        why: reason_module.Why = _NEW,
    ) -> bool:
        """Add a request that was read from a message.

        :param now: seconds of the epoch.
        :param why: reason that its owner sees.
        :returns: ``False`` if the request exists already.
        """
        record = records.RequestRecord(request, cast_uuid, why, now)
        self.servers.add(request)
        added = self._tables.insert(_REQUESTS, records.request_columns(record))
        if added:
            self._changed(request, why, now)
        return added

    def requests(
        self, states: Collection[request_model.State]
    ) -> list[records.RequestRecord]:
        """Return the requests in some states, the oldest first."""
        query = (
            sa.select(_REQUESTS)
            .where(_REQUESTS.c.state.in_([each.value for each in states]))
            .order_by(_REQUESTS.c.asked_at, _REQUESTS.c.uuid)
        )
        return self._known.records(*self._tables.select_tuples(query))

    def page_of_requests(
        self,
        project: str | None,
        wanted: request_model.RequestFilter,
        after: tuple[float, str] | None,
        limit: int,
    ) -> list[records.RequestRecord]:
        """Return one page of all requests, including ended ones, the oldest
        first.

        :param project: project of the requests; ``None`` for all.
        :param wanted: conditions on the requests.
        :param after: time and UUID of the last request of the previous page;
            ``None`` for the first page.
        :param limit: largest number of requests.
        """
        known = _REQUESTS.c
        query = sa.select(_REQUESTS).where(*_filter_conditions(wanted))
        if wanted.server is not None:
            uuids = self.servers.requests_of_server(wanted.server)
            query = query.where(known.uuid.in_(uuids))
        if project is not None:
            query = query.where(known.project == project)
        if after is not None:
            at, uuid = after
            is_later = sa.and_(known.asked_at == at, known.uuid > uuid)
            # The first condition alone lets the database start within the
            # index.
            query = query.where(
                known.asked_at >= at, sa.or_(known.asked_at > at, is_later)
            )
        order = (known.asked_at, known.uuid)
        rows = self._tables.select(query.order_by(*order).limit(limit))
        return [records.read_row(row) for row in rows]

    def ended_requests_with_room(
        self, since: float
    ) -> list[records.RequestRecord]:
        """Return ended requests that once had reserved room.

        :param since: earliest end, seconds of the epoch.
        """
        query = (
            sa.select(_REQUESTS)
            .where(
                _REQUESTS.c.state.in_(_FINAL),
                _REQUESTS.c.changed_at >= since,
                _REQUESTS.c.room.is_not(None),
            )
            .order_by(_REQUESTS.c.changed_at, _REQUESTS.c.uuid)
        )
        rows = self._tables.select(query)
        made = self._tables.build_objects(
            'requests', 'uuid', rows, records.parse_row
        )
        return [record for _, record in made]

    def settled_requests_with_message(
        self, limit: int, turn: int = 0
    ) -> list[records.RequestRecord]:
        """Return requests that run or have ended, and whose message is still
        stored.

        :param limit: largest number of requests; projects take turns.
        :param turn: number of the call; it determines which requests come
            first.
        """
        query = (
            sa.select(_REQUESTS.c.uuid, _REQUESTS.c.project)
            .join(_CASTS, _CASTS.c.uuid == _REQUESTS.c.cast_uuid)
            .where(_CASTS.c.kept, _REQUESTS.c.state.in_(_SETTLED))
            .order_by(_REQUESTS.c.changed_at, _REQUESTS.c.uuid)
        )
        rows = self._tables.select(query)
        # A request that fails each time must not always be the first of its
        # project.
        begin = turn % max(len(rows), 1)
        rows = rows[begin:] + rows[:begin]
        chosen = pace.interleave_by_owner(
            rows, lambda row: str(row['project'])
        )[:limit]
        places = {row['uuid']: n for n, row in enumerate(chosen)}
        wanted = sa.select(_REQUESTS).where(_REQUESTS.c.uuid.in_(places))
        found = map(records.read_row, self._tables.select(wanted))
        return sorted(found, key=lambda each: places[each.request.uuid])

    def remove_ended_requests(self, before: float, limit: int) -> int:
        """Remove ended requests, and rows of messages whose content was
        deleted.

        Requests whose message is still stored stay: they need a cleanup first.

        :param before: latest end, seconds of the epoch.
        :param limit: largest number of rows of each table.
        :returns: number of removed requests.
        """
        cast = sa.select(_CASTS.c.uuid).where(
            _CASTS.c.uuid == _REQUESTS.c.cast_uuid
        )
        ended = sa.select(_REQUESTS.c.uuid).where(
            _REQUESTS.c.state.in_(_FINAL),
            _REQUESTS.c.changed_at < before,
            ~cast.where(_CASTS.c.kept).exists(),
        )
        uuids = self._tables.select(ended.limit(limit))
        for kept in (self.servers, self.events, self.waits):
            kept.remove([row['uuid'] for row in uuids])
        removed = self._remove_rows(_REQUESTS, uuids)
        request = sa.exists().where(_REQUESTS.c.cast_uuid == _CASTS.c.uuid)
        alone = sa.select(_CASTS.c.uuid).where(
            ~_CASTS.c.kept, _CASTS.c.received_at < before, ~request
        )
        self._remove_rows(_CASTS, self._tables.select(alone.limit(limit)))
        return removed

    def _remove_rows(
        self, table: sa.Table, rows: Sequence[dict[str, Any]]
    ) -> int:
        """Remove rows of a table by their UUIDs, and return their number."""
        # Two statements: MariaDB cannot read the table that it deletes from.
        uuids = [row['uuid'] for row in rows]
        if uuids:
            self._tables.update(
                sa.delete(table).where(table.c.uuid.in_(uuids))
            )
        return len(uuids)

    def pop_unreadable_rows(self) -> dict[str, Exception]:
        """Return the errors of rows that could not be read since the last
        call, by name of the row.
        """
        return self._tables.pop_unreadable_rows()

    def request(self, uuid: str) -> records.RequestRecord | None:
        """Return a request; ``None`` if it is unknown."""
        rows = self._tables.select(
            sa.select(_REQUESTS).where(_REQUESTS.c.uuid == uuid)
        )
        return records.read_row(rows[0]) if rows else None

    def leader(self) -> records.Leader:
        """Return the leader with the newest epoch."""
        query = sa.select(_LEADERS).order_by(_LEADERS.c.epoch.desc()).limit(1)
        rows = self._tables.select(query)
        return records.Leader(**rows[0]) if rows else records.Leader()

    def database_time(self) -> float | None:
        """Return the time of the database, seconds of the epoch of time.

        :returns: ``None`` if the database uses the clock of this host.
        """
        return self._tables.server_time()

    def take_over(self, from_epoch: int, holder: str, now: float) -> int:
        """Become the leader.

        :param from_epoch: epoch of the deposed leader.
        :param holder: name of the process; '' returns the lease.
        :param now: seconds of the epoch of time.
        :returns: the new epoch.
        :raises Deposed: if another process took over from that leader.
        """
        epoch = from_epoch + 1
        if self.leader().epoch == from_epoch and self._tables.insert(
            _LEADERS, {'epoch': epoch, 'holder': holder, 'since': now}
        ):
            old = _LEADERS.c.epoch <= epoch - _LEADERS_KEPT
            self._tables.update(sa.delete(_LEADERS).where(old))
            return epoch
        raise exception.Deposed(
            f'epoch {from_epoch} is over: {self.leader().holder} leads now'
        )

    def renew_lease(self, epoch: int, now: float) -> None:
        """Renew the lease of the leader.

        :param epoch: epoch of the leader.
        :param now: seconds of the epoch of time; it must differ from the last
            renewal.
        :raises Deposed: if that leader no longer leads.
        """
        own = _LEADERS.c.epoch == epoch
        self._tables.update(sa.update(_LEADERS).where(own).values(since=now))
        self._check_leads(epoch)

    def step(
        self,
        request: request_model.Request,
        event: request_model.Event,
        epoch: int,
        why: reason_module.Why,
        now: float,
        hosts: Sequence[str] | None = None,
    ) -> request_model.Request:
        """Change a request to its next state.

        :param request: request as it was when the step was decided.
        :param event: what happens to the request.
        :param epoch: epoch of the leader that decided the step.
        :param why: reason that its owner sees.
        :param now: seconds of the epoch of time.
        :param hosts: new hosts, one per server; ``None`` for the old hosts.
        :returns: the changed request.
        :raises IllegalStep: if its state has no step for the event.
        :raises Outdated: if the stored request has another state or version.
        :raises Deposed: if that leader no longer leads.
        :raises StoreAway: if it is unknown whether the step was stored.
        """
        state = request_model.state_after(request.state, event)
        to = {} if hosts is None else {'hosts': json.dumps(list(hosts))}
        if not _is_within_event(request, event):
            self._copy_current_event(request, now, epoch)
        if event is request_model.Event.SEND:
            is_same = _is_unchanged(request, epoch)
            self.waits.store_wait_by_reason(request.uuid, now, is_same)
        changed = self._tables.update(
            _update_if_unchanged(request, epoch).values(
                state=state.value,
                version=request.version + 1,
                changed_at=now,
                **_next_stage_columns(now),
                **_wait_columns(event, now),
                **to,
                **records.reason_columns(why),
            )
        )
        if not changed:
            self._raise_outdated(request, epoch)
        if event is request_model.Event.RETURN:
            self.waits.remove([request.uuid])
        now_is = dataclasses.replace(
            request, state=state, version=request.version + 1
        )
        self._changed(now_is, why, now)
        return now_is

    def write_reasons(
        self,
        new_reasons: Iterable[tuple[request_model.Request, reason_module.Why]],
        epoch: int,
        now: float,
    ) -> None:
        """Write new reasons of requests; states and versions stay.

        :param new_reasons: requests and reasons; a request whose stored state
            or version differs is skipped.
        :param epoch: epoch of the leader.
        :param now: seconds of the epoch of time.
        :raises Deposed: if that leader no longer leads.
        """
        told = {request.uuid: (request, why) for request, why in new_reasons}
        rows, others = [], []
        for row in self._current_stages(told):
            request, why = told[row['uuid']]
            stage, at = row['stage'], row['stage_at']
            if row['reason'] != why.reason.value:
                others.append(request.uuid)
                stage, at = stage + 1, now
            rows.append(records.reason_parameters(request, why, stage, at))
        self.events.copy_current_events(
            others, now, tables.newest_epoch() == epoch
        )
        if rows:
            self._tables.update_each(tables.update_reasons(epoch), rows)
        if told:
            self._check_leads(epoch)

    def _current_stages(
        self, new_reasons: Mapping[str, _News]
    ) -> list[dict[str, Any]]:
        """Return the current events of requests whose stored state and version
        are unchanged.
        """
        known = _REQUESTS.c
        query = sa.select(
            known.uuid,
            known.state,
            known.version,
            known.reason,
            known.stage,
            known.stage_at,
        ).where(known.uuid.in_(new_reasons))
        return [
            row
            for row in self._tables.select(query)
            if row['state'] == new_reasons[row['uuid']][0].state.value
            and row['version'] == new_reasons[row['uuid']][0].version
        ]

    def _copy_current_event(
        self, request: request_model.Request, now: float, epoch: int
    ) -> None:
        """Copy the current event of a request into the history, because the
        event is about to end.
        """
        self.events.copy_current_events(
            [request.uuid], now, _is_unchanged(request, epoch)
        )

    def reserve_room(
        self,
        request: request_model.Request,
        room: records.ReservedRoom,
        epoch: int,
    ) -> None:
        """Store the reservation of a request; state and version stay.

        :raises Outdated: if the stored request has another state or version.
        :raises Deposed: if that leader no longer leads.
        """
        written = records.compact_json(dataclasses.asdict(room))
        promised = _update_if_unchanged(request, epoch).values(room=written)
        if not self._tables.update(promised):
            self._raise_outdated(request, epoch)

    def extend_time_limit(
        self, request: request_model.Request, by_s: float, epoch: int
    ) -> None:
        """Extend the time limit of a request; its version grows.

        :param by_s: length of the extension, in seconds, > 0.
        :raises Outdated: if the stored request has another state or version.
        :raises Deposed: if that leader no longer leads.
        """
        longer = _update_if_unchanged(request, epoch).values(
            extended_s=request.extended_s + by_s, version=request.version + 1
        )
        if not self._tables.update(longer):
            self._raise_outdated(request, epoch)

    def write_hold(
        self,
        request: request_model.Request,
        hold: request_model.Hold | None,
        expires_at: float | None,
        why: reason_module.Why,
        now: float,
        epoch: int,
    ) -> None:
        """Write or remove the hold of a request; its version grows.

        :param hold: the new hold; ``None`` for none.
        :param expires_at: new time at which the request expires.
        :param why: reason that its owner sees.
        :param now: seconds of the epoch of time.
        :raises Outdated: if the stored request has another state or version.
        :raises Deposed: if another process leads now.
        """
        self._copy_current_event(request, now, epoch)
        changed = _update_if_unchanged(request, epoch).values(
            version=request.version + 1,
            expires_at=expires_at,
            **_next_stage_columns(now),
            **records.hold_columns(hold),
            **records.reason_columns(why),
        )
        if not self._tables.update(changed):
            self._raise_outdated(request, epoch)
        now_is = dataclasses.replace(
            request,
            hold=hold,
            expires_at=expires_at,
            version=request.version + 1,
        )
        self._changed(now_is, why, now)

    def put_first(
        self, request: request_model.Request, first: int | None, epoch: int
    ) -> None:
        """Put a request before all others, or undo that; its version grows.

        :param first: number among requests that were put first; ``None``
            undoes it.
        :raises Outdated: if the stored request has another state or version.
        :raises Deposed: if another process leads now.
        """
        changed = _update_if_unchanged(request, epoch).values(
            version=request.version + 1, first_turn=first
        )
        if not self._tables.update(changed):
            self._raise_outdated(request, epoch)

    def read_ledger(self) -> records.UseRecords:
        """Return the decayed use of accounts."""
        row = self._tables.single_row(_LEDGER)
        return records.UseRecords(
            row['at'],
            json.loads(row['used']),
            row['version'],
            row['since'],
            json.loads(row['spent']),
        )

    def write_ledger(self, ledger: records.UseRecords, epoch: int) -> None:
        """Write the decayed use of accounts.

        :param ledger: new use, with the version that it was computed from.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises Outdated: if the stored ledger has another version.
        """
        self._replace_row(
            _LEDGER,
            ledger.version,
            epoch,
            at=ledger.at,
            used=records.compact_json(ledger.parts),
            since=ledger.since,
            spent=records.compact_json(ledger.spent),
        )

    def account_settings(self) -> records.AccountSettings:
        """Return the settings of accounts that callers changed while the
        service ran.
        """
        row = self._tables.single_row(_SHARES)
        accounts = {
            name: _parse_settings(given)
            for name, given in self._settings.read().items()
        }
        return records.AccountSettings(accounts, row['version'])

    def set_account_settings(
        self, settings: records.AccountSettings, epoch: int
    ) -> None:
        """Write settings of accounts.

        :param settings: new settings, with the version that they were computed
            from.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises Outdated: if the stored settings have another version.
        """
        self._replace_row(_SHARES, settings.version, epoch)
        written = {
            name: records.compact_json(own)
            for name, own in settings.accounts.items()
        }
        self._settings.write(self._settings.read(), written, epoch)

    def read_estimated_starts(self) -> records.PromisedStarts:
        """Return the estimated starts that owners saw, and the real starts."""
        row = self._tables.single_row(_PROMISES)
        try:
            kept = json.loads(row['kept'])
            promises, past = dict(kept['promises']), list(kept['past'])
        except exception.UNREADABLE as error:
            # They only rate estimates: new estimates are published anyway.
            self._tables.record_unreadable('promises', '1', error)
            promises, past = {}, []
        return records.PromisedStarts(promises, past, row['version'])

    def write_estimated_starts(
        self, estimates: records.PromisedStarts, epoch: int
    ) -> None:
        """Write the estimated starts that owners see.

        :param estimates: new content, with the version that it was computed
            from.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises Outdated: if the stored content has another version.
        """
        kept = {'promises': estimates.promises, 'past': estimates.past}
        self._replace_row(
            _PROMISES,
            estimates.version,
            epoch,
            kept=records.compact_json(kept),
        )

    def _replace_row(
        self, table: sa.Table, version: int, epoch: int, **values: Any
    ) -> None:
        """Change the single row of a table if its version is ``version``."""
        changed = self._tables.update(
            sa.update(table)
            .where(table.c.version == version, tables.newest_epoch() == epoch)
            .values(version=version + 1, **values)
        )
        if not changed:
            self._check_leads(epoch)
            raise exception.Outdated(
                f'table {table.name} is not written: it no longer has the'
                f' version {version}, from which the change was computed'
            )

    def _check_leads(self, epoch: int) -> None:
        """Check that an epoch is the newest.

        :raises Deposed: if a newer epoch exists.
        """
        leader = self.leader()
        if leader.epoch != epoch:
            raise exception.Deposed(
                f'epoch {epoch} is over: {leader.holder or "no process"} leads'
                ' now'
            )

    def _raise_outdated(
        self, request: request_model.Request, epoch: int
    ) -> NoReturn:
        """Raise the error for a change that matched no row."""
        self._check_leads(epoch)
        found = self.request(request.uuid)
        if found is None:
            present = 'gone'
        else:
            state, version = found.request.state, found.request.version
            present = f'{state.value} with version {version}'
        raise exception.Outdated(
            f'request {request.uuid} is not changed: it was'
            f' {request.state.value} with version {request.version} when this'
            f' change was decided, and is now {present}'
        )


def _filter_conditions(
    wanted: request_model.RequestFilter,
) -> list[sa.ColumnElement[bool]]:
    """Return the SQL conditions of a filter."""
    known = _REQUESTS.c
    found: list[sa.ColumnElement[bool]] = []
    # A condition that is always true makes databases miss the right index.
    if wanted.states != frozenset(request_model.State):
        found.append(known.state.in_([each.value for each in wanted.states]))
    if wanted.running is not None:
        runs = known.state == request_model.State.ACTIVE.value
        found.append(sa.or_(~runs, known.uuid.in_(wanted.running)))
    if wanted.user is not None:
        found.append(known.owner == wanted.user)
    if wanted.since is not None:
        found.append(known.asked_at >= wanted.since)
    if wanted.host is not None:
        name = json.dumps(wanted.host)
        found.append(known.hosts.contains(name, autoescape=True))
    if wanted.preemptible is not None:
        is_so = known.band == request_model.Band.PREEMPTIBLE.value
        found.append(is_so if wanted.preemptible else ~is_so)
    return found


def _is_within_event(
    request: request_model.Request, event: request_model.Event
) -> bool:
    """Return whether a step stays within one event: from reservation to the
    sent message.
    """
    return (
        request.state is request_model.State.RESERVED
        or event is request_model.Event.SENT
    )


def _is_unchanged(
    request: request_model.Request, epoch: int
) -> sa.ColumnElement[bool]:
    """Return the condition that a stored request is unchanged, and that the
    leader still leads.
    """
    return sa.and_(
        _REQUESTS.c.state == request.state.value,
        _REQUESTS.c.version == request.version,
        tables.newest_epoch() == epoch,
    )


def _next_stage_columns(now: float) -> dict[str, Any]:
    """Return the columns for the begin of a new event."""
    return {'stage': _REQUESTS.c.stage + 1, 'stage_at': now}


def _wait_columns(event: request_model.Event, now: float) -> dict[str, Any]:
    """Return the columns of a wait that an event ends or continues."""
    if event is request_model.Event.RETURN:
        return {'sent_at': None, 'waited_s': None}
    if event is not request_model.Event.SEND:
        return {}
    # A returned request keeps its age, but its message is newer.
    came_at = (
        sa.select(_CASTS.c.received_at)
        .where(_CASTS.c.uuid == _REQUESTS.c.cast_uuid)
        .scalar_subquery()
    )
    waited_s = sa.case((came_at > now, 0.0), else_=now - came_at)
    return {'sent_at': now, 'waited_s': waited_s}


def _parse_settings(text: str) -> Any:
    """Return the settings of an account; ``None`` if they cannot be read."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _update_if_unchanged(
    request: request_model.Request, epoch: int
) -> sa.Update:
    """Return a statement that changes a request only if it is unchanged and
    the leader still leads.
    """
    state = request.state.value
    return tables.update_if_unchanged(
        request.uuid, state, request.version, epoch
    )


def open_store(url: str, keys: pathlib.Path) -> Store:
    """Open the store at a URL with the keys of a file.

    :raises StoreAway: if the database does not answer.
    :raises SchemaMismatch: if the tables are not those of this version.
    :raises BadKeyFile: if the keys cannot be used.
    """
    return Store(database.open_engine(url), sealing.read_key_file(keys))
