# SPDX-License-Identifier: Apache-2.0

"""A row for each account with settings, and for each project."""

from collections.abc import Callable
import hashlib
import json
from typing import Any

from alembic import op
import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '22_trades'
down_revision = '21_stays'

_Parts = dict[str, Any]
"""Contents by owner."""


def upgrade() -> None:
    """Divide two rows that grew with all accounts and processes.

    After an interruption it can be done again: old rows are emptied last.
    """
    for table, name, content in (
        ('account_settings', 'account', 'given'),
        ('trades', 'project', 'kept'),
    ):
        changes.create_table(
            table,
            sa.Column('key', sa.String(64), primary_key=True),
            sa.Column(name, sa.Text, nullable=False),
            sa.Column(content, changes.long_text(), nullable=False),
        )
    _divide('shares', 'given', 'account_settings', 'account', _accounts)
    _divide('market', 'kept', 'trades', 'project', _projects)


def _divide(
    old: str, column: str, new: str, name: str, parts: Callable[[Any], _Parts]
) -> None:
    """Write what one row has of all owners as one row for each."""
    before = sa.table(old, sa.column(column))
    after = sa.table(new, sa.column('key'), sa.column(name), sa.column(column))
    bind = op.get_bind()
    kept = parts(json.loads(bind.execute(sa.select(before)).scalar() or '{}'))
    if not kept:
        return
    bind.execute(sa.delete(after))
    for owner, own in sorted(kept.items()):
        row = {
            'key': hashlib.sha256(owner.encode()).hexdigest(),
            name: owner,
            column: json.dumps(own, separators=(',', ':')),
        }
        bind.execute(sa.insert(after).values(row))
    bind.execute(sa.update(before).values({column: '{}'}))


def _accounts(given: Any) -> _Parts:
    return dict(given)


def _projects(kept: Any) -> _Parts:
    """Groups and sums of projects. Meters begin when processes are seen."""
    found: dict[str, dict[str, dict[str, Any]]] = {}

    def own(project: str) -> dict[str, dict[str, Any]]:
        empty: dict[str, dict[str, Any]]
        empty = {'groups': {}, 'spent': {}, 'meters': {}}
        return found.setdefault(project, empty)

    for project, name, rate, count in kept.get('groups', ()):
        own(project)['groups'][name] = [rate, count]
    for account, units in kept.get('spent', {}).items():
        own(account.partition('/')[0])['spent'][account] = units
    return found
