# SPDX-License-Identifier: Apache-2.0

"""Builders of accounts and limits from the configuration."""

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


def read_limits(
    options: cfg.ConfigOpts.GroupAttr,
) -> Mapping[str, cluster.Limits]:
    """Read the limits file. Returns limits by name of the account.

    :raises ConfigurationError: if the file is invalid or cannot be read.
    """
    path = options.limits_file
    return limits_file.read(pathlib.Path(path)) if path else {}


def shares_file_accounts(
    conf: cfg.ConfigOpts,
) -> Callable[[], tuple[cluster.Account, ...]]:
    """Build the function that returns the accounts of the shares file.

    :raises ConfigurationError: if the file is invalid or cannot be read.
    """
    path = conf.fairness_cluster.shares_file
    try:
        return (
            share_file.open_watched_file(pathlib.Path(path)).content
            if path
            else tuple
        )
    except exception.BadShares as error:
        raise exception.ConfigurationError(
            f'[fairness_cluster] shares_file: {error}'
        ) from error


def _mirrored_accounts(
    conf: cfg.ConfigOpts,
    cloud: clients.CloudClients,
    store: store_module.Store,
    written: Callable[[], tuple[cluster.Account, ...]],
) -> Callable[[], tuple[cluster.Account, ...]]:
    """Build the function that returns the accounts of the shares file, with
    Keystone's projects if that is configured.
    """
    if not conf.fairness_cluster.keystone_tree:
        return written
    return keystone.AccountMirror(
        keystone.Keystone(cloud.keystone),
        written,
        lambda: store.read_ledger().parts,
        time.monotonic,
    ).accounts


def build_accounts(
    conf: cfg.ConfigOpts,
    written: Callable[[], tuple[cluster.Account, ...]],
    cloud: clients.CloudClients,
    store: store_module.Store,
) -> accounts_module.Accounts:
    """Build the share tree; Keystone decides which projects exist."""
    return accounts_module.Accounts(
        store,
        _mirrored_accounts(conf, cloud, store, written),
        exists=keystone.Keystone(cloud.keystone).account_exists,
    )
