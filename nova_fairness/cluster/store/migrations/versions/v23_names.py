# SPDX-License-Identifier: Apache-2.0

"""Names of hosts that are told apart by case on every database."""

from nova_fairness.cluster.store.migrations import changes

revision = '23_names'
down_revision = '22_trades'


def upgrade() -> None:
    """Two hosts of one name but for case had one row on MariaDB."""
    changes.tell_case_apart('nodes', 'host', 255)
    changes.tell_case_apart('prices', 'host', 255)
    changes.tell_case_apart('prices', 'resource_class', 255)
