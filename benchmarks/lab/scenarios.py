# SPDX-License-Identifier: Apache-2.0

"""Runs the scenarios as the acceptance table has them; keeps the results.

Run as root, on a machine that does nothing else::

    python -m benchmarks.lab.scenarios --out benchmarks/results/scenarios

Takes about an hour and a half. One directory per run: ``result.json``
(documented in ``doc/source/reference/result-json.rst``).
``index.json`` says which command made each, and whether its checks passed.
Exit code 1 if one failed that a policy of today has to pass.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

THESIS = ['--metric=GreedinessMetric', '--policy=thesis']

RUNS = {
    'one-node-cpu-without': ['one-node-cpu', '--no-agents'],
    'one-node-cpu': ['one-node-cpu', '--duration=180'],
    'one-node-cpu-10s': [
        'one-node-cpu',
        '--interval=10',
        '--duration=360',
    ],
    'one-node-cpu-thesis': ['one-node-cpu', *THESIS],
    'spike': ['spike'],
    'many-against-one': ['many-against-one'],
    'unlike-vms': ['unlike-vms'],
    'one-waits-without': ['one-waits', '--no-agents'],
    'one-waits': ['one-waits'],
    'wide-vms': ['wide-vms'],
    'closed-loops-without': [
        'closed-loops',
        '--no-agents',
        '--duration=60',
    ],
    'closed-loops': ['closed-loops'],
    'kinds-of-load-without': [
        'kinds-of-load',
        '--no-agents',
        '--duration=80',
    ],
    'uncontended-10s': ['uncontended'],
    'uncontended-1s': [
        'uncontended',
        '--interval=1',
        '--duration=302.5',
    ],
    'churn': ['churn'],
    'frozen-guest': ['frozen-guest'],
    'two-nodes-cpu-without': ['two-nodes-cpu', '--no-agents'],
    'two-nodes-cpu-dominant-share': ['two-nodes-cpu'],
    'two-nodes-cpu-greediness': [
        'two-nodes-cpu',
        '--metric=GreedinessMetric',
    ],
    'two-nodes-cpu-thesis': ['two-nodes-cpu', *THESIS],
    'silent-peer': ['silent-peer'],
    'killed-peer': ['killed-peer'],
    'redis-away': ['redis-away'],
    'redis-flushed': ['redis-flushed'],
    'cut-node': ['cut-node'],
    'late-joiner': ['late-joiner'],
    'rolling-restart': ['rolling-restart'],
    'one-node-disk-without': ['one-node-disk', '--no-agents'],
    'one-node-disk': ['one-node-disk'],
    'two-nodes-cpu-disk-without': ['two-nodes-cpu-disk', '--no-agents'],
    'two-nodes-cpu-disk': ['two-nodes-cpu-disk'],
    'two-nodes-cpu-disk-thesis': ['two-nodes-cpu-disk', *THESIS],
    'one-node-network': ['one-node-network'],
    'one-node-network-weighted': ['one-node-network-weighted'],
    'latency-without': ['latency', '--no-agents'],
    'latency': ['latency'],
}

SHOWN_ONLY = ('two-nodes-cpu-disk-thesis',)
"""Runs that are there to compare with: what the original did there is not
what is asked of a policy."""

RESULT = 'result.json'


def run(name: str, arguments: list[str], out: pathlib.Path) -> dict:
    """Run one scenario and keep its result."""
    with tempfile.TemporaryDirectory() as directory:
        whole = pathlib.Path(directory) / 'run'
        command = ['nova-fairness-lab', 'run', *arguments]
        program = pathlib.Path(sys.executable).with_name(command[0])
        done = subprocess.run(
            [str(program), *command[1:], f'--out={whole}'], check=False
        )
        target = out / name
        target.mkdir(parents=True, exist_ok=True)
        if (whole / RESULT).exists():
            shutil.copy(whole / RESULT, target / RESULT)
    return {
        'command': ' '.join(command),
        'exit_code': done.returncode,
        'passed': done.returncode == 0,
    }


def main() -> int:
    """Run all scenarios, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('names', nargs='*', metavar='NAME', default=[*RUNS])
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in RUNS]
    if unknown:
        parser.error(f'no run {unknown[0]!r}; expected {", ".join(RUNS)}')
    path = options.out / 'index.json'
    index = json.loads(path.read_text()) if path.exists() else {}
    for name in options.names:
        index[name] = run(name, RUNS[name], options.out)
        path.write_text(json.dumps(index, indent=2, sort_keys=True) + '\n')
    failed = [name for name in options.names if not index[name]['passed']]
    for name in failed:
        print(f'failed: {name}{" (shown only)" * (name in SHOWN_ONLY)}')
    return 1 if set(failed) - set(SHOWN_ONLY) else 0


if __name__ == '__main__':
    sys.exit(main())
