# SPDX-License-Identifier: Apache-2.0

"""Messages, requests and the leader: state that must survive every process.

Nothing here trusts a lease. Taking over makes a new epoch. Every change of a
request names the epoch of the leader that decided it and the version that it
was decided on, in the statement that makes the change. A deposed leader, or a
decision on an outdated version, changes nothing. A statement of an old leader
that the database began before the takeover may still end after it: then the
new leader's own decision on that request is the one that is outdated.
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
"""Told of a request that was added or came into a state, why, and when."""
_FINAL = sorted(each.value for each in request_model.FINAL)
_SETTLED = sorted({request_model.State.ACTIVE.value, *_FINAL})


class Store:
    """The store on one database; safe to be used by threads.

    :param engine: with tables of this version.
    :param sealer: seals messages.
    :raises SchemaMismatch: if the tables are not those of this version.

    :ivar servers: of requests, by their UUIDs.
    :ivar events: of requests.
    :ivar waits: of requests, and their percentiles.
    :ivar leaves: servers that leave.
    :ivar risks: servers that are among the next to leave.
    :ivar charges: what was charged when.
    :ivar nodes: hosts between batch and cloud.
    :ivar market: groups with spending rates, and prices.
    :ivar plans: of moves.
    :ivar pledges: what is remembered of groups on the batch side.
    """

    def __init__(self, engine: sa.Engine, sealer: sealing.Sealer) -> None:
        with database.failures():
            schema.check(engine)
        self._tables = database.Tables(engine)
        self._sealer = sealer
        self._changed: Changed = lambda *_: None
        self._known = records.RowCache()
        rows, leads = self._tables, self._check_leads
        self._settings = owned.OwnerTable(rows, tables.SETTINGS, leads)
        self.servers = servers_module.ServerTable(rows)
        self.events = events_module.EventTable(rows)
        self.waits = waits_module.WaitTable(rows)
        self.leaves = leaves_module.Leaves(rows, leads)
        self.risks = risks_module.Risks(rows, leads)
        self.charges = charges_module.Charges(rows, leads)
        self.nodes = nodes_module.BorderHostTable(rows, leads)
        self.pledges = pledges_module.Pledges(rows, self._replace)
        self.market = market_module.MarketTables(rows, self._replace, leads)
        self.plans = plans_module.PlanTable(rows, leads)

    def opaque(self, *parts: str) -> str:
        """A name that says nothing to others; see :meth:`.Sealer.opaque`."""
        return self._sealer.opaque(*parts)

    def proofs(self, *parts: str) -> list[str]:
        """Such names for all keys; see :meth:`.Sealer.proofs`."""
        return self._sealer.proofs(*parts)

    def listen(self, changed: Changed) -> None:
        """Notify a listener of all changes through this object."""
        self._changed = led.safely(changed)

    def hold(self, cast: cast_module.Cast) -> bool:
        """Keep a message; when this returns, it is safe on disk.

        MariaDB takes at most a tenth of its redo log in one row (9.6 MiB by
        default), PostgreSQL 1 GB. Messages are compressed before.

        :returns: ``False`` if it is known already, whatever became of it.
        """
        return self.hold_all([cast])[0]

    def hold_all(self, casts: Sequence[cast_module.Cast]) -> list[bool]:
        """Keep messages, many with one write to the disk.

        :returns: for each what :meth:`hold` gives.
        :raises StoreError: if one of them cannot be kept; others may be.
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
            # Where one is known, none was written: each is tried alone.
            if self._tables.insert(_CASTS, *batch):
                new += [True] * len(batch)
            elif len(batch) == 1:
                new.append(False)
            else:
                new += [self._tables.insert(_CASTS, row) for row in batch]
        return new

    def cast(self, uuid: str) -> cast_module.Cast | None:
        """A message; ``None`` if it is unknown or was forgotten.

        :raises SealBroken: if no key opens it.
        """
        rows = self._tables.select(
            sa.select(_CASTS).where(_CASTS.c.uuid == uuid)
        )
        if not rows or rows[0]['sealed'] is None:
            return None
        row = rows[0]
        return self._sealer.open(
            row['uuid'], row['method'], row['received_at'], row['sealed']
        )

    def unread(self, most: int, skipped: int = 0) -> list[str]:
        """UUIDs of messages without a request, the oldest first.

        :param most: how many at most.
        :param skipped: how many of the oldest are left out.
        """
        known = sa.exists().where(_REQUESTS.c.cast_uuid == _CASTS.c.uuid)
        query = (
            sa.select(_CASTS.c.uuid)
            .where(~known, _CASTS.c.kept)
            .order_by(_CASTS.c.received_at, _CASTS.c.uuid)
            .limit(most)
            .offset(skipped)
        )
        return [row['uuid'] for row in self._tables.select(query)]

    def forget(self, uuid: str) -> None:
        """Throw a message away, and remember that it was there."""
        self._tables.update(
            sa.update(_CASTS).where(_CASTS.c.uuid == uuid).values(sealed=None)
        )

    def reseal(self, after: str, most: int) -> str | None:
        """Seal messages with the first key, in the order of their UUIDs.

        :param after: the UUID that was given last, '' at first.
        :param most: how many at most.
        :returns: the last UUID; ``None`` if all are sealed.
        :raises SealBroken: if no key opens one.
        """
        query = (
            sa.select(_CASTS.c.uuid, _CASTS.c.sealed)
            .where(_CASTS.c.uuid > after, _CASTS.c.kept)
            .order_by(_CASTS.c.uuid)
            .limit(most)
        )
        last = None
        for row in self._tables.select(query):
            last = row['uuid']
            # Only what was read: it may have been forgotten meanwhile.
            same = (_CASTS.c.uuid == last) & (_CASTS.c.sealed == row['sealed'])
            renewed = self._sealer.renew(row['sealed'])
            self._tables.update(
                sa.update(_CASTS).where(same).values(sealed=renewed)
            )
        return last

    def add(
        self,
        request: request_model.Request,
        cast_uuid: str,
        now: float,
        why: reason_module.Why = _NEW,
    ) -> bool:
        """Add a request that was read from a message.

        :param now: seconds of the epoch.
        :param why: what its owner is told.
        :returns: ``False`` if it is known already.
        """
        record = records.RequestRecord(request, cast_uuid, why, now)
        self.servers.add(request)
        added = self._tables.insert(_REQUESTS, records.row_of(record))
        if added:
            self._changed(request, why, now)
        return added

    def requests(
        self, states: Collection[request_model.State]
    ) -> list[records.RequestRecord]:
        """The requests in some states, the oldest first."""
        query = (
            sa.select(_REQUESTS)
            .where(_REQUESTS.c.state.in_([each.value for each in states]))
            .order_by(_REQUESTS.c.asked_at, _REQUESTS.c.uuid)
        )
        return self._known.records(*self._tables.read(query))

    def listed(
        self,
        project: str | None,
        wanted: request_model.RequestFilter,
        after: tuple[float, str] | None,
        most: int,
    ) -> list[records.RequestRecord]:
        """A page of the requests of all times, the oldest first.

        :param project: to which they belong; ``None`` for all.
        :param after: when the last one of the page before was asked for, and
            its UUID; ``None`` for the first page.
        :param most: how many at most.
        """
        known = _REQUESTS.c
        query = sa.select(_REQUESTS).where(*_conditions(wanted))
        if wanted.server is not None:
            uuids = self.servers.requests(wanted.server)
            query = query.where(known.uuid.in_(uuids))
        if project is not None:
            query = query.where(known.project == project)
        if after is not None:
            at, uuid = after
            is_later = sa.and_(known.asked_at == at, known.uuid > uuid)
            # The first one alone lets the database begin in the index.
            query = query.where(
                known.asked_at >= at, sa.or_(known.asked_at > at, is_later)
            )
        order = (known.asked_at, known.uuid)
        rows = self._tables.select(query.order_by(*order).limit(most))
        return [records.read(row) for row in rows]

    def ended_with_room(self, since: float) -> list[records.RequestRecord]:
        """Requests that ended and that others left, or were to leave, for.

        :param since: seconds of the epoch; those that ended before are left
            out.
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
        made = self._tables.made('requests', 'uuid', rows, records.record_of)
        return [record for _, record in made]

    def left_over(
        self, most: int, turn: int = 0
    ) -> list[records.RequestRecord]:
        """Requests that still have their message and do not need it any more.

        :param most: how many at most; projects take turns.
        :param turn: another number lets others be first.
        """
        query = (
            sa.select(_REQUESTS.c.uuid, _REQUESTS.c.project)
            .join(_CASTS, _CASTS.c.uuid == _REQUESTS.c.cast_uuid)
            .where(_CASTS.c.kept, _REQUESTS.c.state.in_(_SETTLED))
            .order_by(_REQUESTS.c.changed_at, _REQUESTS.c.uuid)
        )
        rows = self._tables.select(query)
        # Those that fail each time are not the first of their project always.
        begin = turn % max(len(rows), 1)
        rows = rows[begin:] + rows[:begin]
        chosen = pace.in_turn(rows, lambda row: str(row['project']))[:most]
        places = {row['uuid']: n for n, row in enumerate(chosen)}
        wanted = sa.select(_REQUESTS).where(_REQUESTS.c.uuid.in_(places))
        found = map(records.read, self._tables.select(wanted))
        return sorted(found, key=lambda each: places[each.request.uuid])

    def remove_ended(self, before: float, most: int) -> int:
        """Remove requests that ended, and what is known of their messages.

        Those whose message is still kept stay: they have to be cleaned up.

        :param before: seconds of the epoch; later ones stay.
        :param most: how many of each table at most.
        :returns: number of requests.
        """
        cast = sa.select(_CASTS.c.uuid).where(
            _CASTS.c.uuid == _REQUESTS.c.cast_uuid
        )
        ended = sa.select(_REQUESTS.c.uuid).where(
            _REQUESTS.c.state.in_(_FINAL),
            _REQUESTS.c.changed_at < before,
            ~cast.where(_CASTS.c.kept).exists(),
        )
        uuids = self._tables.select(ended.limit(most))
        for kept in (self.servers, self.events, self.waits):
            kept.remove([row['uuid'] for row in uuids])
        removed = self._remove(_REQUESTS, uuids)
        request = sa.exists().where(_REQUESTS.c.cast_uuid == _CASTS.c.uuid)
        alone = sa.select(_CASTS.c.uuid).where(
            ~_CASTS.c.kept, _CASTS.c.received_at < before, ~request
        )
        self._remove(_CASTS, self._tables.select(alone.limit(most)))
        return removed

    def _remove(self, table: sa.Table, rows: Sequence[dict[str, Any]]) -> int:
        # Two statements: MariaDB reads no table that it deletes from.
        uuids = [row['uuid'] for row in rows]
        if uuids:
            self._tables.update(
                sa.delete(table).where(table.c.uuid.in_(uuids))
            )
        return len(uuids)

    def unreadable(self) -> dict[str, Exception]:
        """Rows that could not be read since this was asked last, and why."""
        return self._tables.unread()

    def request(self, uuid: str) -> records.RequestRecord | None:
        """One request; ``None`` if it is unknown."""
        rows = self._tables.select(
            sa.select(_REQUESTS).where(_REQUESTS.c.uuid == uuid)
        )
        return records.read(rows[0]) if rows else None

    def leader(self) -> records.Leader:
        """Say who leads."""
        query = sa.select(_LEADERS).order_by(_LEADERS.c.epoch.desc()).limit(1)
        rows = self._tables.select(query)
        return records.Leader(**rows[0]) if rows else records.Leader()

    def time(self) -> float | None:
        """The time of the database, seconds of the epoch of time.

        :returns: ``None`` if it has no clock but that of this host.
        """
        return self._tables.time()

    def take_over(self, from_epoch: int, holder: str, now: float) -> int:
        """Lead from now on.

        :param from_epoch: of the leader that is deposed.
        :param holder: name of the process; '' gives the lease back.
        :param now: seconds of the epoch of time.
        :returns: the new epoch.
        :raises Deposed: if another took over from that leader.
        """
        epoch = from_epoch + 1
        if self.leader().epoch == from_epoch and self._tables.insert(
            _LEADERS, {'epoch': epoch, 'holder': holder, 'since': now}
        ):
            old = _LEADERS.c.epoch <= epoch - _LEADERS_KEPT
            self._tables.update(sa.delete(_LEADERS).where(old))
            return epoch
        raise exception.Deposed(
            f'epoch {from_epoch} is over: {self.leader().holder} leads'
        )

    def renew(self, epoch: int, now: float) -> None:
        """Say that a leader works still.

        :param epoch: of the leader.
        :param now: seconds of the epoch of time, others than before.
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
        """Lead a request into its next state.

        :param request: as it was when this was decided.
        :param event: what happens to it.
        :param epoch: of the leader that decided it.
        :param why: what its owner is told.
        :param now: seconds of the epoch of time.
        :param hosts: where it goes, one per server; ``None``: as before.
        :returns: the request as it is now.
        :raises IllegalStep: if the event leads nowhere from its state.
        :raises Outdated: if it is no longer in that state and version.
        :raises Deposed: if that leader no longer leads.
        :raises StoreAway: if it is not known whether it was done.
        """
        state = request_model.after(request.state, event)
        to = {} if hosts is None else {'hosts': json.dumps(list(hosts))}
        if not _passes(request, event):
            self._keep(request, now, epoch)
        if event is request_model.Event.SEND:
            is_same = _is_same(request, epoch)
            self.waits.keep(request.uuid, now, is_same)
        changed = self._tables.update(
            _guarded(request, epoch).values(
                state=state.value,
                version=request.version + 1,
                changed_at=now,
                **_next_stage(now),
                **_wait(event, now),
                **to,
                **records.columns_of(why),
            )
        )
        if not changed:
            self._explain(request, epoch)
        if event is request_model.Event.RETURN:
            self.waits.remove([request.uuid])
        now_is = dataclasses.replace(
            request, state=state, version=request.version + 1
        )
        self._changed(now_is, why, now)
        return now_is

    def tell(
        self,
        news: Iterable[tuple[request_model.Request, reason_module.Why]],
        epoch: int,
        now: float,
    ) -> None:
        """Tell owners other reasons; states and versions stay.

        :param news: requests and reasons; a request that is no longer in its
            state and version is told nothing.
        :param now: seconds of the epoch of time.
        :raises Deposed: if that leader no longer leads.
        """
        told = {request.uuid: (request, why) for request, why in news}
        rows, others = [], []
        for row in self._stages(told):
            request, why = told[row['uuid']]
            stage, at = row['stage'], row['stage_at']
            if row['reason'] != why.reason.value:
                others.append(request.uuid)
                stage, at = stage + 1, now
            rows.append(records.told(request, why, stage, at))
        self.events.keep(others, now, tables.newest_epoch() == epoch)
        if rows:
            self._tables.update_each(tables.tell_requests(epoch), rows)
        if told:
            self._check_leads(epoch)

    def _stages(self, told: Mapping[str, _News]) -> list[dict[str, Any]]:
        """Events of now of requests that are in their state and version."""
        known = _REQUESTS.c
        query = sa.select(
            known.uuid,
            known.state,
            known.version,
            known.reason,
            known.stage,
            known.stage_at,
        ).where(known.uuid.in_(told))
        return [
            row
            for row in self._tables.select(query)
            if row['state'] == told[row['uuid']][0].state.value
            and row['version'] == told[row['uuid']][0].version
        ]

    def _keep(
        self, request: request_model.Request, now: float, epoch: int
    ) -> None:
        """Keep the event of a request that is over."""
        self.events.keep([request.uuid], now, _is_same(request, epoch))

    def promise_room(
        self,
        request: request_model.Request,
        room: records.ReservedRoom,
        epoch: int,
    ) -> None:
        """Promise room to a request; state and version stay.

        :raises Outdated: if it is no longer in that state and version.
        :raises Deposed: if that leader no longer leads.
        """
        written = records.short(dataclasses.asdict(room))
        promised = _guarded(request, epoch).values(room=written)
        if not self._tables.update(promised):
            self._explain(request, epoch)

    def extend(
        self, request: request_model.Request, by_s: float, epoch: int
    ) -> None:
        """Let servers of a request run longer; state and version go on.

        :param by_s: seconds, > 0.
        :raises Outdated: if it is no longer in that state and version.
        :raises Deposed: if that leader no longer leads.
        """
        longer = _guarded(request, epoch).values(
            extended_s=request.extended_s + by_s, version=request.version + 1
        )
        if not self._tables.update(longer):
            self._explain(request, epoch)

    def hold_back(
        self,
        request: request_model.Request,
        hold: request_model.Hold | None,
        expires_at: float | None,
        why: reason_module.Why,
        now: float,
        epoch: int,
    ) -> None:
        """Let a request be held, or end its hold; its version goes on.

        :param hold: ``None`` for none any more.
        :param expires_at: when it stops waiting from now on.
        :param why: what its owner is told.
        :param now: seconds of the epoch of time.
        :raises Outdated: if it is no longer in that state and version.
        :raises Deposed: if another process leads by now.
        """
        self._keep(request, now, epoch)
        changed = _guarded(request, epoch).values(
            version=request.version + 1,
            expires_at=expires_at,
            **_next_stage(now),
            **records.held_columns(hold),
            **records.columns_of(why),
        )
        if not self._tables.update(changed):
            self._explain(request, epoch)
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
        """Put a request before all others, or back; its version goes on.

        :param first: its number among those; ``None`` for none any more.
        :raises Outdated: if it is no longer in that state and version.
        :raises Deposed: if another process leads by now.
        """
        changed = _guarded(request, epoch).values(
            version=request.version + 1, first_turn=first
        )
        if not self._tables.update(changed):
            self._explain(request, epoch)

    def used(self) -> records.UseRecords:
        """Use of accounts."""
        row = self._tables.only(_LEDGER)
        return records.UseRecords(
            row['at'],
            json.loads(row['used']),
            row['version'],
            row['since'],
            json.loads(row['spent']),
        )

    def charge(self, used: records.UseRecords, epoch: int) -> None:
        """Write what accounts used.

        :param used: with the version that it was worked out from.
        :param epoch: of the leader that did.
        :raises Deposed: if that leader no longer leads.
        :raises Outdated: if it was written meanwhile.
        """
        self._replace(
            _LEDGER,
            used.version,
            epoch,
            at=used.at,
            used=records.short(used.parts),
            since=used.since,
            spent=records.short(used.spent),
        )

    def given(self) -> records.AccountSettings:
        """Settings of accounts that callers made while the service ran."""
        row = self._tables.only(_SHARES)
        accounts = {
            name: _loaded(given)
            for name, given in self._settings.read().items()
        }
        return records.AccountSettings(accounts, row['version'])

    def give(self, given: records.AccountSettings, epoch: int) -> None:
        """Write what is set of accounts.

        :param given: with the version that it was worked out from.
        :param epoch: of the leader that did.
        :raises Deposed: if that leader no longer leads.
        :raises Outdated: if it was written meanwhile.
        """
        self._replace(_SHARES, given.version, epoch)
        written = {
            name: records.short(own) for name, own in given.accounts.items()
        }
        self._settings.write(self._settings.read(), written, epoch)

    def promised(self) -> records.PromisedStarts:
        """Estimated starts that owners were told, and their outcomes."""
        row = self._tables.only(_PROMISES)
        try:
            kept = json.loads(row['kept'])
            promises, past = dict(kept['promises']), list(kept['past'])
        except exception.UNREADABLE as error:
            # They only judge estimates: those that are made now are told.
            self._tables.note('promises', '1', error)
            promises, past = {}, []
        return records.PromisedStarts(promises, past, row['version'])

    def promise(self, promised: records.PromisedStarts, epoch: int) -> None:
        """Write what owners were told.

        :param promised: with the version that it was worked out from.
        :param epoch: of the leader that did.
        :raises Deposed: if that leader no longer leads.
        :raises Outdated: if it was written meanwhile.
        """
        kept = {'promises': promised.promises, 'past': promised.past}
        self._replace(
            _PROMISES, promised.version, epoch, kept=records.short(kept)
        )

    def _replace(
        self, table: sa.Table, version: int, epoch: int, **values: Any
    ) -> None:
        """Change the one row of a table as a whole."""
        changed = self._tables.update(
            sa.update(table)
            .where(table.c.version == version, tables.newest_epoch() == epoch)
            .values(version=version + 1, **values)
        )
        if not changed:
            self._check_leads(epoch)
            raise exception.Outdated(
                f'the table {table.name} is no longer of version {version}'
            )

    def _check_leads(self, epoch: int) -> None:
        leader = self.leader()
        if leader.epoch != epoch:
            raise exception.Deposed(
                f'epoch {epoch} is over: {leader.holder or "no process"} leads'
            )

    def _explain(self, request: request_model.Request, epoch: int) -> NoReturn:
        """Say why a change found nothing to change."""
        self._check_leads(epoch)
        found = self.request(request.uuid)
        if found is None:
            present = 'gone'
        else:
            state, version = found.request.state, found.request.version
            present = f'{state.value} with version {version}'
        raise exception.Outdated(
            f'request {request.uuid} was {request.state.value} with version'
            f' {request.version} when this was decided, it is now {present}'
        )


