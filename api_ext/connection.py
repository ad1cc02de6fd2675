# SPDX-License-Identifier: Apache-2.0

"""Connections of each process of nova-api to agents and cluster service,
opened on first use.

Servers such as uwsgi load the application and then fork. Sockets and threads
from before the fork would be shared or lost.
"""

from collections.abc import Callable
import logging
import os
import threading
from typing import Generic
from typing import TypeVar

from oslo_config import cfg
import oslo_messaging

from api_ext import agents
from api_ext import faults
from nova_fairness.rpc import client
from nova_fairness.rpc import protocol
from nova_fairness.rpc import requests
from nova_fairness.rpc import silence
from nova_fairness.runtime import signatures

LOG = logging.getLogger(__name__)


T = TypeVar('T')


class _ProcessEntry(Generic[T]):
    """The lock and the object of one process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made: T | None = None


class PerProcess(Generic[T]):
    """Creates an object once in every process.

    :param make: creates the object, in the process that uses it.
    :param process_id: returns the ID of the current process.
    """

    def __init__(
        self,
        make: Callable[[], T],
        process_id: Callable[[], int] = os.getpid,
    ) -> None:
        self._make = make
        self._process_id = process_id
        self._entries: dict[int, _ProcessEntry[T]] = {}

    def __call__(self) -> T:
        """Return the object of this process, and create it on the first call.

        :raises Unavailable: if it cannot be created; the cause is logged, and
            the next request tries again.
        """
        # Each process has its own lock: a lock that is held during a fork
        # would stay locked in the child. The object of a parent is kept,
        # because closing it here would close it there.
        entry = self._entries.setdefault(self._process_id(), _ProcessEntry())
        with entry.lock:
            if entry.made is None:
                entry.made = self._create()
            return entry.made

    def _create(self) -> T:
        try:
            return self._make()
        except Exception as error:  # drivers raise what they like
            LOG.exception(
                'transport_url: no connection to agents and cluster service'
            )
            raise faults.Unavailable(
                'nova-fairness cannot be reached; the log of nova-api has '
                'the cause.'
            ) from error


PARALLEL_CALLS = 64
"""Number of agents that one request queries at the same time.

A thousand agents need 16 groups, and only silent agents delay a group by the
whole ``rpc_timeout``.
"""

SILENT_S = 10.0
"""Seconds for which lists skip a host that did not answer.

It is the default interval of agents: an agent has no new values sooner.
"""


def connect_agents(conf: cfg.ConfigOpts) -> agents.Agents:
    """Connect to the agents of the configured domain.

    :param conf: Nova's configuration, with :mod:`nova_fairness.conf.api`.
    :raises Exception: error of oslo.messaging or of its driver.
    """
    url, transport = _open_transport(conf)
    settings = conf.fairness_api
    return agents.Agents(
        client.FairnessClient(
            transport,
            settings.rpc_timeout,
            conf.fairness_exchange.domain,
            PARALLEL_CALLS,
        ),
        agents.CallLimits(
            kept_s=settings.answers_kept,
            silent_s=SILENT_S,
            hosts_count=None if _is_direct(url) else settings.max_broker_hosts,
        ),
        signatures.of(conf, conf.fairness_exchange.domain, url),
    )


def connect_cluster_service(conf: cfg.ConfigOpts) -> requests.RequestsClient:
    """Connect to the cluster service.

    :raises Exception: error of oslo.messaging or of its driver.
    """
    _, transport = _open_transport(conf)
    return requests.RequestsClient(
        client.FairnessClient(
            transport,
            conf.fairness_api.rpc_timeout,
            conf.fairness_exchange.domain,
            topic=protocol.REQUESTS_TOPIC,
        ),
        silence.Silence(SILENT_S),
    )


def _open_transport(
    conf: cfg.ConfigOpts,
) -> tuple[oslo_messaging.TransportURL, oslo_messaging.Transport]:
    own = conf.fairness.transport_url or None
    url = oslo_messaging.TransportURL.parse(conf, own)
    return url, oslo_messaging.get_rpc_transport(
        conf,
        url=url,
        allowed_remote_exmods=list(client.ALLOWED_REMOTE_MODULES),
    )


def _is_direct(url: oslo_messaging.TransportURL) -> bool:
    return str(url.transport).partition('+')[0] == 'zmq'
