# SPDX-License-Identifier: Apache-2.0

"""RPC server that answers calls on its own threads."""

import logging
import threading

import oslo_messaging

from nova_fairness.rpc import protocol

LOG = logging.getLogger(__name__)

_THREADS = 8
"""Largest number of calls that are answered at once; other calls wait."""

_STOP_S = 5.0


class FairnessServer:
    """Answers the calls to one service of this host.

    :param transport: shared with others, never cleaned up here.
    :param domain: exchange of the calls.
    :param host: name under which this host is called.
    :param answers: endpoint with the calls.
    :param topic: of the calls.
    """

    def __init__(
        self,
        transport: oslo_messaging.Transport,
        domain: str,
        host: str,
        answers: object,
        topic: str = protocol.TOPIC,
    ) -> None:
        self._server = oslo_messaging.get_rpc_server(
            transport,
            oslo_messaging.Target(exchange=domain, topic=topic, server=host),
            [answers],
            access_policy=oslo_messaging.ExplicitRPCAccessPolicy,
        )
        self._serving: threading.Thread | None = None
        self._ready = threading.Event()
        self._ended = threading.Event()

    def start(self) -> None:
        """Start a thread that begins to listen; do not wait for it.

        With some drivers this thread waits until the broker answers.
        """
        self._serving = threading.Thread(
            target=self._begin, name='rpc-serving', daemon=True
        )
        self._serving.start()

    def _begin(self) -> None:
        try:
            self._server.start(override_pool_size=_THREADS)
        except Exception as error:  # noqa: BLE001 - drivers raise anything
            LOG.error(
                'The RPC server did not start, so calls to this node fail: '
                '%s: %s',
                type(error).__name__,
                error,
            )
            return
        self._ready.set()
        # If stop was called before the connection was made, end at once.
        self._ended.wait()
        self._end()

    def wait_ready(self, timeout_s: float) -> bool:
        """Wait until the server listens.

        :returns: whether it listens.
        """
        return self._ready.wait(timeout_s)

    def stop(self) -> None:
        """Stop listening, and end running calls, within a bounded time."""
        self._ended.set()
        if self._serving is not None and self._ready.is_set():
            self._serving.join(_STOP_S)

    def _end(self) -> None:
        try:
            self._server.stop()
            self._server.wait()
        except Exception as error:  # noqa: BLE001 - drivers raise anything
            LOG.warning('The RPC server could not be stopped: %s', error)
