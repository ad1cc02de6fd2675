# SPDX-License-Identifier: Apache-2.0

"""Builder of the configured store of requests."""

import pathlib

from oslo_config import cfg

from nova_fairness.cluster.store import store as store_module


def open_store(conf: cfg.ConfigOpts) -> store_module.Store:
    """Open the configured store of requests.

    :raises StoreError: if the store cannot be opened.
    """
    options = conf.fairness_cluster
    return store_module.open_store(
        options.database, pathlib.Path(options.key_file)
    )
