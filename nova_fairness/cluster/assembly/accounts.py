# SPDX-License-Identifier: Apache-2.0

"""Configured accounts and limits."""

from collections.abc import Callable
from collections.abc import Mapping
import pathlib
import time

from oslo_config import cfg

from nova_fairness import exception
from nova_fairness.cluster.accounts import accounts as accounts_module
from nova_fairness.cluster.accounts import limits_file
from nova_fairness.cluster.accounts import share_file
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import keystone
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster


def limits(
    options: cfg.ConfigOpts.GroupAttr,
) -> Mapping[str, cluster.Limits]:
    """Limits from the limits file, by account.

    :raises ConfigurationError: if the file cannot be used.
    """
    path = options.limits_file
    return limits_file.read(pathlib.Path(path)) if path else {}


def written(
    conf: cfg.ConfigOpts,
) -> Callable[[], tuple[cluster.Account, ...]]:
    """Build the reader of the shares file.

    :raises ConfigurationError: if the file cannot be used.
    """
    path = conf.fairness_cluster.shares_file
    try:
        return (
            share_file.watched(pathlib.Path(path)).content if path else tuple
        )
    except exception.BadShares as error:
        raise exception.ConfigurationError(
            f'[fairness_cluster] shares_file: {error}'
        ) from error


def _mirrored(
    conf: cfg.ConfigOpts,
    cloud: clients.CloudClients,
    store: store_module.Store,
    written: Callable[[], tuple[cluster.Account, ...]],
) -> Callable[[], tuple[cluster.Account, ...]]:
    """Accounts of the shares file, joined with Keystone's if that is
    configured.
    """
    if not conf.fairness_cluster.keystone_tree:
        return written
    return keystone.AccountMirror(
        keystone.Keystone(cloud.keystone),
        written,
        lambda: store.read_ledger().parts,
        time.monotonic,
    ).accounts


def known(
    conf: cfg.ConfigOpts,
    written: Callable[[], tuple[cluster.Account, ...]],
    cloud: clients.CloudClients,
    store: store_module.Store,
) -> accounts_module.Accounts:
    """Present accounts; Keystone knows which projects exist."""
    return accounts_module.Accounts(
        store,
        _mirrored(conf, cloud, store, written),
        exists=keystone.Keystone(cloud.keystone).account_exists,
    )
