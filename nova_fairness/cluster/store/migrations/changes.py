# SPDX-License-Identifier: Apache-2.0

"""Changes of tables that do nothing where they are done already.

MariaDB commits every change of a table at once. A script that is killed half
way is run again from its first line, so each line must be repeatable. Scripts
of :mod:`.versions` change tables by this module alone.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

_MYSQL: dict[str, Any] = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}


def long_text() -> sa.types.TypeEngine[str]:
    """Text of any length, on every database."""
    return sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')


def create_table(
    name: str,
    *columns: sa.schema.SchemaItem,
    row: Mapping[str, Any] | None = None,
) -> None:
    """Make a table.

    :param row: that is there from the beginning; it has the key ``id``.
    """
    if not sa.inspect(op.get_bind()).has_table(name):
        op.create_table(name, *columns, **_MYSQL)
    if row is None:
        return
    table = sa.table(name, *map(sa.column, row))
    found = sa.select(table.c.id).where(table.c.id == row['id'])
    if op.get_bind().execute(found).first() is None:
        op.get_bind().execute(sa.insert(table).values(row))


def add_column(table: str, column: sa.Column[Any]) -> None:
    """Add a column."""
    if column.name not in _columns(table):
        op.add_column(table, column)


def drop_column(table: str, column: str) -> None:
    """Remove a column."""
    if column in _columns(table):
        op.drop_column(table, column)


def rename_column(
    table: str, old: str, new: str, of_type: sa.types.TypeEngine[Any]
) -> None:
    """Rename a column that must have a value."""
    if new not in _columns(table):
        op.alter_column(
            table,
            old,
            new_column_name=new,
            existing_type=of_type,
            existing_nullable=False,
        )


def tell_case_apart(table: str, column: str, longest: int) -> None:
    """Compare the names of a column that must have a value byte by byte.

    :param longest: of them, in characters.
    """
    if op.get_bind().dialect.name in ('mysql', 'mariadb'):
        op.alter_column(
            table,
            column,
            existing_type=sa.String(longest),
            existing_nullable=False,
            type_=mysql.VARCHAR(longest, collation='utf8mb4_bin'),
        )


def create_index(name: str, table: str, columns: Sequence[str]) -> None:
    """Make an index."""
    if name not in _indexes(table):
        op.create_index(name, table, list(columns))


def drop_index(name: str, table: str) -> None:
    """Remove an index."""
    if name in _indexes(table):
        op.drop_index(name, table)


def drop_table(name: str) -> None:
    """Remove a table."""
    if sa.inspect(op.get_bind()).has_table(name):
        op.drop_table(name)


def _columns(table: str) -> set[str]:
    found = sa.inspect(op.get_bind()).get_columns(table)
    return {each['name'] for each in found}


def _indexes(table: str) -> set[str | None]:
    found = sa.inspect(op.get_bind()).get_indexes(table)
    return {each['name'] for each in found}
