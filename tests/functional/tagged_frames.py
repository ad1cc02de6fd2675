# SPDX-License-Identifier: Apache-2.0

"""Sends frames with a VLAN tag, or counts what arrives, by MAC address.

The kernels that run tests need not know VLAN devices, so frames are made here.
Run in a namespace: ``send DEVICE FROM TO SECONDS``, ``count DEVICE SECONDS``.
A count begins a while after the first tagged frame, when all senders send.
"""

import collections
import contextlib
import json
import socket
import sys
import time

EVERYTHING = 3
TAG = bytes.fromhex('81000007')
PAYLOAD = b'\x08\x00' + bytes(1400)
PATIENCE_S = 30.0
"""For the first frame."""

SETTLED_S = 1.0


def send(device, source, destination, seconds):
    """Send as fast as it goes."""
    frame = b''.join(
        [
            bytes.fromhex(destination.replace(':', '')),
            bytes.fromhex(source.replace(':', '')),
            TAG,
            PAYLOAD,
        ]
    )
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as way:
        way.bind((device, 0))
        end_s = time.monotonic() + float(seconds)
        while time.monotonic() < end_s:
            try:
                way.send(frame)
            except OSError:
                time.sleep(0.001)


def count(device, seconds):
    """Count bytes in a second, by source and by destination."""
    came = collections.Counter()
    ours = socket.htons(EVERYTHING)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, ours) as way:
        way.bind((device, 0))
        way.settimeout(0.1)
        next(received(way, PATIENCE_S), None)
        collections.deque(received(way, SETTLED_S), maxlen=0)
        start_s = time.monotonic()
        for frame in received(way, float(seconds)):
            for part in (frame[6:12], frame[:6]):
                came[part.hex(':')] += len(frame)
        took_s = time.monotonic() - start_s
    rates = {address: bytes_ / took_s for address, bytes_ in came.items()}
    sys.stdout.write(json.dumps(rates))


def received(way, seconds):
    """Yield frames from elsewhere until the time is over."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        with contextlib.suppress(TimeoutError):
            frame, where = way.recvfrom(4096)
            if where[2] != socket.PACKET_OUTGOING:
                yield frame


if __name__ == '__main__':
    {'send': send, 'count': count}[sys.argv[1]](*sys.argv[2:])
