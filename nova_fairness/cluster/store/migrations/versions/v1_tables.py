# SPDX-License-Identifier: Apache-2.0

"""All tables of this version, in a database that has none."""

from nova_fairness.cluster.store import tables
from nova_fairness.cluster.store.migrations import changes

revision = 'v1_tables'
down_revision = None


def upgrade() -> None:
    """Create the tables, their indexes, and the rows of tables of one row."""
    for table in tables.METADATA.sorted_tables:
        changes.create_table(table, tables.ONLY.get(table.name))