def _conditions(
    wanted: request_model.RequestFilter,
) -> list[sa.ColumnElement[bool]]:
    known = _REQUESTS.c
    found: list[sa.ColumnElement[bool]] = []
    # A condition that is always so keeps databases from the right index.
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


def _passes(
    request: request_model.Request, event: request_model.Event
) -> bool:
    """Whether it is a moment between two events: room kept, message sent."""
    return (
        request.state is request_model.State.RESERVED
        or event is request_model.Event.SENT
    )


def _is_same(
    request: request_model.Request, epoch: int
) -> sa.ColumnElement[bool]:
    """Whether a request is as it was, and the leader leads."""
    return sa.and_(
        _REQUESTS.c.state == request.state.value,
        _REQUESTS.c.version == request.version,
        tables.newest_epoch() == epoch,
    )


def _next_stage(now: float) -> dict[str, Any]:
    return {'stage': _REQUESTS.c.stage + 1, 'stage_at': now}


def _wait(event: request_model.Event, now: float) -> dict[str, Any]:
    """Columns of the wait that an event ends, or lets go on."""
    if event is request_model.Event.RETURN:
        return {'sent_at': None, 'waited_s': None}
    if event is not request_model.Event.SEND:
        return {}
    # A request that returns is as old as the one before: its message is not.
    came_at = (
        sa.select(_CASTS.c.received_at)
        .where(_CASTS.c.uuid == _REQUESTS.c.cast_uuid)
        .scalar_subquery()
    )
    waited_s = sa.case((came_at > now, 0.0), else_=now - came_at)
    return {'sent_at': now, 'waited_s': waited_s}


def _loaded(given: str) -> Any:
    """Settings of an account; ``None`` if they cannot be read."""
    try:
        return json.loads(given)
    except ValueError:
        return None


def _guarded(request: request_model.Request, epoch: int) -> sa.Update:
    """Change a request only if it is as it was and the leader leads."""
    state = request.state.value
    return tables.change_request(request.uuid, state, request.version, epoch)


def open_store(url: str, keys: pathlib.Path) -> Store:
    """Open the store at a URL with the keys of a file.

    :raises StoreAway: if the database does not answer.
    :raises SchemaMismatch: if the tables are not those of this version.
    :raises BadKeyFile: if the keys cannot be used.
    """
    return Store(database.connect(url), sealing.read(keys))
