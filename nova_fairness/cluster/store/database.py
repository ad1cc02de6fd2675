# SPDX-License-Identifier: Apache-2.0

"""Opening a database, and what its failures mean to callers."""

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
"""Errors that oslo.db lets pass where a transaction begins or ends."""

_NOBODYS_FAULT = ('OperationalError', 'InterfaceError')
"""Errors of drivers for a lock that is not given up, a full disk, a server
that goes down. oslo.db names the others, such as a table that is missing."""

_MOST_ROWS = 500
_MOST_BYTES = 4 * 2**20
"""Of one statement, beyond its first row: MariaDB takes 16 MiB by default."""

_MOST_UNREAD = 100
"""Most rows that are noted as unreadable."""

_TIME = {
    'mysql': 'SELECT UNIX_TIMESTAMP(NOW(6))',
    'postgresql': 'SELECT EXTRACT(EPOCH FROM CLOCK_TIMESTAMP())',
}

_CONNECT_TRIES = 3
_BETWEEN_TRIES_S = 1


def connect(url: str) -> sa.Engine:
    """Open a database.

    Every statement is committed at once, so that a process which is stopped
    in the middle of its work holds no lock.

    :param url: of SQLAlchemy: ``sqlite:////path``, ``mysql+pymysql://`` or
        ``postgresql+psycopg://``.
    :raises StoreAway: if it does not answer.
    """
    with failures():
        engine: sa.Engine = engines.create_engine(
            url,
            max_retries=_CONNECT_TRIES,
            retry_interval=_BETWEEN_TRIES_S,
            # Else it gives up the CPU after each statement, for eventlet.
            thread_checkin=False,
        )
        if engine.dialect.name == 'sqlite':
            sa.event.listen(engine, 'connect', _write_ahead)
            # oslo.db tried a connection already, without the listener.
            engine.dispose()
    return engine


def _write_ahead(connection: Any, _record: Any) -> None:
    """Readers and the one writer do not wait for each other."""
    connection.execute('PRAGMA journal_mode = WAL')
    # An acknowledged message must survive a power cut.
    connection.execute('PRAGMA synchronous = FULL')


@contextlib.contextmanager
def failures() -> Iterator[None]:
    """Say in our words what a database said.

    :raises StoreAway: if it did not answer, or gave up waiting for others.
    :raises StoreError: for everything else; no text of a row is in it.
    """
    try:
        yield
    except db_exception.DBDuplicateEntry:
        outages.SERVERS.restored(outages.DATABASE)
        raise
    except (db_exception.DBError, sa.exc.SQLAlchemyError) as error:
        name = _origin(error)
        if isinstance(error, _AWAY) or name in _NOBODYS_FAULT:
            outages.SERVERS.lost(outages.DATABASE, name)
            raise exception.StoreAway(
                f'the database does not answer: {name}'
            ) from None
        raise exception.StoreError(
            f'the database refused a statement: {name}'
        ) from None
    outages.SERVERS.restored(outages.DATABASE)


def _origin(error: Exception) -> str:
    """Name what went wrong, without statement and parameters."""
    if type(error) not in (db_exception.DBError, *_PLAIN):
        return type(error).__name__
    inner = getattr(error, 'inner_exception', None) or error
    first = getattr(inner, 'orig', None) or inner
    return type(first).__name__


