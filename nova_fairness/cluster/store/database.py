# SPDX-License-Identifier: Apache-2.0

"""Connection to the database: statements, and translation of database
errors.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
from typing import Any
from typing import TypeVar

from oslo_db import exception as db_exception
from oslo_db.sqlalchemy import engines
from oslo_log import log as logging
import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster.store import tables
from nova_fairness.runtime import outages

LOG = logging.getLogger(__name__)

_T = TypeVar('_T')

_AWAY = (
    db_exception.DBConnectionError,
    db_exception.DBDeadlock,
    sa.exc.TimeoutError,
)

_PLAIN = (sa.exc.OperationalError, sa.exc.InterfaceError)
"""Errors at the begin or end of a transaction that oslo.db does not translate.
"""

_NOBODYS_FAULT = ('OperationalError', 'InterfaceError')
"""Driver errors for a lock wait timeout, a full disk or a server shutdown.
Other errors, such as a missing table, have their own class in oslo.db.
"""

_MOST_ROWS = 500
_MOST_BYTES = 4 * 2**20
"""Largest size of one statement, without its first row: MariaDB accepts 16 MiB
by default.
"""

_MOST_UNREAD = 100
"""Largest number of rows that are recorded as unreadable."""

_TIME = {
    'mysql': 'SELECT UNIX_TIMESTAMP(NOW(6))',
    'postgresql': 'SELECT EXTRACT(EPOCH FROM CLOCK_TIMESTAMP())',
}

_CONNECT_TRIES = 3
_BETWEEN_TRIES_S = 1


def open_engine(url: str) -> sa.Engine:
    """Open a database.

    Every statement is committed at once, so that a process that is stopped
    during its work does not leave a lock.

    :param url: URL of SQLAlchemy: ``sqlite:////path``, ``mysql+pymysql://`` or
        ``postgresql+psycopg://``.
    :raises StoreAway: if the database does not answer.
    """
    with translate_errors():
        engine: sa.Engine = engines.create_engine(
            url,
            max_retries=_CONNECT_TRIES,
            retry_interval=_BETWEEN_TRIES_S,
            # Otherwise eventlet code gives up the CPU after each statement.
            thread_checkin=False,
        )
        if engine.dialect.name == 'sqlite':
            sa.event.listen(engine, 'connect', _set_sqlite_modes)
            # oslo.db already opened a connection, without the listener.
            engine.dispose()
    return engine


def _set_sqlite_modes(connection: Any, _record: Any) -> None:
    """Set modes of SQLite: readers and the writer do not block each other, and
    commits survive a power cut.
    """
    connection.execute('PRAGMA journal_mode = WAL')
    # An acknowledged message must survive a power cut.
    connection.execute('PRAGMA synchronous = FULL')


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Translate errors of a database into errors of the store.

    :raises StoreAway: if the database did not answer, or timed out on a lock.
    :raises StoreError: for all other errors; its text contains no row.
    """
    try:
        yield
    except db_exception.DBDuplicateEntry:
        outages.SERVERS.restored(outages.DATABASE)
        raise
    except (db_exception.DBError, sa.exc.SQLAlchemyError) as error:
        name = _original_error_name(error)
        if isinstance(error, _AWAY) or name in _NOBODYS_FAULT:
            outages.SERVERS.lost(outages.DATABASE, name)
            raise exception.StoreAway(
                f'the database does not answer: {name}'
            ) from None
        raise exception.StoreError(
            f'the database refused a statement: {name}'
        ) from None
    outages.SERVERS.restored(outages.DATABASE)


def _original_error_name(error: Exception) -> str:
    """Return the class name of the original error, without statement and
    parameters.
    """
    if type(error) not in (db_exception.DBError, *_PLAIN):
        return type(error).__name__
    inner = getattr(error, 'inner_exception', None) or error
    first = getattr(inner, 'orig', None) or inner
    return type(first).__name__


