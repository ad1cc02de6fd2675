# SPDX-License-Identifier: Apache-2.0

"""All options of this product, and warnings about unknown options."""

from collections.abc import Iterable

from oslo_config import cfg
from oslo_log import log as logging

from nova_fairness.apply import privileged_client
from nova_fairness.conf import api
from nova_fairness.conf import cluster
from nova_fairness.conf import file_faults
from nova_fairness.conf import opts
from oslo_messaging_zmq import options as driver

LOG = logging.getLogger(__name__)

HELPERS = privileged_client.SECTION, privileged_client.NETWORK_SECTION
"""Sections with oslo.privsep's options of the privileged helpers."""


def misspelt(files: Iterable[str]) -> list[str]:
    """Sentences about options that do not exist.

    :param files: paths of configuration files.
    """
    listed = [
        group
        for package in (opts, cluster, api, driver)
        for group in package.list_opts()
    ]
    helpers = [(name, privileged_client.OPTIONS) for name in HELPERS]
    return file_faults.unknown_options(files, [*listed, *helpers])


def warn(conf: cfg.ConfigOpts) -> None:
    """Log a warning for each option that does not exist."""
    for sentence in misspelt(file_faults.configuration_files(conf)):
        LOG.warning('%s', sentence)
