# SPDX-License-Identifier: Apache-2.0

"""Decayed use of accounts: the longer ago, the less it counts.

Use is a part of the cloud's capacity at its time, per resource class. It
follows ``u <- b u + (1 - b) now`` with ``b = 0.5^(dt / half-life)``. So an
account that always used a tenth of the cloud has 0.1, for any length of the
steps (Slurm's multifactor priority; Kueue, KEP-4136). Use is stored for every
account of the share tree, and is not computed from the accounts below: the use
of a user who is gone still counts for the project.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import math
from typing import NamedTuple
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from nova_fairness import exception

Floats = npt.NDArray[np.float64]
_Seconds = TypeVar('_Seconds', float, Floats)

FORGOTTEN = 1e-12
"""Use below which an account that uses nothing now is removed."""


@dataclasses.dataclass(frozen=True, eq=False)
class UseLedger:
    """Decayed use at one time.

    :ivar half_life_s: seconds after which use counts half, > 0.
    :ivar at: time up to which use is known, seconds of the epoch.
    :ivar use: (c,) part of the cloud by account, >= 0; accounts without an
        entry used nothing.
    :raises BadLedger: if the half-life is not a finite number above 0.
    """

    half_life_s: float
    at: float
    use: Mapping[str, Floats] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.half_life_s) and self.half_life_s > 0):
            raise exception.BadLedger(
                'half-life must be a number of seconds above 0, got'
                f' {self.half_life_s!r}'
            )

    def advanced(
        self, now: float, current: Mapping[str, Floats], capacity: Floats
    ) -> 'UseLedger':
        """The ledger after use from :attr:`at` until ``now``.

        If the clock went back, nothing changes until it has caught up, so
        that no time counts twice.

        :param now: seconds of the epoch.
        :param current: (c,) amounts that each account and all below it had
            since :attr:`at`, >= 0.
        :param capacity: (c,) capacity of the cloud, >= 0; a class without
            capacity does not count.
        :raises BadLedger: if an amount is negative or not finite.
        """
        _check_amounts(current)
        elapsed = now - self.at
        if elapsed <= 0:
            return self
        keep = self.kept(elapsed)
        none = np.zeros(len(capacity))
        use = {}
        for name in sorted({*self.use, *current}):
            part = parts_of_capacity(current.get(name, none), capacity)
            use[name] = keep * self.use.get(name, none) + (1 - keep) * part
            if name not in current and (use[name] < FORGOTTEN).all():
                del use[name]
        return dataclasses.replace(self, at=now, use=use)

    def kept(self, elapsed: _Seconds) -> _Seconds:
        """Part of the use that still counts after some seconds, 0 to 1."""
        left: _Seconds = 0.5 ** (elapsed / self.half_life_s)
        return left


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class UseRecord:
    """Constant use of an account from ``start`` to ``end``.

    :ivar account: name of the account.
    :ivar start: seconds of the epoch.
    :ivar end: seconds of the epoch, >= ``start``.
    :ivar part: (c,) part of the cloud's capacity at that time, >= 0.
    """

    account: str
    start: float
    end: float
    part: Floats


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class PeriodCharge:
    """Amounts that all accounts are charged for a period.

    :ivar begins: seconds of the epoch.
    :ivar ends: seconds of the epoch, >= ``begins``.
    :ivar current: (c,) amounts of each account and all below it; accounts
        without an entry have nothing.
    :ivar capacity: (c,) capacity of the cloud.
    :ivar opening: (c,) use by account at the start of the period; empty if
        the period follows the one before it.
    """

    begins: float
    ends: float
    current: Mapping[str, Floats]
    capacity: Floats
    opening: Mapping[str, Floats] = dataclasses.field(default_factory=dict)


def replay(charges: Iterable[PeriodCharge], half_life_s: float) -> UseLedger:
    """The ledger computed again from all charges.

    Only the opening of the first charge counts.

    :param charges: in the order in which they were made.
    :param half_life_s: seconds after which use counts half, > 0.
    :raises BadLedger: see :class:`UseLedger`.
    """
    ledger: UseLedger | None = None
    for each in charges:
        if ledger is None:
            ledger = UseLedger(half_life_s, each.begins, each.opening)
        # The clock went back: continue from the earlier time.
        at = min(ledger.at, each.begins)
        ledger = dataclasses.replace(ledger, at=at)
        ledger = ledger.advanced(each.begins, {}, each.capacity)
        ledger = ledger.advanced(each.ends, each.current, each.capacity)
    return ledger or UseLedger(half_life_s, 0.0)


class ChargeRun(NamedTuple):
    """A time in which an account was charged constant amounts.

    :ivar account: name of the account.
    :ivar begins: seconds of the epoch.
    :ivar ends: seconds of the epoch.
    :ivar amounts: (c,) charged amounts.
    :ivar parts: (c,) the amounts as parts of the cloud.
    """

    account: str
    begins: float
    ends: float
    amounts: Floats
    parts: Floats


def charge_runs(charges: Iterable[PeriodCharge]) -> Iterator[ChargeRun]:
    """Charges of each account, joined into the fewest possible runs.

    :param charges: in the order in which they were made.
    """
    open_: dict[str, ChargeRun] = {}
    for each in charges:
        before, open_ = open_, {}
        for name, amounts in each.current.items():
            part = parts_of_capacity(amounts, each.capacity)
            new = ChargeRun(name, each.begins, each.ends, amounts, part)
            old = before.get(name)
            if old is not None and _continues(old, new):
                open_[name] = old._replace(ends=new.ends)
                del before[name]
            else:
                open_[name] = new
        yield from before.values()
    yield from open_.values()


def _continues(old: ChargeRun, new: ChargeRun) -> bool:
    return old.ends == new.begins and all(
        np.array_equal(left, right)
        for left, right in zip(old[3:], new[3:], strict=True)
    )


def use_in_periods(
    records: Iterable[UseRecord],
    now: float,
    length_s: float,
    count: int,
    decay: float,
) -> Mapping[str, Floats]:
    """Use in whole periods back from now; older ones count less (Synergy).

    :param records: records in any order.
    :param now: seconds of the epoch.
    :param length_s: length of a period, seconds, > 0; Synergy: 7 days.
    :param count: number of periods, >= 1; Synergy: 3.
    :param decay: weight of a period relative to the next newer one, 0 to 1;
        Synergy: 0.5.
    :returns: (c,) part of the cloud times seconds, by account.
    :raises BadLedger: if an argument is out of its range.
    """
    if not (length_s > 0 and count >= 1 and 0 <= decay <= 1):
        raise exception.BadLedger(
            'periods need a length above 0, a count of at least 1 and a decay'
            f' from 0 to 1, got {length_s!r}, {count!r} and {decay!r}'
        )
    use: dict[str, Floats] = {}
    for each in records:
        _check_times(each)
        seconds = sum(
            decay**k
            * _overlap_s(each, now - (k + 1) * length_s, now - k * length_s)
            for k in range(count)
        )
        use[each.account] = use.get(each.account, 0) + seconds * each.part
    return use


def parts_of_capacity(amounts: Floats, capacity: Floats) -> Floats:
    """(..., c) Amounts as parts of the cloud; 0 without capacity."""
    none = np.zeros(np.shape(amounts))
    return np.divide(amounts, capacity, out=none, where=capacity > 0)


def _overlap_s(record: UseRecord, start: float, end: float) -> float:
    return max(min(record.end, end) - max(record.start, start), 0.0)


def _check_amounts(current: Mapping[str, Floats]) -> None:
    for name, amounts in current.items():
        if not (np.isfinite(amounts).all() and (amounts >= 0).all()):
            raise exception.BadLedger(
                f'use of account {name!r} must be numbers of at least 0, got'
                f' {amounts.tolist()}'
            )


def _check_times(record: UseRecord) -> None:
    if not record.start <= record.end:
        raise exception.BadLedger(
            f'a record of account {record.account!r} must not end before it'
            f' begins, got {record.start!r} to {record.end!r}'
        )
