# SPDX-License-Identifier: Apache-2.0

"""Nodes that tell each other their reports, in three ways.

``pubsub`` is the reference method: plain pyzmq PUB/SUB with msgpack.
``driver`` is this package's oslo.messaging driver alone, without a server.
``exchange`` is the whole path: the exchange room over oslo.messaging.
All three send the same report.
"""

import dataclasses
import pathlib
import tempfile
import threading
import time
import uuid

import msgpack
import numpy as np
from oslo_config import cfg
import oslo_messaging
import zmq

from nova_fairness.exchange import codec
from nova_fairness.exchange import desired_state
from nova_fairness.exchange import desired_store
from nova_fairness.exchange import limits
from nova_fairness.exchange import mesh
from nova_fairness.model import defaults
from nova_fairness.model import node
from nova_fairness.model import report
from nova_fairness.model import resources

METRIC = defaults.METRIC
TOPIC = 'mesh'
INTERVAL_S = 10.0


def host_name(number: int) -> str:
    """Name of a node."""
    return f'node-{number:04d}'


def node_report(
    number: int, users: int, vms_per_user: int
) -> report.NodeReport:
    """Make the report of a node with so many users."""
    generator = np.random.default_rng(number)
    capacity = resources.RESOURCES.vector(
        cpu_time=128_000.0,
        disk_read=2e8,
        disk_written=2e8,
        net_received=1.25e9,
        net_sent=1.25e9,
        memory=2.5e11,
    )
    parts = (users, len(resources.RESOURCES))
    return report.NodeReport(
        host=host_name(number),
        boot_id=str(uuid.uuid4()),
        sequence=0,
        interval_s=INTERVAL_S,
        metric=METRIC,
        resources=node.NodeResources(
            host=host_name(number),
            cpus=tuple(range(32)),
            speed_factor=4000.0,
            capacity=capacity,
        ),
        users=report.UserTable(
            tuple(f'{user:032x}' for user in range(users)),
            instance_heaviness=generator.random(users),
            endowment=generator.random(parts) * capacity / users,
            usage=generator.random(parts) * capacity / users,
            instances=np.full(users, vms_per_user),
        ),
    )


class NewestReports:
    """Newest sequence number and its time of arrival, by host."""

    def __init__(self) -> None:
        self.count = 0
        self.newest: dict[str, tuple[int, float]] = {}

    def add(self, host: str, sequence: int) -> None:
        """Note a report; called by one thread only."""
        self.count += 1
        self.newest[host] = (sequence, time.monotonic())


class PubSubNode:
    """Plain pyzmq: one PUB, one SUB that is connected to everybody."""

    def __init__(
        self,
        number: int,
        context: zmq.Context,
        url: str,
        first: report.NodeReport,
    ) -> None:
        del url
        self._message = codec.encode(first, as_bytes=True)
        self.number = number
        self.heard = NewestReports()
        self._context = context
        self._publisher = context.socket(zmq.PUB)
        port = self._publisher.bind_to_random_port('tcp://127.0.0.1')
        self.address = f'tcp://127.0.0.1:{port}'
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def connect(self, addresses: list[str]) -> None:
        """Subscribe to everybody."""
        self._thread = threading.Thread(
            target=self._receive, args=(addresses,), daemon=True
        )
        self._thread.start()

    def publish(self, sequence: int) -> None:
        """Send to everybody."""
        message = {**self._message, 'sequence': sequence}
        self._publisher.send(msgpack.packb(message))

    def _receive(self, addresses: list[str]) -> None:
        subscriber = self._context.socket(zmq.SUB)
        subscriber.setsockopt(zmq.SUBSCRIBE, b'')
        subscriber.setsockopt(zmq.RCVTIMEO, 200)
        for address in addresses:
            subscriber.connect(address)
        while not self._ending.is_set():
            try:
                message = msgpack.unpackb(subscriber.recv())
            except zmq.Again:
                continue
            self.heard.add(message['host'], message['sequence'])
        subscriber.close(0)

    def stop(self) -> None:
        """Close the sockets."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        self._publisher.close(0)


class DriverNode:
    """The driver's own send and receive."""

    address = ''

    def __init__(
        self,
        number: int,
        context: zmq.Context,
        url: str,
        first: report.NodeReport,
    ) -> None:
        del context
        self._message = codec.encode(first, as_bytes=True)
        self.number = number
        self.heard = NewestReports()
        self._transport = transport(url)
        self._driver = self._transport._driver  # noqa: SLF001
        self._everybody = oslo_messaging.Target(topic=TOPIC, fanout=True)
        self._listener = self._driver.listen(
            oslo_messaging.Target(topic=TOPIC, server=host_name(number)),
            1,
            None,
        )

    def connect(self, addresses: list[str]) -> None:
        """Listen; the driver finds everybody by itself."""
        del addresses
        self._listener.start(self._on_incoming)

    def publish(self, sequence: int) -> None:
        """Send to everybody."""
        self._driver.send(
            self._everybody,
            {},
            {
                'method': 'report',
                'args': {**self._message, 'sequence': sequence},
            },
        )

    def _on_incoming(self, incoming: list) -> None:
        for item in incoming:
            arguments = item.message['args']
            self.heard.add(arguments['host'], arguments['sequence'])

    def stop(self) -> None:
        """Release everything."""
        self._listener.stop()
        self._listener.cleanup()
        self._transport.cleanup()


class ExchangeNode:
    """The exchange room over oslo.messaging, as an agent has it."""

    address = ''

    def __init__(
        self,
        number: int,
        context: zmq.Context,
        url: str,
        first: report.NodeReport,
    ) -> None:
        del context
        self.number = number
        self._report = first
        self._transport = transport(url)
        self._directory = tempfile.TemporaryDirectory()
        state = pathlib.Path(self._directory.name) / 'desired.json'
        self._exchange = mesh.MeshExchange(
            self._transport,
            host_name(number),
            first.boot_id,
            INTERVAL_S,
            limits.Bounds(),
            desired_state.DesiredState(
                host_name(number), desired_store.FileStore(state)
            ),
        )

    def connect(self, addresses: list[str]) -> None:
        """Join the others."""
        del addresses
        self._exchange.start()

    def publish(self, sequence: int) -> None:
        """Send to everybody."""
        self._exchange.publish(
            dataclasses.replace(self._report, sequence=sequence)
        )

    def newest(self) -> dict[str, int]:
        """Newest sequence number of each host, as a round does."""
        view = self._exchange.view(time.monotonic(), METRIC)
        return {host: item.sequence for host, item in view.reports.items()}

    def stop(self) -> None:
        """Release everything."""
        self._exchange.stop()
        self._transport.cleanup()
        self._directory.cleanup()


def transport(url: str) -> oslo_messaging.Transport:
    """Open a transport of its own, as each agent has one."""
    cfg.CONF([])
    return oslo_messaging.get_rpc_transport(cfg.CONF, url=url)


KINDS = {
    'pubsub': PubSubNode,
    'driver': DriverNode,
    'exchange': ExchangeNode,
}
