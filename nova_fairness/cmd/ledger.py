# SPDX-License-Identifier: Apache-2.0

"""Commands that export and check the ledger of the cluster service."""

import pathlib
import sys

from oslo_config import cfg

from nova_fairness import exception
from nova_fairness.cluster.assembly import storage
from nova_fairness.cluster.usage import charge_log
from nova_fairness.model import plain
from nova_fairness.model import wording


def export(conf: cfg.ConfigOpts) -> None:
    """Write the charges of all accounts to a file."""
    if not conf.to:
        raise exception.ConfigurationError('--to FILE says where it goes')
    try:
        # Import here: these libraries take more memory than the service.
        from nova_fairness.cluster.usage import export as export_module
    except ImportError as error:
        raise exception.ConfigurationError(
            f'export-ledger needs the extra parquet: {error}'
        ) from error
    store = storage.open_store(conf)
    classes, charges = charge_log.recorded(store, store.read_ledger().version)
    count = export_module.write(pathlib.Path(conf.to), charges, classes)
    sys.stdout.write(
        plain.lines(f'{conf.to} has {wording.counted(count, "row")}\n')
    )


def check(conf: cfg.ConfigOpts) -> None:
    """Compute the ledger again from all charges, and compare.

    :raises BadLedger: if the ledgers differ.
    """
    store = storage.open_store(conf)
    difference, count = charge_log.difference(
        store, conf.fairness_cluster.half_life
    )
    sys.stdout.write(
        plain.lines(
            f'computed again from {wording.counted(count, "charge")}, the'
            f' ledger differs by {difference:.3g} of the cloud at most\n'
        )
    )
    if difference > charge_log.TOLERATED:
        raise exception.BadLedger(
            f'expected a difference of at most {charge_log.TOLERATED:g}; it is'
            ' larger if half_life was another one meanwhile'
        )
