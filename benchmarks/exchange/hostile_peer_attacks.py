# SPDX-License-Identifier: Apache-2.0

"""Attacks of a peer on a listener, each bounded in time and count.

A process of its own, which ``hostile_peer.py`` starts. Only the loopback
interface is attacked.
"""

import collections
from collections.abc import Callable
import dataclasses
import itertools
import json
import pathlib
import re
import select
import socket
import subprocess
import sys
import time

import zmq

from nova_fairness.rpc import protocol
from oslo_messaging_zmq import messages
from tests.fixtures import curve_cloud

SILENT = 5000
"""Connections that say nothing."""

SMALL_PER_S = 50_000
SENDERS = 180
"""Connections that they come by; one key may have 200."""

WAITING = 50
"""Messages that wait in the attacker for each connection, at most."""

BURST = 200
"""Messages of one that is left soon."""

LINGER_MS = 1000

_AROUND = 35
"""Bytes that CURVE and ZMTP add to a small message."""

LARGE = 100 * 1000**2
LARGE_COUNT = 20
FRAME = 1024**2
FRAMES = 2000
"""Frames of one message; the listener never passes it on."""
LARGEST_COMMAND = 15 * 1024**2
"""Just below what ends a connection while it is read."""

COMMANDS = 40
READERS = 10
CONNECTIONS = 1000
"""Of one good key; ``peer_connections`` is 200."""

_GREETING = (
    b'\xff'
    + bytes(8)
    + b'\x7f\x03\x00'
    + b'CURVE'.ljust(20, b'\0')
    + bytes(32)
)
_PAUSE_S = 0.002
HANDSHAKE_S = 0.05
"""Enough for twenty of them."""


