# SPDX-License-Identifier: Apache-2.0

"""Traffic through a network of namespaces, and what arrived of it."""

from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import json
import subprocess
import time
from typing import Any

from fairness_lab.testbed.nodes import processes
from fairness_lab.testbed.traffic import wire
from nova_fairness import exception

OUT, IN = 'out', 'in'
"""From a guest to the far end, and the other way."""

_FIRST_PORT = 5200
_STARTING_S = 1.5
_STEP = '0.25'
_PATIENCE_S = 10.0


@dataclasses.dataclass(frozen=True)
class Flow:
    """Traffic that one guest sends or receives.

    :ivar place: the guest.
    :ivar direction: :data:`OUT` or :data:`IN`.
    :ivar flows: so many connections at once.
    :ivar udp_mbit_s: datagrams at this rate in all; ``None`` for TCP.
    :ivar six: over IPv6.
    :ivar nic: which interface of the guest.
    """

    place: wire.WiredGuest
    direction: str = OUT
    flows: int = 1
    udp_mbit_s: float | None = None
    six: bool = False
    nic: int = 0

    def arguments(self, port: int, seconds: float) -> list[str]:
        """Arguments of the program in the guest."""
        host = wire.FAR_ADDRESS_SIX if self.six else wire.FAR_ADDRESS
        own = self.place.address_six if self.six else self.place.address
        bound = f'{own(self.nic)}%eth{self.nic}'
        found = ['-c', host, '-B', bound, '-p', str(port), '-J']
        found += ['-P', str(self.flows), '-t', f'{seconds:.0f}', '-i', _STEP]
        if self.direction == IN:
            found.append('-R')
        if self.udp_mbit_s is not None:
            rate = self.udp_mbit_s / self.flows
            found += ['-u', '-b', f'{rate:.3f}M', '-l', '1400']
        return found


@dataclasses.dataclass(frozen=True)
class TrafficResult:
    """Traffic that passed.

    :ivar mbit_s: by guest and direction, payload that its receiver got. The
        host's counters would not do: they count what is dropped later, and
        packets before they are cut into pieces with a header each.
    :ivar lost: by guest, datagrams that did not arrive; of UDP only.
    :ivar sent: by guest, datagrams that were sent.
    """

    mbit_s: Mapping[tuple[str, str], float]
    lost: Mapping[str, int]
    sent: Mapping[str, int]


@dataclasses.dataclass
class _RunningFlow:
    """Both ends of a flow; each tells of it when it ends."""

    flow: Flow
    server: subprocess.Popen[bytes]
    client: subprocess.Popen[bytes]
    started_s: float


class TrafficFlows:
    """Runs flows through a wire; the far end serves all of them."""

    def __init__(self, network: wire.Wire) -> None:
        self._wire = network
        self._ports = iter(range(_FIRST_PORT, 65000))

    def run(
        self,
        flows: Sequence[Flow],
        seconds: float,
        during: 'contextlib.AbstractContextManager[object] | None' = None,
    ) -> TrafficResult:
        """Run flows at the same time.

        :param seconds: over which what passed is measured.
        :param during: is entered while it is measured.
        :raises LabError: if a program fails.
        """
        running = [self._start(flow, seconds) for flow in flows]
        time.sleep(_STARTING_S)
        with during or contextlib.nullcontext():
            from_s = time.monotonic()
            time.sleep(seconds)
            to_s = time.monotonic()
        rates: dict[tuple[str, str], float] = {}
        lost: dict[str, int] = {}
        sent: dict[str, int] = {}
        for one in running:
            server, client = _report(one.server), _report(one.client)
            name = one.flow.place.name
            received = client if one.flow.direction == IN else server
            key = name, one.flow.direction
            passed = _received_between(
                received, from_s - one.started_s, to_s - from_s
            )
            rates[key] = rates.get(key, 0.0) + passed
            if one.flow.udp_mbit_s is not None:
                end = client['end']['sum']
                lost[name] = lost.get(name, 0) + int(end['lost_packets'])
                sent[name] = sent.get(name, 0) + int(end['packets'])
        return TrafficResult(rates, lost, sent)

    def _start(self, flow: Flow, seconds: float) -> _RunningFlow:
        port = next(self._ports)
        server = self._wire.popen(
            wire.FAR,
            ['iperf3', '-s', '-1', '-J', '-i', _STEP, '-p', str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        wanted = f':{port:04X} '
        processes.wait_until(lambda: wanted in self._listening(), _PATIENCE_S)
        lasting = seconds + _STARTING_S + 1.0
        client = self._wire.popen(
            flow.place.name,
            ['iperf3', *flow.arguments(port, lasting)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return _RunningFlow(flow, server, client, time.monotonic())

    def _listening(self) -> str:
        return self._wire.run(
            wire.FAR, ['cat', '/proc/net/tcp', '/proc/net/tcp6']
        )


def _report(end: subprocess.Popen[bytes]) -> Any:
    output, _ = end.communicate(timeout=60.0)
    told = json.loads(output)
    if 'error' in told:
        raise exception.LabError(f'iperf3: {told["error"]}')
    return told


def _received_between(told: Any, begin_s: float, seconds: float) -> float:
    """Mbit/s of what an end received in a stretch of its time."""
    received = 0.0
    for item in told['intervals']:
        entry = item['sum']
        overlap_s = min(entry['end'], begin_s + seconds) - max(
            entry['start'], begin_s
        )
        whole_s = entry['end'] - entry['start']
        if overlap_s > 0 and whole_s > 0:
            received += entry['bytes'] * overlap_s / whole_s
    return received * 8e-6 / seconds
