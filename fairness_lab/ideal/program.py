# SPDX-License-Identifier: Apache-2.0

"""Linear programs in which entities are to be raised, and their parts.

Columns are amounts from 0 to an upper end. *Limits* say that sums of columns
stay below a bound; *entities* are sums of columns that should become large.
"""

from collections.abc import Iterator
import dataclasses
import typing

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False)
class SparseEntries:
    """The entries of a sparse matrix that are not zero, in any order.

    :ivar row: (k,).
    :ivar column: (k,).
    :ivar value: (k,).
    """

    row: Places
    column: Places
    value: Floats

    @classmethod
    def joined(cls, parts: 'list[SparseEntries]') -> 'SparseEntries':
        """Put the entries of several matrices into one."""
        if not parts:
            empty = np.zeros(0, dtype=np.intp)
            return cls(empty, empty, np.zeros(0))
        return cls(
            np.concatenate([part.row for part in parts]),
            np.concatenate([part.column for part in parts]),
            np.concatenate([part.value for part in parts]),
        )

    def times(self, columns: Floats, rows: int) -> Floats:
        """Multiply with a column vector.

        :param columns: (c,) finite where an entry is.
        :param rows: number of rows of the matrix.
        :returns: (rows,).
        """
        products = self.value * columns[self.column]
        return np.bincount(self.row, products, rows).astype(np.float64)

    def within(self, columns: Bools) -> 'SparseEntries':
        """Entries in the chosen columns; numbers stay."""
        chosen = columns[self.column]
        return SparseEntries(
            self.row[chosen], self.column[chosen], self.value[chosen]
        )

    def with_unique_places(self) -> 'SparseEntries':
        """Sum entries of the same place; sort by column, then by row.

        A sum that counts several amounts of a column names it several times.
        """
        order = np.lexsort((self.row, self.column))
        row, column = self.row[order], self.column[order]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
        place = np.cumsum(new) - 1
        value = np.bincount(place, self.value[order], int(new.sum()))
        return SparseEntries(row[new], column[new], value.astype(np.float64))

    def renumbered(self, rows: Places, columns: Places) -> 'SparseEntries':
        """New numbers of rows and columns, by the old ones."""
        return SparseEntries(rows[self.row], columns[self.column], self.value)


@dataclasses.dataclass(frozen=True, eq=False)
class IdealProgram:
    """The possible allocations, and the users to be raised.

    :ivar upper: (c,) end of each column, >= 0; infinite is allowed for
        columns that no entity has.
    :ivar limits: (l, c) entries.
    :ivar bound: (l,) greatest sums.
    :ivar entities: (e, c) entries, > 0.
    :ivar base: (e,) what each entity has besides its columns.
    :ivar floor: (e,) what an entity must have at least; NaN for one that is
        still to be raised.
    """

    upper: Floats
    limits: SparseEntries
    bound: Floats
    entities: SparseEntries
    base: Floats
    floor: Floats

    @property
    def open(self) -> Bools:
        """Entities still to be raised, (e,)."""
        return np.isnan(self.floor)

    def most(self) -> Floats:
        """Level of each entity if it alone counted, (e,)."""
        return self.base + self.entities.times(self.upper, len(self.base))


class SubProgram(typing.NamedTuple):
    """A program of its own within another.

    :ivar program: with columns and rows of its own.
    :ivar entities: where its entities are in the whole.
    """

    program: IdealProgram
    entities: Places


def with_fixed(
    program: IdealProgram, fixed: Bools, value: Floats
) -> IdealProgram:
    """Remove columns whose values are known.

    :param fixed: (c,) which.
    :param value: (c,) finite where fixed.
    :returns: the same rows, fewer columns, in the old order.
    """
    known = np.where(fixed, value, 0.0)
    places = np.cumsum(~fixed) - 1
    limits, entities = program.limits, program.entities
    return dataclasses.replace(
        program,
        upper=program.upper[~fixed],
        limits=limits.within(~fixed).renumbered(
            np.arange(len(program.bound)), places
        ),
        bound=program.bound - limits.times(known, len(program.bound)),
        entities=entities.within(~fixed).renumbered(
            np.arange(len(program.base)), places
        ),
        base=program.base + entities.times(known, len(program.base)),
    )


def split_program(program: IdealProgram) -> Iterator[SubProgram]:
    """Split a program into parts that no row connects.

    Entities without a column are in no part: they have their base.
    """
    label = _component_labels(program)
    entity_label = _row_labels(program.entities, label, len(program.base))
    limit_label = _row_labels(program.limits, label, len(program.bound))
    wanted = np.unique(entity_label[program.open & (entity_label >= 0)])
    for one in wanted:
        yield _extract_part(
            program, label == one, limit_label == one, entity_label == one
        )


def _extract_part(
    program: IdealProgram, columns: Bools, limits: Bools, entities: Bools
) -> SubProgram:
    if columns.all() and limits.all() and entities.all():
        return SubProgram(program, np.arange(len(program.base)))
    place = np.cumsum(columns) - 1
    return SubProgram(
        IdealProgram(
            upper=program.upper[columns],
            limits=program.limits.within(columns).renumbered(
                np.cumsum(limits) - 1, place
            ),
            bound=program.bound[limits],
            entities=program.entities.within(columns).renumbered(
                np.cumsum(entities) - 1, place
            ),
            base=program.base[entities],
            floor=program.floor[entities],
        ),
        np.flatnonzero(entities),
    )


def _component_labels(program: IdealProgram) -> Places:
    """(c,) number of the connected part that each column belongs to."""
    rows = len(program.bound)
    row = np.concatenate([program.limits.row, program.entities.row + rows])
    column = np.concatenate([program.limits.column, program.entities.column])
    label = np.arange(len(program.upper))
    while True:
        least = np.full(rows + len(program.base), len(label))
        np.minimum.at(least, row, label[column])
        new = label.copy()
        np.minimum.at(new, column, least[row])
        # Numbers are columns, so that following them twice halves the way.
        new = np.minimum(new, new[new])
        if (new == label).all():
            return label
        label = new


def _row_labels(entries: SparseEntries, label: Places, rows: int) -> Places:
    result = np.full(rows, -1)
    result[entries.row] = label[entries.column]
    return result
