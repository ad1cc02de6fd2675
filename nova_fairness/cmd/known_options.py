# SPDX-License-Identifier: Apache-2.0

"""Check for unknown options among all options of this product."""

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


def describe_unknown_options(files: Iterable[str]) -> list[str]:
    """Describe the unknown options in configuration files.

    :param files: paths of configuration files.
    """
    listed = [
        group
        for package in (opts, cluster, api, driver)
        for group in package.list_opts()
    ]
    helpers = [(name, privileged_client.OPTIONS) for name in HELPERS]
    return file_faults.unknown_options(files, [*listed, *helpers])


def warn_of_unknown_options(conf: cfg.ConfigOpts) -> None:
    """Log a warning for each unknown option."""
    for sentence in describe_unknown_options(
        file_faults.configuration_files(conf)
    ):
        LOG.warning('%s', sentence)