class Tables:
    """Tables in which every statement is committed at once.

    :param engine: of the database.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine.execution_options(isolation_level='AUTOCOMMIT')
        self._unread: dict[str, Exception] = {}

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        with self._engine.connect() as connection:
            # By this mark oslo.db knows of a transaction. Without it, it would
            # begin one for SQLite, which holds the lock until it ends.
            connection.info['in_transaction'] = True
            yield connection

    def insert(self, table: sa.Table, *rows: Mapping[str, Any]) -> bool:
        """Add rows, all or none; ``False`` if one's key is there already."""
        # One statement, which the database does wholly or not at all.
        statement = sa.insert(table).values([dict(row) for row in rows])
        try:
            with failures(), self._connection() as connection:
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
        """Add a row if something is so; ``False`` if not, or it is there."""
        values = [
            sa.literal(value, table.c[name].type)
            for name, value in row.items()
        ]
        wanted = sa.select(*values).where(condition)
        statement = sa.insert(table).from_select(list(row), wanted)
        try:
            with failures(), self._connection() as connection:
                # PostgreSQL's number is thrown away if nobody says this.
                done = connection.execute(
                    statement, execution_options={'preserve_rowcount': True}
                )
                return done.rowcount > 0
        except db_exception.DBDuplicateEntry:
            return False

    def copy(
        self, table: sa.Table, columns: Sequence[str], found: sa.Select[Any]
    ) -> None:
        """Add what is found as rows, all or none.

        :param columns: names, in the order of what is found.
        """
        statement = sa.insert(table).from_select(list(columns), found)
        # Another process that copied the same had the same rows.
        with (
            contextlib.suppress(db_exception.DBDuplicateEntry),
            failures(),
            self._connection() as connection,
        ):
            connection.execute(statement)

    def update(self, statement: sa.Update | sa.Delete) -> bool:
        """Change or delete rows; ``False`` if there was none to change."""
        with failures(), self._connection() as connection:
            return connection.execute(statement).rowcount > 0

    def update_each(
        self, statement: sa.Update, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """Change by one statement with the parameters of each of many rows."""
        with failures(), self._connection() as connection:
            connection.execute(statement, [dict(row) for row in rows])

    def time(self) -> float | None:
        """Seconds of the epoch; ``None`` from one that is a file here."""
        query = _TIME.get(self._engine.dialect.name)
        if query is None:
            return None
        with failures(), self._connection() as connection:
            return float(connection.execute(sa.text(query)).scalar_one())

    def select(self, query: sa.Select[Any]) -> list[dict[str, Any]]:
        """Read rows, by name of column."""
        names, rows = self.read(query)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def only(self, table: sa.Table) -> dict[str, Any]:
        """The row of a table of one; a lost one is replaced by a new one."""
        rows = self.select(sa.select(table))
        if not rows:
            LOG.error(
                'the row of the table %s is missing: a new one is written',
                table,
            )
            self.insert(table, {'id': 1, **tables.ONLY[table.name]})
            rows = self.select(sa.select(table))
        return rows[0]

    def made(
        self,
        name: str,
        key: str,
        rows: Iterable[Mapping[str, Any]],
        make: Callable[[Mapping[str, Any]], _T],
    ) -> list[tuple[str, _T]]:
        """Make something of each row, except of rows that cannot be read.

        :param name: of the table.
        :param key: column that names rows.
        :returns: names and what was made, in their order.
        """
        found = []
        for row in rows:
            try:
                found.append((row[key], make(row)))
            except Exception as error:  # noqa: BLE001 - other rows are read
                self.note(name, str(row[key]), error)
        return found

    def note(self, name: str, key: str, error: Exception) -> None:
        """Take note of a row that cannot be read."""
        if len(self._unread) < _MOST_UNREAD:
            self._unread[f'{key} of {name}'] = error

    def unread(self) -> dict[str, Exception]:
        """Rows that could not be read since this was asked last, and why."""
        found, self._unread = self._unread, {}
        return found

    def read(
        self, query: sa.Select[Any]
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Read rows, and the names of their columns."""
        with failures(), self._connection() as connection:
            found = connection.execute(query)
            # Rows that know their columns are twice as slow.
            return tuple(found.keys()), [tuple(row) for row in found]


def batches(
    rows: Iterable[dict[str, Any]], column: str
) -> Iterator[list[dict[str, Any]]]:
    """Divide rows into as few statements as a database takes.

    :param column: that is large.
    """
    batch: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        size += len(row[column])
        if batch and (size > _MOST_BYTES or len(batch) == _MOST_ROWS):
            yield batch
            batch, size = [], len(row[column])
        batch.append(row)
    if batch:
        yield batch
