# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Four resources at once: dominant shares beside those of a linear program.

Run as root, on a machine that does nothing else, about four minutes::

    python benchmarks/all_at_once.py --out benchmarks/results/all-at-once

Runs the scenario ``all-at-once`` and reads what each VM got in the second half
of it. Requests of disks and packets cost CPU time, too, so each VM has a
fixed need of every resource for a unit of the one it competes for: what it
used, divided by that. The linear program finds, by progressive filling, the
levels that make the smallest dominant share as large as it can be, then the
next one, and so on (HiGHS). Holds if each user's dominant share is
within 0.05 of it. Writes ``result.json`` and the run's pictures; exit code 1
if it does not hold.
"""

import argparse
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

import highspy
import numpy as np

from nova_fairness.lab import recording as recording_module
from nova_fairness.lab import timeline

TOLERANCE = 0.05
RESOURCES = ('cpu', 'disk', 'network', 'memory')
MEMORY = RESOURCES.index('memory')
MIB = 1 << 20
KEPT = ('run.png', 'disk.png', 'network.png')


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
        for name in KEPT:
            if (source / name).exists():
                shutil.copy(source / name, options.out / name)
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
    users = list(line.users)
    ideal = filled(users, line, used)
    dominant = {
        user: float(
            np.sum(
                [used[vm] for vm in used if line.places[vm].user == user],
                axis=0,
            ).max()
        )
        for user in users
    }
    entries = {
        user: {
            'dominant': dominant[user],
            'ideal': ideal[user],
            'distance': abs(dominant[user] - ideal[user]),
        }
        for user in users
    }
    worst = max(entry['distance'] for entry in entries.values())
    return {
        'scenario': 'all-at-once',
        'agents': bool(recorded.meta['options']['agents']),
        'version': recorded.meta.get('version', ''),
        'resources': list(RESOURCES),
        'instances': {vm: values.tolist() for vm, values in used.items()},
        'users': entries,
        'largest_distance': worst,
        'passed': worst <= TOLERANCE,
    }


def parts(line: timeline.Timeline, vm: str) -> np.ndarray:
    """Give what part of its node's resources a VM used, shape (4,)."""
    from_s, to_s = line.duration_s / 2, line.duration_s
    node = line.recording.meta['scenario']['nodes'][line.places[vm].node]
    length_s = to_s - from_s

    def moved(*names: str) -> float:
        return math.fsum(
            line.more.grown(vm, name, from_s, to_s) for name in names
        )

    memory = line.more.last(vm, 'memory_bytes') or 0.0
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


def filled(
    users: list[str], line: timeline.Timeline, used: dict[str, np.ndarray]
) -> dict[str, float]:
    """Fill progressively: the smallest dominant share first.

    A level per VM scales its use. What all VMs used of a resource is what
    there is of it: no kernel gives more than it gave. Memory that is held
    stays held.
    """
    vms = list(used)
    needed = np.array([used[vm] for vm in vms])
    # What a VM holds does not depend on what else it does.
    needed[needed.argmax(axis=1) != MEMORY, MEMORY] = 0.0
    whole = needed.sum(axis=0)
    rows = (needed / np.where(whole > 0, whole, 1)).T
    fixed: dict[str, float] = {}
    while len(fixed) < len(users):
        level, free = _step(users, line, used, vms, rows, fixed)
        fixed.update(dict.fromkeys(free, level))
    return fixed


def _step(users, line, used, vms, rows, fixed):
    """Raise the level of all who are not fixed; say who cannot rise more."""
    waiting = [user for user in users if user not in fixed]
    best = _solve(users, line, used, vms, rows, fixed, waiting)
    stuck = [
        user
        for user in waiting
        if _solve(
            users,
            line,
            used,
            vms,
            rows,
            {**fixed, **{other: best for other in waiting if other != user}},
            [user],
        )
        <= best + 1e-4
    ]
    return best, stuck or waiting


def _solve(users, line, used, vms, rows, fixed, waiting) -> float:
    """Find the largest level of some, when others have at least theirs."""
    main = {vm: int(np.argmax(used[vm])) for vm in vms}
    model = highspy.Highs()
    model.silent()
    level = model.addVariable(lb=0)
    scale = {
        vm: model.addVariable(
            lb=0, ub=1 if main[vm] == MEMORY else highspy.kHighsInf
        )
        for vm in vms
    }
    for user in users:
        own = sum(
            float(used[vm][main[vm]]) * scale[vm]
            for vm in vms
            if line.places[vm].user == user
        )
        least = level if user in waiting else fixed[user] - 1e-9
        model.addConstr(own >= least)
    for row in rows:
        if row.sum() > 0:
            parts_of_all = zip(row, vms, strict=True)
            used_of_it = sum(
                float(part) * scale[vm] for part, vm in parts_of_all
            )
            model.addConstr(used_of_it <= 1 + 1e-9)
    model.maximize(level)
    return float(model.val(level))


if __name__ == '__main__':
    sys.exit(main())
