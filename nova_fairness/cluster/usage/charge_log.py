# SPDX-License-Identifier: Apache-2.0

"""Records of charges, from which the ledger can be computed again.

A record contains only the changes since the previous charge. Some records also
contain the ledger at their beginning: those that do not follow directly on the
previous record, the first one of each process, and one a day. The ledger can
be computed again from each of these.
"""

from collections.abc import Iterator
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.shares import ledger as ledger_module

WHOLE_EVERY = 1440
"""Number of charges between two records that contain the whole ledger."""

TOLERATED = 1e-9
"""Largest difference of the ledger that rounding explains, as a part of the
cloud.
"""

_Floats = npt.NDArray[np.float64]
_Amounts = Mapping[str, Mapping[str, float]]


class ChargeLog:
    """Writes records of charges.

    :param store: store that contains the records.
    """

    def __init__(self, store: store_module.Store) -> None:
        self._store = store
        self._last: tuple[int, float, _Amounts] = (-1, 0.0, {})

    def record(
        self,
        ledger: ledger_module.UseLedger,
        charge: ledger_module.PeriodCharge,
        classes: tuple[str, ...],
        version: int,
        epoch: int,
    ) -> None:
        """Store a charge, before the ledger contains it.

        :param ledger: the ledger before the charge.
        :param charge: the charge.
        :param classes: resource classes of the columns.
        :param version: version of the ledger after the charge.
        :param epoch: epoch of the leader.
        :raises Deposed: if another process leads.
        """
        current = _amounts_by_class(charge.current, classes)
        before, ended, known = self._last
        opening, changed = None, dict[str, Mapping[str, float]]()
        if (
            before != version - 1
            or ended != charge.begins
            or (version % WHOLE_EVERY == 0)
        ):
            at = ledger.advanced(charge.begins, {}, charge.capacity)
            opening, changed = (
                _amounts_by_class(at.use, classes),
                dict(current),
            )
        else:
            changed = {
                name: current.get(name, {})
                for name in sorted({*current, *known})
                if current.get(name) != known.get(name)
            }
        capacity = dict(zip(classes, charge.capacity.tolist(), strict=True))
        self._store.charges.add(
            records.ChargeRecord(
                version, charge.begins, charge.ends, capacity, changed, opening
            ),
            epoch,
        )
        self._last = version, charge.ends, current


def read_charges(
    store: store_module.Store, until: int
) -> tuple[tuple[str, ...], list[ledger_module.PeriodCharge]]:
    """Return the resource classes, and all recorded charges, the oldest first.

    :param until: version of the ledger after the last charge.
    """
    rows = list(store.charges.charges_up_to(until))
    # The records that the first ones continue were removed.
    while rows and rows[0].opening is None:
        del rows[0]
    classes = tuple(sorted({name for row in rows for name in row.capacity}))
    return classes, list(_complete_charges(rows, classes))


def ledger_difference(
    store: store_module.Store, half_life_s: float
) -> tuple[float, int]:
    """Return the difference between the ledger and the one computed from its
    records.

    :param half_life_s: half-life of the ledger, seconds, > 0.
    :returns: the largest difference of any account in any class, as a part of
        the cloud; and the number of recorded charges.
    """
    kept = store.read_ledger()
    classes, charges = read_charges(store, kept.version)
    if not charges:
        return 0.0, 0
    known = {
        name: _amounts_vector(each, classes)
        for name, each in kept.parts.items()
    }
    again = ledger_module.replay(charges, half_life_s).use
    none = np.zeros(len(classes))
    return max(
        (
            float(np.abs(known.get(name, none) - again.get(name, none)).max())
            for name in {*known, *again}
        ),
        default=0.0,
    ), len(charges)


def _complete_charges(
    rows: list[records.ChargeRecord], classes: tuple[str, ...]
) -> Iterator[ledger_module.PeriodCharge]:
    """Yield complete charges, from records that contain only changes."""
    current: dict[str, _Floats] = {}
    for row in rows:
        if row.opening is not None:
            current = {}
        for name, amounts in row.changed.items():
            current[name] = _amounts_vector(amounts, classes)
        current = {name: each for name, each in current.items() if each.any()}
        yield ledger_module.PeriodCharge(
            row.begins,
            row.ends,
            dict(current),
            _amounts_vector(row.capacity, classes),
            {
                name: _amounts_vector(each, classes)
                for name, each in (row.opening or {}).items()
            },
        )


def _amounts_by_class(
    amounts: Mapping[str, _Floats], classes: tuple[str, ...]
) -> dict[str, dict[str, float]]:
    """Return amounts above 0, by account and resource class."""
    return {
        name: {
            resource_class: much
            for resource_class, much in zip(
                classes, each.tolist(), strict=True
            )
            if much
        }
        for name, each in amounts.items()
    }


def _amounts_vector(
    amounts: Mapping[str, float], classes: tuple[str, ...]
) -> _Floats:
    return np.array([amounts.get(name, 0.0) for name in classes])
