# SPDX-License-Identifier: Apache-2.0

"""Creation of the tables, and upgrades of older tables to this version.

The scripts are in ``migrations/versions``, one per revision. Downgrades do not
exist.
"""

import pathlib
import re

from alembic import command
from alembic import config as alembic_config
from alembic import migration
from alembic import script
import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster.store import database

_SCRIPTS = pathlib.Path(__file__).parent / 'migrations'


def upgrade_tables(engine: sa.Engine) -> None:
    """Upgrade the tables to the newest revision, if they are older.

    If an upgrade is interrupted, the next call completes it: each change first
    checks whether it was already made.

    :param engine: engine of the database.
    :raises SchemaMismatch: if the tables have a revision that this version
        does not know; they are not changed.
    :raises StoreAway: if the database does not answer.
    :raises StoreError: if the database refuses a change.
    """
    with database.translate_errors():
        found = current_revision(engine)
    if found is not None and found not in known_revisions():
        raise _unknown_revision_error(found)
    try:
        with database.translate_errors(), engine.begin() as connection:
            command.upgrade(_alembic_config(connection), 'head')
    except exception.StoreError as error:
        raise type(error)(
            f'the tables have the revision {found or "none"}: the upgrade'
            f' failed: {error}; its completed steps remain; run'
            ' "nova-fairness-cluster upgrade" again'
        ) from None


def check_revision(engine: sa.Engine) -> None:
    """Check that the tables have the newest revision.

    :raises SchemaMismatch: if they are missing, older, newer, or of no
        release; the message contains the remedy.
    """
    found, newest = current_revision(engine), known_revisions()[0]
    if found == newest:
        return
    if found is None or found in known_revisions():
        raise exception.SchemaMismatch(
            f'the tables have the revision {found or "none"}: this version of'
            f' the program needs {newest}; run "nova-fairness-cluster'
            ' upgrade"'
        )
    raise _unknown_revision_error(found)


def current_revision(engine: sa.Engine) -> str | None:
    """Return the revision of the tables; ``None`` without tables."""
    with engine.connect() as connection:
        context = migration.MigrationContext.configure(connection)
        return context.get_current_revision()


def known_revisions() -> list[str]:
    """Return the revisions that this version knows, the newest first."""
    scripts = script.ScriptDirectory.from_config(_alembic_config())
    return [each.revision for each in scripts.walk_revisions()]


def _unknown_revision_error(revision: str) -> exception.SchemaMismatch:
    """Return the error for tables with a revision that this version does not
    know.
    """
    newest = known_revisions()[0]
    if _revision_number(revision) > _revision_number(newest):
        return exception.SchemaMismatch(
            f'the tables have the revision {revision}: this version of the'
            f' program knows no newer revision than {newest}; upgrade the'
            ' program'
        )
    return exception.SchemaMismatch(
        f'the tables have the revision {revision}: no release has this'
        ' revision, so the tables are not changed; name an empty database in'
        ' [fairness_cluster] database, and run "nova-fairness-cluster upgrade"'
    )


def _revision_number(revision: str) -> int:
    """Return the number of a revision; 0 if its name is not that of a
    release.
    """
    named = re.match(r'v(\d+)_', revision)
    return int(named[1]) if named else 0


def _alembic_config(
    connection: sa.Connection | None = None,
) -> alembic_config.Config:
    """Return the configuration of alembic."""
    made = alembic_config.Config()
    # alembic reads it as a template.
    made.set_main_option('script_location', str(_SCRIPTS).replace('%', '%%'))
    made.attributes['connection'] = connection
    return made
