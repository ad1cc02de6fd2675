# SPDX-License-Identifier: Apache-2.0

"""Whether real packets are divided as the classes say.

Sends with iperf3 from two guests to another machine, and back, through our
own classes on a bridge, in namespaces of this kernel: TCP with as many flows
and with eight against one, and datagrams, by 1:1 and 1:3, at the uplink and at
the taps; then one guest alone; then datagrams while all classes change.

Run as root, with iperf3 installed, on a machine that does nothing else::

    python -m benchmarks.agent.network --out benchmarks/results/network.json
"""

import argparse
from collections.abc import Iterator
import contextlib
import json
import os
import pathlib
import platform
import sys
import tempfile
import threading
from typing import Any

from fairness_lab.testbed.traffic import network_agent
from fairness_lab.testbed.traffic import traffic
from fairness_lab.testbed.traffic import wire

COMMAND = (
    'python -m benchmarks.agent.network --out benchmarks/results/network.json'
)
MBIT_S = 100.0
BYTES = 125_000
FIRST, SECOND = wire.WiredGuest(1), wire.WiredGuest(2)
LAYOUTS = {
    'uplink': ('--layout', 'uplink', '--uplink', wire.UPLINK),
    'tap': ('--layout', 'tap'),
}
LOADS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    'tcp 1:1 flows': ({}, {}),
    'tcp 8:1 flows': ({'flows': 8}, {}),
    'tcp 1:8 flows': ({}, {'flows': 8}),
    'udp': ({'udp_mbit_s': 100.0}, {'udp_mbit_s': 100.0}),
}
TRIES = 4
FILLED = 0.925
"""Part of the link, as payload, from which two guests compete for it."""

BARS = {'worst_share': 0.05, 'least_lone': 0.93, 'lost': 0}


def shares(
    run: traffic.TrafficFlows,
    agent: network_agent.NetworkAgent,
    capacity: int,
    seconds: float,
) -> Iterator[dict[str, Any]]:
    """Measure two guests that want all."""
    for ratio in (1, 3):
        low = capacity * 99 // 100 // (1 + ratio)
        agent.write({'g1': low, 'g2': ratio * low})
        for direction in (traffic.OUT, traffic.IN):
            for name, (first, second) in LOADS.items():
                flows = [
                    traffic.Flow(FIRST, direction, **first),
                    traffic.Flow(SECOND, direction, **second),
                ]
                got, tries = measure_contended(run, flows, seconds)
                part = got[1] / sum(got)
                wanted = ratio / (1 + ratio)
                off = max(
                    abs(part / wanted - 1),
                    abs((1 - part) / (1 - wanted) - 1),
                )
                yield {
                    'classes': f'1:{ratio}',
                    'direction': direction,
                    'load': name,
                    'mbit_s': [round(rate, 2) for rate in got],
                    'tries': tries,
                    'off_by': round(off, 4),
                }


def measure_contended(
    run: traffic.TrafficFlows, flows: list[traffic.Flow], seconds: float
) -> tuple[list[float], int]:
    """Measure both guests; measure again if they did not fill the link.

    Guests that do not fill the link do not compete for it. This happens if the
    machine has too little CPU time for the senders.

    :returns: Mbit/s of each guest, and the number of measurements.
    """
    found: list[list[float]] = []
    while len(found) < TRIES:
        passed = run.run(flows, seconds)
        found.append([passed.mbit_s[f.place.name, f.direction] for f in flows])
        if sum(found[-1]) >= FILLED * MBIT_S:
            break
    return found[-1], len(found)


def measure_alone(
    run: traffic.TrafficFlows,
    agent: network_agent.NetworkAgent,
    seconds: float,
) -> Iterator[dict[str, Any]]:
    """Measure one guest with a twentieth of the classes and no rival."""
    agent.write({'g1': 500_000, 'g2': 10_000_000})
    for direction in (traffic.OUT, traffic.IN):
        passed = run.run([traffic.Flow(FIRST, direction)], seconds)
        rate = passed.mbit_s['g1', direction]
        yield {
            'direction': direction,
            'mbit_s': round(rate, 2),
            'part_of_link': round(rate / MBIT_S, 4),
        }


@contextlib.contextmanager
def change_classes(
    agent: network_agent.NetworkAgent, counts: list[int]
) -> Iterator[None]:
    """Change both classes twenty times a second."""
    stop = threading.Event()

    def change() -> None:
        while not stop.wait(0.05):
            counts[0] += 1
            low, high = (30, 60) if counts[0] % 2 else (60, 30)
            agent.write({'g1': low * BYTES, 'g2': high * BYTES})

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measure_losses(
    run: traffic.TrafficFlows,
    agent: network_agent.NetworkAgent,
    seconds: float,
) -> Iterator[dict[str, Any]]:
    """Count datagrams that are lost while classes change."""
    for direction in (traffic.OUT, traffic.IN):
        flows = [
            traffic.Flow(place, direction, udp_mbit_s=25.0)
            for place in (FIRST, SECOND)
        ]
        counts = [0]
        passed = run.run(flows, seconds, change_classes(agent, counts))
        yield {
            'direction': direction,
            'changes': counts[0],
            'sent': sum(passed.sent.values()),
            'lost': sum(passed.lost.values()),
        }


def measure(layout: str, record: pathlib.Path, seconds: float) -> Any:
    """Measure one layout on a network of its own."""
    with wire.Wire([FIRST, SECOND]) as network:
        options = ['--bandwidth', str(MBIT_S * BYTES), *LAYOUTS[layout]]
        agent = network_agent.NetworkAgent(network, record, options)
        agent.see([FIRST, SECOND])
        agent.read()
        capacity = int(agent.ask('said')['capacity'])
        run = traffic.TrafficFlows(network)
        found: dict[str, Any] = {
            'shares': list(shares(run, agent, capacity, seconds)),
            'alone': list(measure_alone(run, agent, seconds)),
            'while_changing': list(measure_losses(run, agent, seconds)),
        }
        agent.ask('release')
        return found


def summary(layouts: dict[str, Any]) -> dict[str, Any]:
    """Quantities that the bars limit."""
    every = layouts.values()
    return {
        'worst_share': max(c['off_by'] for f in every for c in f['shares']),
        'least_lone': min(
            c['part_of_link'] for f in every for c in f['alone']
        ),
        'lost': sum(c['lost'] for f in every for c in f['while_changing']),
    }


def main() -> int:
    """Measure, write and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--seconds', type=float, default=4.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        layouts = {
            layout: measure(
                layout, pathlib.Path(directory) / layout, given.seconds
            )
            for layout in LAYOUTS
        }
    found = summary(layouts)
    passed = (
        found['worst_share'] <= BARS['worst_share']
        and found['least_lone'] > BARS['least_lone']
        and found['lost'] == BARS['lost']
    )
    content = {
        'command': COMMAND,
        'seconds_per_case': given.seconds,
        'link_mbit_s': MBIT_S,
        'machine': {'kernel': platform.release(), 'cpus': os.cpu_count()},
        'layouts': layouts,
        'summary': found,
        'bars': BARS,
        'passed': passed,
    }
    given.out.write_text(json.dumps(content, indent=1) + '\n')
    sys.stdout.write(json.dumps(found) + '\n')
    return 0 if passed else 1


if __name__ == '__main__':
    sys.exit(main())
