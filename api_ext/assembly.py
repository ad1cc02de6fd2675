# SPDX-License-Identifier: Apache-2.0

"""Builds the application out of Nova's configuration."""

import functools

from oslo_config import cfg

from api_ext import application
from api_ext import connection
from api_ext import enforcement
from api_ext import http_request
from nova_fairness.conf import api as api_conf


def build(
    conf: cfg.ConfigOpts, locate: http_request.Locate | None = None
) -> application.Application:
    """Build it; nothing is connected yet.

    :param conf: Nova's; our options are registered on it.
    :param locate: finds instances.
    """
    api_conf.register_opts(conf)
    return application.Application(
        application.Services(
            enforcement=enforcement.Enforcement(conf),
            connect=connection.PerProcess(
                functools.partial(connection.connected, conf)
            ),
            connect_requests=connection.PerProcess(
                functools.partial(connection.connected_requests, conf)
            ),
            max_limit=conf.fairness_api.max_limit,
            locate=locate,
        )
    )
