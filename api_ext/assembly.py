# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Builds the application out of Nova's configuration."""

import functools

from oslo_config import cfg

from api_ext import application
from api_ext import asked
from api_ext import connection
from api_ext import enforcement
from nova_fairness.conf import api as api_conf


def build(
    conf: cfg.ConfigOpts, locate: asked.Locate | None = None
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
            max_limit=conf.fairness_api.max_limit,
            locate=locate,
        )
    )
