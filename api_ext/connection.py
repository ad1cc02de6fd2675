# SPDX-License-Identifier: Apache-2.0

"""Connects each process of nova-api to the agents when it first needs them.

Servers such as uwsgi load the application and fork then: sockets and threads
that were made before would be shared, or be gone.
"""

from collections.abc import Callable
import logging
import os
import threading

from oslo_config import cfg
import oslo_messaging

from api_ext import agents
from api_ext import faults
from nova_fairness.rpc import client

LOG = logging.getLogger(__name__)


class _Process:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.agents: agents.Agents | None = None


class PerProcess:
    """Makes the agents once in every process.

    :param make: called in the process that needs them.
    :param process_id: of the process that asks.
    """

    def __init__(
        self,
        make: Callable[[], agents.Agents],
        process_id: Callable[[], int] = os.getpid,
    ) -> None:
        self._make = make
        self._process_id = process_id
        self._processes: dict[int, _Process] = {}

    def __call__(self) -> agents.Agents:
        """Agents of this process.

        :raises Unavailable: if they cannot be made; the log says why, and
            the next request tries again.
        """
        # The lock is of this process: one that was held while another
        # process was forked would stay so for ever. What a parent made is
        # kept, because to close it here would close it there.
        process = self._processes.setdefault(self._process_id(), _Process())
        with process.lock:
            if process.agents is None:
                process.agents = self._made()
            return process.agents

    def _made(self) -> agents.Agents:
        try:
            return self._make()
        except Exception as error:  # drivers raise what they like
            LOG.exception('The transport of nova-fairness cannot be used')
            raise faults.Unavailable(
                'The agents cannot be reached; the log of nova-api says why.'
            ) from error


def connected(conf: cfg.ConfigOpts) -> agents.Agents:
    """Connect to the agents that the configuration names.

    :param conf: Nova's, with the options of :mod:`nova_fairness.conf.api`.
    :raises Exception: of oslo.messaging or of its driver.
    """
    own = conf.fairness.transport_url or None
    url = oslo_messaging.TransportURL.parse(conf, own)
    transport = oslo_messaging.get_rpc_transport(
        conf,
        url=url,
        allowed_remote_exmods=list(client.ALLOWED_REMOTE_MODULES),
    )
    settings = conf.fairness_api
    return agents.Agents(
        client.FairnessClient(
            transport,
            settings.rpc_timeout,
            conf.fairness_exchange.domain,
            settings.parallel_calls,
        ),
        agents.Limits(
            kept_s=settings.answers_kept,
            silent_s=settings.silence_kept,
            hosts_count=None if _is_direct(url) else settings.max_broker_hosts,
        ),
    )


def _is_direct(url: oslo_messaging.TransportURL) -> bool:
    return str(url.transport).partition('+')[0] == 'zmq'
