# SPDX-License-Identifier: Apache-2.0

"""Cost of reading and changing the classes of all VMs of a node.

Every round changes the rate of every VM, both ways, by the control and its
privileged helper as the agent uses them; beside it, in the same run, the four
commands per VM that the original gave to processes of their own.

Run as root, on a machine that does nothing else::

    python -m benchmarks.agent.tc_cost --out benchmarks/results/tc_cost.json
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from fairness_lab.testbed.traffic import network_agent
from fairness_lab.testbed.traffic import wire

COMMAND = (
    'python -m benchmarks.agent.tc_cost --out benchmarks/results/tc_cost.json'
)
BANDWIDTH = 1.25e9
BAR_MS = 0.1
LAYOUTS = {
    'uplink': ('--layout', 'uplink', '--uplink', wire.UPLINK),
    'tap': ('--layout', 'tap'),
}


def plug(network: wire.Wire, places: list[wire.WiredGuest]) -> None:
    """Make taps without a VM behind them."""
    lines = [
        line
        for place in places
        for tap in place.taps
        for line in (
            f'link add {tap} type veth peer name {tap}p',
            f'link set {tap} master {wire.BRIDGE} up',
        )
    ]
    subprocess.run(
        network.command('node', ['ip', '-batch', '-']),
        input='\n'.join(lines),
        text=True,
        check=True,
    )


def rounds(
    agent: network_agent.NetworkAgent,
    places: list[wire.WiredGuest],
    count: int,
) -> dict[str, float]:
    """Change everybody some times; medians, milliseconds per VM."""
    share = int(BANDWIDTH * 0.9 / len(places))
    reads, writes, tools = [], [], []
    for turn in range(count + 2):
        reads.append(float(agent.ask('time_read')))
        rates = {
            place.name: share - (turn % 7 + number % 5) * share // 40 - turn
            for number, place in enumerate(places)
        }
        answer = agent.ask('write', rates)
        if answer['errors']:
            raise SystemExit(f'not written: {answer["errors"]}')
        writes.append(float(answer['seconds']))
        tools.append(float(answer['tc_seconds']))
    scale = 1000 / len(places)
    # The first rounds make the trees and start the helper.
    return {
        'read_ms_per_vm': round(statistics.median(reads[2:]) * scale, 4),
        'tc_ms_per_vm': round(statistics.median(tools[2:]) * scale, 4),
        'least_tc_ms_per_vm': round(min(tools[2:]) * scale, 4),
        'write_ms_per_vm': round(statistics.median(writes[2:]) * scale, 4),
    }


def original(network: wire.Wire, places: list[wire.WiredGuest]) -> float:
    """Do as the original did: four processes per VM and round."""
    script = []
    for place in places:
        tap = place.taps[0]
        script += [
            f'tc qdisc del dev {tap}p root 2>/dev/null',
            f'tc qdisc add dev {tap}p root handle 1: htb',
            f'tc class add dev {tap}p parent 1: classid 1:1 htb rate 1mbit',
            (
                f'tc filter add dev {tap}p protocol ip parent 1: prio 1 '
                f'u32 match ip src 10.0.0.1 flowid 1:1'
            ),
        ]
    started_s = time.monotonic()
    network.run('node', ['sh', '-c', '\n'.join(script)])
    return (time.monotonic() - started_s) * 1000 / len(places)


def measure(
    layout: str, count: int, turns: int, directory: pathlib.Path
) -> dict[str, Any]:
    """Measure one layout with some VMs."""
    places = [wire.WiredGuest(number) for number in range(1, count + 1)]
    with wire.Wire([]) as network:
        plug(network, places)
        options = ['--bandwidth', str(BANDWIDTH), '--helper']
        agent = network_agent.NetworkAgent(
            network,
            directory / f'{layout}-{count}',
            [*options, *LAYOUTS[layout]],
        )
        agent.see(places)
        found: dict[str, Any] = {'layout': layout, 'vms': count}
        found |= rounds(agent, places, turns)
        agent.ask('release')
        found['original_ms_per_vm'] = round(original(network, places), 3)
    return found


def main() -> int:
    """Measure, write and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--rounds', type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        found = [
            measure(layout, count, given.rounds, pathlib.Path(directory))
            for layout in LAYOUTS
            for count in (1, 10, 100)
        ]
    many = [entry for entry in found if entry['vms'] == 100]
    worst = max(entry['tc_ms_per_vm'] for entry in many)
    ratio = min(
        entry['original_ms_per_vm'] / entry['tc_ms_per_vm'] for entry in many
    )
    content = {
        'command': COMMAND,
        'rounds': given.rounds,
        'machine': {'kernel': platform.release(), 'cpus': os.cpu_count()},
        'results': found,
        'bar_ms_per_vm_at_100': BAR_MS,
        'worst_ms_per_vm_at_100': worst,
        'original_divided_by_this_at_100': round(ratio, 1),
        'load_average': os.getloadavg()[0],
        'passed': worst <= BAR_MS,
    }
    given.out.write_text(json.dumps(content, indent=1) + '\n')
    sys.stdout.write('\n'.join(map(json.dumps, found)) + '\n')
    return 0 if worst <= BAR_MS else 1


if __name__ == '__main__':
    sys.exit(main())
