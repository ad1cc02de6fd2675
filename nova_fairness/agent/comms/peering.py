# SPDX-License-Identifier: Apache-2.0

"""Communication of a node with the other nodes of its domain."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import logging
import pathlib
import threading

from oslo_config import cfg
import oslo_messaging

from nova_fairness import exception
from nova_fairness.agent import settings
from nova_fairness.exchange import base as exchange_base
from nova_fairness.exchange import desired as desired_module
from nova_fairness.exchange import desired_state
from nova_fairness.exchange import desired_store
from nova_fairness.exchange import mesh as mesh_module
from nova_fairness.model import wording
from nova_fairness.rpc import client
from nova_fairness.rpc import endpoint
from nova_fairness.rpc import protocol
from nova_fairness.rpc import requests
from nova_fairness.rpc import server as server_module
from nova_fairness.runtime import signatures
from nova_fairness.runtime import state_file
from nova_fairness.runtime import transport as transport_module
from oslo_messaging_zmq.redis import client as redis_client

LOG = logging.getLogger(__name__)

POLL_S = 10.0
"""Seconds between two reads of the domain's desired state from Redis.

Reports of other nodes usually bring a change sooner. This poll finds changes
whose reports were lost.
"""

_REDIS_TIMEOUT_S = 3.0
"""Longest wait for an answer of Redis, in seconds."""

_CLEANUP_TIMEOUT_S = 5.0


class Peering:
    """A node without peers: it sees only its own reports and gets no calls.

    :ivar state_files: files that keep state over a restart of the agent.
    """

    exchange: exchange_base.Exchange

    def __init__(self) -> None:
        self.state_files: tuple[state_file.StateFile, ...] = ()
        self.exchange = exchange_base.LoopbackExchange()

    @property
    def desired(self) -> desired_state.DesiredState | None:
        """The desired state of the domain; ``None`` without a domain."""
        return None

    def newest(self) -> desired_module.DesiredChoice | None:
        """Return the newest desired state; ``None`` without a domain."""
        return None

    def start(self, operations: endpoint.AgentCalls) -> None:
        """Start to send and receive reports and calls; returns at once."""

    def stop(self) -> None:
        """Stop all communication, in bounded time."""

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return event counts of ``exchange`` and of ``transport``, by
        name.
        """
        return {'exchange': {}, 'transport': {}}

    def cluster(self, timeout_s: float) -> requests.RequestsClient:
        """Return a client of the cluster service.

        :param timeout_s: seconds to wait for an answer.
        :raises ConfigurationError: without a transport.
        """
        raise exception.ConfigurationError(
            'transport_url is not set, so the cluster service cannot be asked'
        )


class MeshPeering(Peering):
    """A node with peers in a fairness domain.

    :param transport: of oslo.messaging; closed at the end.
    :param exchange: sends and receives reports.
    :param desired: metric and policy that the domain shall use.
    :param domain: name of the domain.
    :param host: name of the node.
    """

    def __init__(
        self,
        transport: oslo_messaging.Transport,
        exchange: mesh_module.MeshExchange,
        desired: desired_state.DesiredState,
        domain: str,
        host: str,
    ) -> None:
        self.exchange: mesh_module.MeshExchange = exchange
        self._transport = transport
        self._desired = desired
        self.state_files = (desired.state_file,)
        self._domain = domain
        self._host = host
        self._server: server_module.FairnessServer | None = None

    @property
    def desired(self) -> desired_state.DesiredState:
        """The desired state of the domain."""
        return self._desired

    def newest(self) -> desired_module.DesiredChoice | None:
        """Return the newest desired state; never blocks."""
        return self._desired.current()

    def start(self, operations: endpoint.AgentCalls) -> None:
        """Start to send and receive reports and calls; returns at once."""
        self._desired.start()
        self.exchange.start()
        self._server = server_module.FairnessServer(
            self._transport,
            self._domain,
            self._host,
            endpoint.FairnessEndpoint(operations),
        )
        self._server.start()

    def stop(self) -> None:
        """Stop all communication, in bounded time."""
        if self._server is not None:
            self._server.stop()
        self.exchange.stop()
        self._desired.stop()
        cleaning = threading.Thread(
            target=self._transport.cleanup, name='clean-up', daemon=True
        )
        cleaning.start()
        cleaning.join(_CLEANUP_TIMEOUT_S)

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return event counts of ``exchange`` and of ``transport``, by
        name.
        """
        # Only drivers of this package count; others have no such method.
        driver = getattr(self._transport, '_driver', None)
        counts: Callable[[], Mapping[str, int]] = getattr(
            driver, 'statistics', dict
        )
        return {
            'exchange': {
                **self.exchange.statistics(),
                **self._desired.statistics(),
            },
            'transport': dict(counts()),
        }

    def cluster(self, timeout_s: float) -> requests.RequestsClient:
        """Return a client of the cluster service."""
        return requests.RequestsClient(
            client.FairnessClient(
                self._transport,
                timeout_s,
                self._domain,
                topic=protocol.REQUESTS_TOPIC,
            )
        )


def connect(
    conf: cfg.ConfigOpts, boot_id: str, state_path: pathlib.Path
) -> Peering:
    """Create the communication for ``transport_url`` without starting it.

    :param boot_id: identifier of this run of the agent.
    :param state_path: existing directory for state that survives a restart.
    :raises ConfigurationError: if the transport or a limit cannot be used.
    """
    if not conf.transport_url:
        LOG.info(
            'transport_url is not set: this node compares its own users '
            'only, and no other host can call it'
        )
        return Peering()
    host = conf.fairness.host
    limits = settings.exchange_limits(conf.fairness_exchange)
    transport = transport_module.open_transport(
        conf, client.ALLOWED_REMOTE_MODULES
    )
    desired = desired_state.DesiredState(
        host,
        desired_store.FileStore(state_path / 'desired.json'),
        _store(conf, limits.domain),
        POLL_S,
        signatures.of(conf, limits.domain),
    )
    exchange = mesh_module.MeshExchange(
        transport, host, boot_id, conf.fairness.interval, limits, desired
    )
    return MeshPeering(transport, exchange, desired, limits.domain, host)


def check_answer(
    answer_message: object,
    question: str,
    asked: Sequence[str],
    answered: Collection[str],
    verifier: signatures.Signatures | None,
) -> None:
    """Check that the cluster service signed an answer about these servers.

    :param answer_message: the received answer.
    :param question: its name in :meth:`.Signatures.signed_answer`.
    :param answered: the servers, or a mapping by their UUIDs.
    :param verifier: checks the signature; ``None`` where peers have no keys.
    :raises ReportRefused: if the answer has other servers, or no signature of
        a service that may sign.
    """
    if strange := set(answered).difference(asked):
        raise exception.ReportRefused(
            'malformed',
            wording.counted(len(strange), 'server was', 'servers were')
            + ' not asked for',
        )
    if verifier and isinstance(answer_message, dict):
        verifier.check_answer(answer_message, question, asked, answered)


def _store(
    conf: cfg.ConfigOpts, domain: str
) -> desired_store.SharedStore | None:
    """Return the shared store in the transport's Redis; ``None`` without
    one.
    """
    place = transport_module.redis_of(conf)
    if place is None:
        return None
    made = redis_client.connect(
        place, timeout_s=_REDIS_TIMEOUT_S, connections=2
    )
    return desired_store.RedisStore(made, domain)
