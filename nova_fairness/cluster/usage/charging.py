# SPDX-License-Identifier: Apache-2.0

"""Charges of accounts for allocated or used amounts over time.

The ledger in the store contains the time up to which everything is charged;
the leader advances it. After a restart or a change of the leader, nothing is
charged twice. An interval without observation is charged with the present
amounts, up to one hour.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import types

import numpy as np
import numpy.typing as npt
from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import snapshot as snapshot_module
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.cluster.usage import charge_log
from nova_fairness.cluster.usage import spending
from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.shares import budgets
from nova_fairness.shares import ledger as ledger_module
from nova_fairness.shares import measured as measured_module
from nova_fairness.shares import tree as tree_module

LOG = logging.getLogger(__name__)

EVERY_S = 60.0
"""Largest number of seconds between two charges."""

PART = 0.01
"""Interval between two charges, as a part of the half-life. The servers
that run at the time of a charge are charged for the whole interval, so that
a long interval would be inaccurate.
"""

LONGEST_S = 3600.0
"""Largest number of seconds of one charge, and largest accepted step back
of a clock.
"""

WENT_BACK = 'the ledger goes on from now: the clock went back by %.0f s'

_Floats = npt.NDArray[np.float64]
_Named = tuple[tuple[str, int], ...]
Counted = Callable[[cluster.ClusterSnapshot], cluster.ClusterSnapshot]
"""Adds use outside of the cloud to a snapshot."""

_ALIKE: Mapping[str, float] = types.MappingProxyType({})


def _no_measured_use(_: int) -> None:
    """Return ``None``: measured use is not needed for charges by
    allocation.
    """


class LedgerKeeper:
    """Advances the ledger by charges, and adds its content to snapshots.

    :param store: store that contains the ledger.
    :param reader: reads the allocations of users.
    :param half_life_s: half-life of the ledger, seconds, > 0.
    :param terms: units of budgets, and the part of their use that preemptible
        servers are charged, in budgets and in the ledger.
    :param trading: spending groups; charges measured use in a currency.
    :param charge: kind of use that the ledger records; budgets always record
        allocations.
    :param measured: returns the use that agents measured, given the number of
        hosts; ``None`` if it is unknown.
    :param weights: see :attr:`.ClusterSnapshot.weights`.
    :param outliers: returns how the report of an agent differs from other
        reports, by its host.
    :ivar outliers: returns how the report of an agent differs from other
        reports, by its host.
    :ivar trading: spending groups; charges measured use in a currency.
    :ivar counted: adds use of accounts outside of the cloud; the controller of
        the border sets it.
    """

    def __init__(
        self,
        store: store_module.Store,
        reader: snapshot_module.CloudReader,
        half_life_s: float,
        terms: budgets.BudgetTerms,
        trading: spending.SpendingGroups,
        charge: measured_module.Charge = measured_module.Charge.ALLOCATED,
        measured: Callable[
            [int], measured_module.MeasuredUse | None
        ] = _no_measured_use,
        weights: Mapping[str, float] = _ALIKE,
        outliers: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._terms = terms
        self.trading = trading
        self._weights = weights
        self._charge = charge
        self._measured = measured
        self.outliers = outliers
        self._store = store
        self._reader = reader
        self._half_life_s = half_life_s
        self._every_s = min(EVERY_S, PART * half_life_s)
        self._recorder = charge_log.ChargeLog(store)
        self.counted: Counted = lambda snapshot: snapshot

    def kept(self, elapsed_s: float) -> float:
        """Return the part of past use that the ledger still contains after
        a time, 0 to 1.
        """
        return ledger_module.UseLedger(self._half_life_s, 0.0).kept(elapsed_s)

    def charge(
        self,
        view: snapshot_module.CloudView,
        now: float,
        epoch: int,
        *,
        holds: bool = False,
    ) -> cluster.ClusterSnapshot:
        """Charge the time since the last charge, if the interval has passed.

        :param view: view of the cloud.
        :param now: seconds of the epoch.
        :param epoch: epoch of the leader.
        :param holds: whether nothing is charged: the time may be wrong.
        :returns: the snapshot with :attr:`.ClusterSnapshot.history`,
            :attr:`.ClusterSnapshot.granted` and
            :attr:`.ClusterSnapshot.budgets`.
        :raises Deposed: if another process leads.
        :raises CloudError: if the allocations of users cannot be read.
        """
        snapshot, kept = view.snapshot, self._store.read_ledger()
        since, spent = self._period_spending(kept, now)
        every = {*snapshot.classes}.union(*kept.parts.values())
        classes = tuple(sorted(every))
        ledger = self._build_ledger(kept, classes)
        is_due = now - kept.at >= self._every_s or kept.at - now > LONGEST_S
        if is_due and not holds:
            allocated, current = self._current_amounts(view, classes)
            elapsed_s = min(now - max(kept.at, since), LONGEST_S)
            spent = self._updated_spending(
                spent, allocated, classes, elapsed_s
            )
            ledger = self._advanced_ledger(
                ledger, view, now, classes, current, kept, epoch
            )
            used = _ledger_record(ledger, kept.version, classes, since, spent)
            self._store.write_ledger(used, epoch)
        if not holds:
            self._update_spending_groups(snapshot, now, epoch)
        columns = [classes.index(name) for name in snapshot.classes]
        history = {name: use[columns] for name, use in ledger.use.items()}
        granted = _use_beyond_ledger(
            ledger, snapshot, now, self._terms.preemptible
        )
        left = budgets.open_budgets(
            snapshot, self._terms, spent, ledger.at, now
        )
        return self.counted(
            dataclasses.replace(
                snapshot,
                history=history,
                granted=granted,
                budgets=left,
                weights=self._weights,
            )
        )

    def budgets(
        self, snapshot: cluster.ClusterSnapshot, now: float
    ) -> cluster.Budgets | None:
        """Return the budgets of the accounts of a snapshot, without a charge.

        :param now: seconds of the epoch.
        :raises StoreError: if spending cannot be read.
        """
        kept = self._store.read_ledger()
        _, spent = self._period_spending(kept, now)
        return budgets.open_budgets(snapshot, self._terms, spent, kept.at, now)

    def _update_spending_groups(
        self, snapshot: cluster.ClusterSnapshot, now: float, epoch: int
    ) -> None:
        """Update the rates of spending groups, independently of the ledger."""
        try:
            self.trading.see(snapshot, now, epoch)
        except exception.StoreError:
            raise
        except Exception:
            LOG.exception('rates of groups stay as they are')

    def _build_ledger(
        self, kept: records.UseRecords, classes: tuple[str, ...]
    ) -> ledger_module.UseLedger:
        """Return the stored ledger, with the given resource classes as
        columns.
        """
        use = {
            name: _vector_by_class(each, classes)
            for name, each in kept.parts.items()
        }
        return ledger_module.UseLedger(self._half_life_s, kept.at, use)

    def _period_spending(
        self, kept: records.UseRecords, now: float
    ) -> tuple[float, Mapping[str, float]]:
        """Return the start of the budget period, and the spending in it by
        account.
        """
        begin = self._terms.period.around(now)[0]
        # A clock that went back does not start a new period.
        if begin <= kept.since <= now + LONGEST_S:
            return kept.since, kept.spent
        return begin, {}

    def _updated_spending(
        self,
        spent: Mapping[str, float],
        current: Mapping[str, _Floats],
        classes: tuple[str, ...],
        elapsed_s: float,
    ) -> dict[str, float]:
        """Return the spending in unit-seconds by account, including the
        last interval.
        """
        weights = self._terms.weights
        units = np.array([weights.get(name, 0.0) for name in classes])
        new = {
            name: float(units @ amounts) * max(elapsed_s, 0.0)
            for name, amounts in current.items()
        }
        return {
            name: spent.get(name, 0.0) + new.get(name, 0.0)
            for name in sorted({*spent, *new})
        }

    def _advanced_ledger(
        self,
        ledger: ledger_module.UseLedger,
        view: snapshot_module.CloudView,
        now: float,
        classes: tuple[str, ...],
        current: Mapping[str, _Floats],
        kept: records.UseRecords,
        epoch: int,
    ) -> ledger_module.UseLedger:
        """Return the ledger at the present time; the new charge is recorded
        first.
        """
        if ledger.at > now:
            LOG.warning(WENT_BACK, ledger.at - now)
            return dataclasses.replace(ledger, at=now)
        snapshot = view.snapshot
        capacity = np.zeros(len(classes))
        columns = [classes.index(name) for name in snapshot.classes]
        capacity[columns] = snapshot.inventory.capacity.sum(axis=0)
        # Earlier use is unknown: the ledger only decays for that time.
        begins = max(ledger.at, now - LONGEST_S)
        charge = ledger_module.PeriodCharge(begins, now, current, capacity)
        self._recorder.record(ledger, charge, classes, kept.version + 1, epoch)
        ledger = ledger.advanced(begins, {}, capacity)
        return ledger.advanced(now, current, capacity)

    def _current_amounts(
        self, view: snapshot_module.CloudView, classes: tuple[str, ...]
    ) -> tuple[dict[str, _Floats], dict[str, _Floats]]:
        """Return the allocated and the charged amounts of accounts, including
        all accounts below them.

        Both are equal unless measured use is charged.
        """
        users = self._reader.used_by_users(view)
        own, lent = _allocated_amounts(view.snapshot, users)
        allocated = self._total_charges(
            own, lent, None, view.snapshot, users, classes
        )
        if self._charge is measured_module.Charge.ALLOCATED:
            return allocated, allocated
        measured = self._measured(len(view.snapshot.providers))
        return allocated, self._total_charges(
            own, lent, measured, view.snapshot, users, classes
        )

    def _total_charges(
        self,
        own: Mapping[str, _Floats],
        lent: Mapping[str, _Floats],
        measured: measured_module.MeasuredUse | None,
        snapshot: cluster.ClusterSnapshot,
        users: Iterable[tuple[str, str]],
        classes: tuple[str, ...],
    ) -> dict[str, _Floats]:
        """Return the charged amounts of accounts including all accounts
        below them, (c,), by name.
        """
        capacity = snapshot.inventory.capacity.sum(axis=0, dtype=np.float64)
        counts = measured_module.charged_amounts(
            self._charge,
            own,
            lent,
            self._terms.preemptible,
            measured,
            dict(zip(snapshot.classes, capacity.tolist(), strict=True)),
            _usable_factors(snapshot),
        )
        columns = [classes.index(name) for name in snapshot.classes]
        found = {}
        total = tree_module.sums_with_below(counts, snapshot, users)
        for name, each in total.items():
            found[name] = np.zeros(len(classes))
            found[name][columns] = each
        return found


def _usable_factors(snapshot: cluster.ClusterSnapshot) -> dict[str, float]:
    """Return the factor from allocated to usable amounts, by resource class.

    A server with one VCPU uses at most one CPU: if Placement offers several
    VCPUs per CPU, that use counts as several VCPUs. One server can use at most
    a whole host.
    """
    inventory = snapshot.inventory
    capacity = inventory.capacity.sum(axis=0, dtype=np.float64)
    there = inventory.unit.sum(axis=0, dtype=np.float64)
    times = capacity / np.maximum(there, 1.0)
    return dict(
        zip(snapshot.classes, np.maximum(times, 1.0).tolist(), strict=True)
    )


def _allocated_amounts(
    snapshot: cluster.ClusterSnapshot,
    users: Mapping[tuple[str, str], cluster.Amounts],
) -> tuple[dict[str, _Floats], dict[str, _Floats]]:
    """Return the amounts of accounts without those below them, and the
    amounts of their preemptible servers, (c,).
    """
    own: dict[str, _Floats] = {
        name: amounts.astype(np.float64)
        for name, amounts in snapshot.used.items()
        if name
    }
    for (project, user), amounts in users.items():
        own[request_model.account_of(project, user)] = amounts.astype(
            np.float64
        )
        # Lists are read one after the other, so they may not fit.
        own[project] = np.maximum(own[project] - amounts, 0.0)
    lent = {
        request_model.account_of(*owner): amounts.astype(np.float64)
        for owner, amounts in snapshot.preemptible.items()
    }
    return own, lent


def _use_beyond_ledger(
    ledger: ledger_module.UseLedger,
    snapshot: cluster.ClusterSnapshot,
    now: float,
    preemptible: float,
) -> dict[str, _Floats]:
    """Return the part of the cloud that running servers use beyond the ledger,
    (c,), by account.

    For a server that runs for some time, the ledger contains the part ``1 -
    b``; this function returns the part ``b``. Their sum counts each server as
    if it had always run.
    """
    owners: dict[tuple[str, str], int] = {}
    kinds: dict[tuple[_Named, bool], int] = {}
    rows: list[int] = []
    alike: list[int] = []
    for each in snapshot.running:
        owner = each.project, each.user
        kind = each.amounts, each.band is request_model.Band.PREEMPTIBLE
        rows.append(owners.setdefault(owner, len(owners)))
        alike.append(kinds.setdefault(kind, len(kinds)))
    capacity = snapshot.inventory.capacity.sum(axis=0, dtype=np.float64)
    amounts = [
        cluster.amounts_vector(dict(each), snapshot.classes)
        * (preemptible if is_preemptible else 1.0)
        for each, is_preemptible in kinds
    ]
    has = ledger_module.parts_of_capacity(
        np.reshape(amounts, (len(kinds), len(capacity))), capacity
    )
    since = np.array([each.since for each in snapshot.running], np.float64)
    kept = ledger.kept(np.maximum(now - since, 0.0))
    own = np.zeros((len(owners), len(capacity)))
    charged = kept[:, np.newaxis] * has[np.array(alike, np.intp)]
    np.add.at(own, np.array(rows, np.intp), charged)
    named = {
        request_model.account_of(*owner): own[row]
        for owner, row in owners.items()
    }
    return tree_module.sums_with_below(named, snapshot, owners)


def _vector_by_class(
    parts: Mapping[str, float], classes: tuple[str, ...]
) -> _Floats:
    return np.array([parts.get(name, 0.0) for name in classes])


def _ledger_record(
    ledger: ledger_module.UseLedger,
    version: int,
    classes: tuple[str, ...],
    since: float,
    spent: Mapping[str, float],
) -> records.UseRecords:
    parts = {
        name: dict(zip(classes, use.tolist(), strict=True))
        for name, use in ledger.use.items()
    }
    return records.UseRecords(ledger.at, parts, version, since, spent)