@dataclasses.dataclass(frozen=True)
class Target:
    """Victim, keys and length of an attack.

    :ivar endpoint: of calls, ``tcp://127.0.0.1:PORT``.
    :ivar key: public key of the listener.
    :ivar address: exchange, topic and server.
    :ivar keys: directory of a peer whose key is allowed.
    """

    endpoint: str
    key: str
    address: tuple[str, str, str]
    keys: pathlib.Path
    seconds: float

    def connection(self) -> socket.socket:
        """A plain connection to the listener."""
        host, _, port = self.endpoint.removeprefix('tcp://').rpartition(':')
        return socket.create_connection((host, int(port)))

    def taken_bytes(self) -> int:
        """How much the kernel of the listener took of open connections."""
        port = self.endpoint.rpartition(':')[2]
        told = subprocess.run(
            ['ss', '-tniH', f'dport = :{port}'],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return sum(map(int, re.findall(r'bytes_acked:(\d+)', told)))

    def peer(self, context: zmq.Context, *, known: bool) -> zmq.Socket:
        """A socket that shows a key.

        :param known: whether the key is allowed.
        """
        ring = curve_cloud.ring(self.keys)
        pair = ring if known else curve_cloud.stranger()
        made = context.socket(zmq.DEALER)
        made.setsockopt(zmq.LINGER, 0)
        made.setsockopt(zmq.RECONNECT_IVL, 1)
        made.curve_publickey = pair.public.encode()
        made.curve_secretkey = pair.secret
        made.curve_serverkey = self.key.encode()
        return made

    def request(self, kind: int, method: str) -> bytes:
        """A message that asks for a method."""
        exchange, topic, server = self.address
        body = {'method': method, 'args': {}, 'version': protocol.VERSION}
        made = messages.RequestMessage(
            kind, 'x' * 32, exchange, topic, server, None, {}, body
        )
        return messages.encode_request(made, LARGE)


def nothing(target: Target) -> dict:
    """No attack."""
    time.sleep(target.seconds)
    return {}


def silent(target: Target) -> dict:
    """Connections by the thousand that say nothing."""
    end_s = time.monotonic() + target.seconds
    made = [target.connection() for _ in range(SILENT)]
    time.sleep(max(0.0, end_s - time.monotonic()))
    return {'connections': len(made)}


def noise(target: Target) -> dict:
    """Small garbage without any key, on ever new connections."""
    count, end_s = 0, time.monotonic() + target.seconds
    while time.monotonic() < end_s:
        with target.connection() as made:
            try:
                made.sendall(b'x' * 100 * 50)
                made.recv(1000)
            except OSError:
                pass
        count += 1
    return {'connections': count}


def strangers(target: Target) -> dict:
    """Handshakes with keys that are not allowed, over and over."""
    count, end_s = 0, time.monotonic() + target.seconds
    with curve_cloud.context() as context:
        while time.monotonic() < end_s:
            made = [target.peer(context, known=False) for _ in range(20)]
            for each in made:
                each.connect(target.endpoint)
            time.sleep(HANDSHAKE_S)
            for each in made:
                each.close(linger=0)
            count += len(made)
    return {'handshakes': count}


def commands(target: Target) -> dict:
    """Large beginnings of handshakes that are never finished."""
    head = b'\x06' + LARGEST_COMMAND.to_bytes(8, 'big')
    body = bytes(1024**2)
    made, sent = [], 0
    end_s = time.monotonic() + target.seconds
    for _ in range(COMMANDS):
        each = target.connection()
        made.append(each)
        try:
            each.sendall(_GREETING + head)
            for _ in range(LARGEST_COMMAND // len(body) - 1):
                each.sendall(body)
                sent += len(body)
        except OSError:
            continue
    time.sleep(max(0.0, end_s - time.monotonic()))
    return {'connections': len(made), 'bytes': sent}


def small(target: Target) -> dict:
    """Small casts with a good key, so many a second, on many connections."""
    payload = target.request(messages.CAST, 'get_status')
    offered, turns = 0, itertools.cycle(range(SENDERS))
    with curve_cloud.context() as context:
        made = [target.peer(context, known=True) for _ in range(SENDERS)]
        for each in made:
            each.setsockopt(zmq.SNDHWM, WAITING)
            each.connect(target.endpoint)
        began_s = time.monotonic()
        while (passed := time.monotonic() - began_s) < target.seconds:
            for turn in itertools.islice(turns, SENDERS):
                due = int(passed * SMALL_PER_S) - offered
                offered += _send_until_full(
                    made[turn], payload, min(due, WAITING)
                )
            time.sleep(_PAUSE_S)
        left = target.taken_bytes() // (len(payload) + _AROUND)
    return {
        'offered': offered,
        'messages': left,
        'per_s': left / passed,
        'bytes_each': len(payload),
    }


def _send_until_full(sender: zmq.Socket, payload: bytes, most: int) -> int:
    """How many times it was sent before its queue was full."""
    for count in range(most):
        try:
            sender.send(payload, zmq.NOBLOCK)
        except zmq.Again:
            return count
    return max(most, 0)


def small_anew(target: Target) -> dict:
    """Small casts with a good key, so many a second, on ever new connections.

    On a lasting connection, unread casts would wait at the sender.
    """
    payload = target.request(messages.CAST, 'get_status')
    made, count = collections.deque(), 0
    with curve_cloud.context() as context:
        began_s = time.monotonic()
        while (passed := time.monotonic() - began_s) < target.seconds:
            while count < passed * SMALL_PER_S / BURST:
                each = target.peer(context, known=True)
                each.setsockopt(zmq.LINGER, LINGER_MS)
                each.connect(target.endpoint)
                _send_until_full(each, payload, BURST)
                made.append(each)
                count += 1
            while len(made) > SENDERS:
                made.popleft().close()
            time.sleep(_PAUSE_S)
        for each in made:
            each.close(linger=0)
    return {
        'connections': count,
        'offered': count * BURST,
        'per_s': count * BURST / passed,
        'bytes_each': len(payload),
    }


def _count_ended_connections(
    target: Target, send: Callable[[zmq.Socket], None]
) -> int:
    """How many connections with a good key ended by what was sent."""
    lost = 0
    with curve_cloud.context() as context:
        end_s = time.monotonic() + target.seconds
        for _ in range(LARGE_COUNT):
            sender = target.peer(context, known=True)
            monitor = curve_cloud.disconnections(sender)
            sender.connect(target.endpoint)
            send(sender)
            lost += monitor.poll(2000) > 0
            sender.close(linger=0)
            if time.monotonic() > end_s:
                break
    return lost


def large(target: Target) -> dict:
    """Messages of 100 MB with a good key."""
    payload = bytes(LARGE)
    lost = _count_ended_connections(
        target, lambda sender: sender.send(payload, copy=False)
    )
    return {'connections_ended': lost, 'bytes_each': LARGE}


def frames(target: Target) -> dict:
    """Messages of 2,000 frames of 1 MiB with a good key."""
    frame = zmq.Frame(bytes(FRAME))

    def send(sender: zmq.Socket) -> None:
        for _ in range(FRAMES):
            sender.send(frame, zmq.SNDMORE, copy=False)
        sender.send(b'')

    lost = _count_ended_connections(target, send)
    return {'connections_ended': lost, 'bytes_each': FRAMES * FRAME}


def _ask(target: Target, count: int, sockets: int, *, reads: bool) -> dict:
    """Ask for the longest answer there is."""
    question = target.request(messages.CALL, 'list_users')
    answered = 0
    with curve_cloud.context() as context:
        made = []
        for _ in range(sockets):
            each = target.peer(context, known=True)
            each.setsockopt(zmq.RCVHWM, 1)
            each.setsockopt(zmq.RCVBUF, 4096)
            each.connect(target.endpoint)
            made.append(each)
        end_s = time.monotonic() + target.seconds
        for number in range(count):
            made[number % sockets].send(question)
        while time.monotonic() < end_s:
            for each in made if reads else ():
                while each.poll(0):
                    each.recv()
                    answered += 1
            select.select([], [], [], _PAUSE_S)
    return {'questions': count, 'sockets': sockets, 'read': answered}


def slow_reader(target: Target) -> dict:
    """Long answers that are never read, by ten connections of one key."""
    return _ask(target, 500, READERS, reads=False)


def questions(target: Target) -> dict:
    """Questions with long answers, far more than are answered."""
    return _ask(target, 2000, READERS, reads=True)


def connections(target: Target) -> dict:
    """Connections by the thousand with one good key."""
    made, admitted = [], 0
    end_s = time.monotonic() + target.seconds
    with curve_cloud.context() as context:
        context.set(zmq.MAX_SOCKETS, 4 * CONNECTIONS)
        for _ in range(CONNECTIONS):
            each = target.peer(context, known=True)
            seen = each.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
            each.connect(target.endpoint)
            made.append((each, seen))
        time.sleep(max(0.0, end_s - time.monotonic()))
        for each, seen in made:
            admitted += seen.poll(0) > 0
            each.disable_monitor()
            seen.close(linger=0)
            each.close(linger=0)
    return {'connections': len(made), 'admitted': admitted}


ATTACKS: dict[str, Callable[[Target], dict]] = {
    made.__name__: made
    for made in (
        nothing,
        silent,
        noise,
        strangers,
        commands,
        small,
        small_anew,
        large,
        frames,
        slow_reader,
        questions,
        connections,
    )
}
WITH_KEY = (
    'small',
    'small_anew',
    'large',
    'frames',
    'slow_reader',
    'questions',
    'connections',
)


def main() -> int:
    """Attack as the command line says, and tell what was done."""
    name, endpoint, key, address, keys, seconds = sys.argv[1:]
    exchange, topic, server = address.split('/')
    target = Target(
        endpoint,
        key,
        (exchange, topic, server),
        pathlib.Path(keys),
        float(seconds),
    )
    print(json.dumps(ATTACKS[name](target)), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
