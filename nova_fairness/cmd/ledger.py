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
        raise exception.ConfigurationError(
            '--to: no file given; give the file to write'
        )
    try:
        # Import here: these libraries take more memory than the service.
        from nova_fairness.cluster.usage import export as export_module
    except ImportError as error:
        raise exception.ConfigurationError(
            f'export-ledger: a library is missing: {error}; install the extra'
            ' parquet'
        ) from error
    store = storage.open_store(conf)
    classes, charges = charge_log.read_charges(
        store, store.read_ledger().version
    )
    count = export_module.write_charges(
        pathlib.Path(conf.to), charges, classes
    )
    sys.stdout.write(
        plain.lines(f'{conf.to}: {wording.counted(count, "row")} written\n')
    )


def check(conf: cfg.ConfigOpts) -> None:
    """Compute the ledger again from all charges, and compare the results.

    :raises BadLedger: if the ledgers differ.
    """
    store = storage.open_store(conf)
    difference, count = charge_log.ledger_difference(
        store, conf.fairness_cluster.half_life
    )
    sys.stdout.write(
        plain.lines(
            f'ledger: computed again from {wording.counted(count, "charge")}:'
            f' the largest difference is {difference:.3g} of the cloud\n'
        )
    )
    if difference > charge_log.TOLERATED:
        raise exception.BadLedger(
            'ledger: differs from the charges: expected a difference of at'
            f' most {charge_log.TOLERATED:g}; it can be larger after a change'
            ' of half_life'
        )
