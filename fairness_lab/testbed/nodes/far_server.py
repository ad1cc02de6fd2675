# SPDX-License-Identifier: Apache-2.0

"""The machine at the far end of a node's uplink; runs in its own namespace.

Swallows datagrams and TCP connections on port 9, sends as fast as it can to
clients of port 19, and sends datagrams to the address in a line of its input:
``ADDRESS BYTES_PER_SECOND``, 0 to end it. Each second it prints a line of
JSON: the bytes that came from each address so far.
"""

import collections
import contextlib
import json
import socket
import sys
import threading
import time

SINK_PORT, SOURCE_PORT = 9, 19
_PAYLOAD = bytes(1400)
_CHUNK = bytes(1 << 16)
_PERIOD_S = 0.005
_LATE_S = 0.1
"""Data that is late by more than this is not sent at all."""


class FarServer:
    """Counts what comes, by address."""

    def __init__(self) -> None:
        self._came: collections.Counter[str] = collections.Counter()
        self._rates: dict[str, float] = {}

    def serve(self) -> None:
        """Serve until the input ends."""
        for work in (
            self._receive_datagrams,
            self._send_datagrams,
            self._report,
        ):
            threading.Thread(target=work, daemon=True).start()
        for port, talk in (
            (SINK_PORT, self._receive_stream),
            (SOURCE_PORT, self._send_stream),
        ):
            threading.Thread(
                target=self._accept, args=(port, talk), daemon=True
            ).start()
        for line in sys.stdin:
            host, rate = line.split()
            self._rates = {**self._rates, host: float(rate)}

    def _receive_datagrams(self) -> None:
        sink = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        sink.bind(('::', SINK_PORT))
        while True:
            data, peer = sink.recvfrom(65536)
            self._came[_plain_address(peer[0])] += len(data)

    def _accept(self, port: int, talk: object) -> None:
        listener = socket.create_server(
            ('::', port),
            family=socket.AF_INET6,
            backlog=64,
            dualstack_ipv6=True,
        )
        while True:
            connection, peer = listener.accept()
            threading.Thread(
                target=talk,  # type: ignore[arg-type]
                args=(connection, _plain_address(peer[0])),
                daemon=True,
            ).start()

    def _receive_stream(self, connection: socket.socket, host: str) -> None:
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(1 << 18):
                self._came[host] += len(data)

    def _send_stream(self, connection: socket.socket, _: str) -> None:
        with connection, contextlib.suppress(OSError):
            while True:
                connection.sendall(_CHUNK)

    def _send_datagrams(self) -> None:
        ways: dict[str, socket.socket] = {}
        earned: dict[str, float] = {}
        last_s = time.monotonic()
        while True:
            time.sleep(_PERIOD_S)
            now_s = time.monotonic()
            for host, rate in self._rates.items():
                left = earned.get(host, 0.0) + rate * (now_s - last_s)
                way = ways.get(host) or ways.setdefault(host, _create_socket())
                earned[host] = _send_permitted(
                    way, host, min(left, rate * _LATE_S)
                )
            last_s = now_s

    def _report(self) -> None:
        while True:
            time.sleep(1.0)
            sys.stdout.write(json.dumps(dict(self._came)) + '\n')
            sys.stdout.flush()


def _create_socket() -> socket.socket:
    """Open a socket for one destination.

    Sent data counts against its socket until it has left the last queue, so
    destinations that shared one would wait for each other.
    """
    way = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    way.setblocking(False)
    return way


def _send_permitted(way: socket.socket, host: str, left: float) -> float:
    """Send as many datagrams as there is permission for; give the rest."""
    while left >= len(_PAYLOAD):
        left -= len(_PAYLOAD)
        try:
            way.sendto(_PAYLOAD, (host, SINK_PORT))
        except OSError:
            return 0.0
    return left


def _plain_address(host: str) -> str:
    return host.removeprefix('::ffff:')


if __name__ == '__main__':
    FarServer().serve()
