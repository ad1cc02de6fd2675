# SPDX-License-Identifier: Apache-2.0

"""Making the tables, and bringing older ones up to this version.

The scripts are in ``migrations/versions``, one per change, and go one way.
"""

import pathlib

from alembic import command
from alembic import config as alembic_config
from alembic import migration
from alembic import script
import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster.store import database

_SCRIPTS = pathlib.Path(__file__).parent / 'migrations'


def upgrade(engine: sa.Engine, revision: str = 'head') -> None:
    """Bring the tables to a revision; nothing is done if they are there.

    The next call completes an upgrade that was killed half way: each change
    looks whether it is made already.

    :param engine: of the database.
    :param revision: of the scripts.
    :raises SchemaMismatch: if the tables are of a newer version.
    :raises StoreAway: if the database does not answer.
    :raises StoreError: if it refuses a change.
    """
    with database.failures():
        found = present(engine)
    if found is not None and found not in known():
        raise _newer(found)
    try:
        with database.failures(), engine.begin() as connection:
            command.upgrade(_config(connection), revision)
    except exception.StoreError as error:
        raise type(error)(
            f'tables: they are not upgraded from revision {found or "none"}: '
            f'{error}; completed steps stay; run "nova-fairness-cluster '
            'upgrade" again'
        ) from None


def check(engine: sa.Engine) -> None:
    """See to it that the tables are those of this version.

    :raises SchemaMismatch: if they are missing, older or newer; the message
        says what to do.
    """
    found, newest = present(engine), known()[0]
    if found == newest:
        return
    if found is None or found in known():
        raise exception.SchemaMismatch(
            f'the tables have the revision {found or "none"}, {newest} is'
            ' needed: they must be upgraded (nova-fairness-cluster upgrade)'
        )
    raise _newer(found)


def present(engine: sa.Engine) -> str | None:
    """The revision of the tables; ``None`` without tables."""
    with engine.connect() as connection:
        context = migration.MigrationContext.configure(connection)
        return context.get_current_revision()


def known() -> list[str]:
    """The revisions that this version knows, the newest first."""
    scripts = script.ScriptDirectory.from_config(_config())
    return [each.revision for each in scripts.walk_revisions()]


def _newer(found: str) -> exception.SchemaMismatch:
    return exception.SchemaMismatch(
        f'the tables have the revision {found}, which is newer than this'
        f' version knows ({known()[0]}): upgrade the program'
    )


def _config(
    connection: sa.Connection | None = None,
) -> alembic_config.Config:
    made = alembic_config.Config()
    # alembic reads it as a template.
    made.set_main_option('script_location', str(_SCRIPTS).replace('%', '%%'))
    made.attributes['connection'] = connection
    return made