class Tables:
    """Executes statements and commits each at once.

    :param engine: engine of the database.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine.execution_options(isolation_level='AUTOCOMMIT')
        self._unread: dict[str, Exception] = {}

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        """Open a connection in which each statement is committed at once."""
        with self._engine.connect() as connection:
            # oslo.db takes this mark for a transaction. Without it, oslo.db
            # would begin one in SQLite, which holds the lock until its end.
            connection.info['in_transaction'] = True
            yield connection

    def insert(self, table: sa.Table, *rows: Mapping[str, Any]) -> bool:
        """Add rows, all or none; return ``False`` if a row with such a key
        exists.
        """
        # The database applies one statement as a whole or not at all.
        statement = sa.insert(table).values([dict(row) for row in rows])
        try:
            with translate_errors(), self._connection() as connection:
                connection.execute(statement)
        except db_exception.DBDuplicateEntry:
            return False
        return True

    def insert_if(
        self,
        table: sa.Table,
        row: Mapping[str, Any],
        condition: sa.ColumnElement[bool],
    ) -> bool:
        """Add a row if a condition is true; return ``False`` if it was not
        added.
        """
        values = [
            sa.literal(value, table.c[name].type)
            for name, value in row.items()
        ]
        wanted = sa.select(*values).where(condition)
        statement = sa.insert(table).from_select(list(row), wanted)
        try:
            with translate_errors(), self._connection() as connection:
                # Without this option SQLAlchemy drops the row count of
                # PostgreSQL.
                done = connection.execute(
                    statement, execution_options={'preserve_rowcount': True}
                )
                return done.rowcount > 0
        except db_exception.DBDuplicateEntry:
            return False

    def insert_from_query(
        self, table: sa.Table, columns: Sequence[str], query: sa.Select[Any]
    ) -> None:
        """Insert the rows that a query returns, all or none.

        :param columns: names of columns, in the order of the query.
        """
        statement = sa.insert(table).from_select(list(columns), query)
        # If another process inserted them first, its rows are equal.
        with (
            contextlib.suppress(db_exception.DBDuplicateEntry),
            translate_errors(),
            self._connection() as connection,
        ):
            connection.execute(statement)

    def update(self, statement: sa.Update | sa.Delete) -> bool:
        """Change or delete rows; return ``False`` if no row matched."""
        with translate_errors(), self._connection() as connection:
            return connection.execute(statement).rowcount > 0

    def update_each(
        self, statement: sa.Update, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """Execute one statement for each of many rows of parameters."""
        with translate_errors(), self._connection() as connection:
            connection.execute(statement, [dict(row) for row in rows])

    def server_time(self) -> float | None:
        """Return the time of the database server, seconds of the epoch;
        ``None`` for SQLite.
        """
        query = _TIME.get(self._engine.dialect.name)
        if query is None:
            return None
        with translate_errors(), self._connection() as connection:
            return float(connection.execute(sa.text(query)).scalar_one())

    def select(self, query: sa.Select[Any]) -> list[dict[str, Any]]:
        """Return the rows of a query as dictionaries by name of column."""
        names, rows = self.select_tuples(query)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def single_row(self, table: sa.Table) -> dict[str, Any]:
        """Return the row of a table that has one row; a missing row is created
        again.
        """
        rows = self.select(sa.select(table))
        if not rows:
            LOG.error(
                'table %s: its only row is missing: an empty one is created',
                table,
            )
            self.insert(table, {'id': 1, **tables.ONLY[table.name]})
            rows = self.select(sa.select(table))
        return rows[0]

    def build_objects(
        self,
        table_name: str,
        key_column: str,
        rows: Iterable[Mapping[str, Any]],
        build: Callable[[Mapping[str, Any]], _T],
    ) -> list[tuple[str, _T]]:
        """Build an object from each row; rows that cannot be read are recorded
        and left out.

        :param table_name: name of the table.
        :param key_column: column that identifies rows.
        :param build: returns the object of a row.
        :returns: key and object of each row, in the order of the rows.
        """
        found = []
        for row in rows:
            try:
                found.append((row[key_column], build(row)))
            except Exception as error:  # noqa: BLE001 - other rows are read
                self.record_unreadable(table_name, str(row[key_column]), error)
        return found

    def record_unreadable(
        self, table_name: str, key: str, error: Exception
    ) -> None:
        """Record that a row cannot be read."""
        if len(self._unread) < _MOST_UNREAD:
            self._unread[f'{key} of {table_name}'] = error

    def pop_unreadable_rows(self) -> dict[str, Exception]:
        """Return the errors of rows that could not be read since the last
        call, by name of the row.
        """
        found, self._unread = self._unread, {}
        return found

    def select_tuples(
        self, query: sa.Select[Any]
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Return the names of the columns of a query, and its rows as
        tuples.
        """
        with translate_errors(), self._connection() as connection:
            found = connection.execute(query)
            # Rows that know their column names take twice the time.
            return tuple(found.keys()), [tuple(row) for row in found]


def batches(
    rows: Iterable[dict[str, Any]], large_column: str
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows in as few groups as the statements of a database allow.

    :param large_column: name of the largest column.
    """
    batch: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        size += len(row[large_column])
        if batch and (size > _MOST_BYTES or len(batch) == _MOST_ROWS):
            yield batch
            batch, size = [], len(row[large_column])
        batch.append(row)
    if batch:
        yield batch
