# SPDX-License-Identifier: Apache-2.0

"""Creation of the application from Nova's configuration."""

import functools
import logging

from oslo_config import cfg

from api_ext import application
from api_ext import connection
from api_ext import enforcement
from api_ext import http_request
from nova_fairness.conf import api as api_conf
from nova_fairness.conf import file_faults

LOG = logging.getLogger(__name__)


def build(
    conf: cfg.ConfigOpts, locate: http_request.Locate | None = None
) -> application.Application:
    """Create the application, without any connection.

    :param conf: Nova's configuration; the options of this package are
        registered in it.
    :param locate: finds instances in Nova.
    """
    api_conf.register_opts(conf)
    # Other sections of Nova's files are unknown here.
    files = file_faults.configuration_files(conf)
    for sentence in file_faults.unknown_options(
        files, api_conf.list_opts(), ()
    ):
        LOG.warning('%s', sentence)
    return application.Application(
        application.Services(
            enforcement=enforcement.Enforcement(conf),
            connect=connection.PerProcess(
                functools.partial(connection.connect_agents, conf)
            ),
            connect_requests=connection.PerProcess(
                functools.partial(connection.connect_cluster_service, conf)
            ),
            locate=locate,
        )
    )
