# SPDX-License-Identifier: Apache-2.0

"""Four resources at once: dominant shares beside those of a linear program.

Run as root, on a machine that does nothing else, about four minutes::

    python -m benchmarks.policies.all_at_once --out DIR

Runs the scenario ``all-at-once`` and reads what each VM got in the second half
of it. Requests of disks and packets cost CPU time, too, so each VM has a
fixed need of every resource for a unit of the one it competes for: what it
used, divided by that. The linear program finds, by progressive filling, the
levels that make the smallest dominant share as large as it can be, then the
next one, and so on (HiGHS). Holds if each user's dominant share is
within 0.05 of it. Writes ``result.json``; exit code 1 if it does not hold.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from benchmarks.policies import all_at_once_ideal
from fairness_lab.results import recording as recording_module
from fairness_lab.results import timeline

TOLERANCE = 0.05
MIB = 1 << 20


def main() -> int:
    """Run, evaluate, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--recording', type=pathlib.Path)
    parser.add_argument('--no-agents', action='store_true')
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        source = options.recording or pathlib.Path(directory) / 'run'
        if options.recording is None:
            run(source, agents=not options.no_agents)
        result = evaluate(recording_module.read(source))
    text = json.dumps(result, indent=1) + '\n'
    (options.out / 'result.json').write_text(text)
    for user, entry in result['users'].items():
        print(f'{user:12} {entry["dominant"]:6.3f} {entry["ideal"]:6.3f}')
    return 0 if result['passed'] else 1


def run(out: pathlib.Path, *, agents: bool) -> None:
    """Run the scenario on real guests."""
    program = pathlib.Path(sys.executable).with_name('nova-fairness-lab')
    command = [str(program), 'run', 'all-at-once', f'--out={out}']
    if not agents:
        command.append('--no-agents')
    subprocess.run(command, check=True)


def evaluate(recorded: recording_module.Recording) -> dict:
    """Compare what users got with the best that they could have got."""
    line = timeline.Timeline(recorded)
    used = {vm: parts(line, vm) for vm in line.places}
    owner = {vm: line.places[vm].user for vm in used}
    entries = compared(used, owner)
    worst = max(entry['distance'] for entry in entries.values())
    return {
        'scenario': 'all-at-once',
        'agents': bool(recorded.meta['options']['agents']),
        'version': recorded.meta.get('version', ''),
        'resources': list(all_at_once_ideal.RESOURCES),
        'owners': owner,
        'instances': {vm: values.tolist() for vm, values in used.items()},
        'users': entries,
        'largest_distance': worst,
        'passed': worst <= TOLERANCE,
    }


def compared(
    used: dict[str, np.ndarray], owner: dict[str, str]
) -> dict[str, dict[str, float]]:
    """Each user's dominant share, the best one, and the distance."""
    ideal = all_at_once_ideal.filled(used, owner)
    entries = {}
    for user, best in ideal.items():
        own = [used[vm] for vm in used if owner[vm] == user]
        dominant = float(np.sum(own, axis=0).max())
        entries[user] = {
            'dominant': dominant,
            'ideal': best,
            'distance': abs(dominant - best),
        }
    return entries


def parts(line: timeline.Timeline, vm: str) -> np.ndarray:
    """Parts of its node's resources that a VM used, shape (4,)."""
    from_s, to_s = line.duration_s / 2, line.duration_s
    node = line.recording.meta['scenario']['nodes'][line.places[vm].node]
    length_s = to_s - from_s

    def moved(*names: str) -> float:
        return math.fsum(line.growth(vm, name, from_s, to_s) for name in names)

    memory = line.last(vm, 'memory_bytes') or 0.0
    return np.array(
        [
            line.cpu_s(vm, from_s, to_s) / length_s / len(node['cpus']),
            moved('read_bytes', 'written_bytes')
            / length_s
            / (node['disk_mib_s'] * MIB),
            max(moved('sent_bytes'), moved('received_bytes'))
            / length_s
            / (node['network_mbit_s'] * 1e6 / 8),
            memory / (node['memory_mib'] * MIB),
        ]
    )


if __name__ == '__main__':
    sys.exit(main())
