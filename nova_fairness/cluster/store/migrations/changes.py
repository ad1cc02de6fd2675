# SPDX-License-Identifier: Apache-2.0

"""Changes of tables that do nothing if they are already made.

MariaDB commits every change of a table at once. A script that is killed half
way runs again from its first line, so each line must be repeatable. Scripts of
:mod:`.versions` change tables only through this module. A new database gets
the tables of the newest revision at once, so later scripts find their changes
already made.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from alembic import op
import sqlalchemy as sa


def create_table(
    table: sa.Table, row: Mapping[str, Any] | None = None
) -> None:
    """Create a table with its indexes.

    :param row: content of the row of a table of one row, without ``id``, which
        is 1.
    """
    if not sa.inspect(op.get_bind()).has_table(table.name):
        op.execute(sa.schema.CreateTable(table))
    for index in sorted(table.indexes, key=lambda each: str(each.name)):
        columns = [column.name for column in index.columns]
        create_index(str(index.name), table.name, columns)
    if row is None:
        return
    found = sa.select(table.c.id).where(table.c.id == 1)
    if op.get_bind().execute(found).first() is None:
        op.get_bind().execute(sa.insert(table).values(id=1, **row))


def add_column(table: str, column: sa.Column[Any]) -> None:
    """Add a column."""
    if column.name not in _columns(table):
        op.add_column(table, column)


def rename_column(
    table: str, old: str, new: str, of_type: sa.types.TypeEngine[Any]
) -> None:
    """Rename a column that is not nullable."""
    if new not in _columns(table):
        op.alter_column(
            table,
            old,
            new_column_name=new,
            existing_type=of_type,
            existing_nullable=False,
        )


def create_index(name: str, table: str, columns: Sequence[str]) -> None:
    """Create an index."""
    if name not in _indexes(table):
        op.create_index(name, table, list(columns))


def drop_index(name: str, table: str) -> None:
    """Remove an index."""
    if name in _indexes(table):
        op.drop_index(name, table)


def _columns(table: str) -> set[str]:
    found = sa.inspect(op.get_bind()).get_columns(table)
    return {each['name'] for each in found}


def _indexes(table: str) -> set[str | None]:
    found = sa.inspect(op.get_bind()).get_indexes(table)
    return {each['name'] for each in found}
