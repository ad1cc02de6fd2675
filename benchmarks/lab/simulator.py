# SPDX-License-Identifier: Apache-2.0


"""How fast the simulator is, and how its memory grows.

Each size runs in a process of its own, with every round shown to observers
that sum up (no tables, no ideal: those are costs of their own). Run alone on
the machine::

    python -m benchmarks.lab.simulator --out benchmarks/results/simulator.json
"""

import argparse
import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import time

from benchmarks.pages import manual_table

SIZES = (125, 250, 500, 1000)
VMS_PER_NODE = 50
ROUNDS = 100
LIMIT_S = 60.0
PAGE = (
    pathlib.Path(__file__).resolve().parents[2]
    / 'doc/source/user/simulator-cost.inc'
)


def measure(nodes: int, policy: str) -> dict[str, object]:
    """Simulate a cloud in this process."""
    from fairness_lab.measures import running
    from fairness_lab.measures import summary
    from fairness_lab.scenario import cloud as cloud_module
    from fairness_lab.scenario import generate
    from fairness_lab.scenario import recipes
    from fairness_lab.scenario import values as scenario_module

    begin_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started_s = time.process_time()
    recipe = recipes.CloudRecipe(
        nodes=nodes,
        users=nodes,
        degree=5,
        vms_per_node=VMS_PER_NODE,
        node_cpus=(16.0,),
        resources=('cpu_time', 'disk_read', 'disk_written', 'memory'),
        coupled=0.1,
        demand=recipes.DemandPattern.BURSTY,
        on=10.0,
        off=10.0,
        churn=0.002,
        seed=1,
    )
    cloud = generate.generate(recipe, 'benchmark', '', 10.0, ROUNDS)
    generated_s = time.process_time()
    agents = scenario_module.AgentSpec(policy=policy)
    made = running.setup(
        cloud_module.Experiment(cloud, agents), running.RunOptions()
    )
    total = summary.Summary(cloud)
    running.observe(cloud, made, [total])
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        'nodes': nodes,
        'vms_at_a_time': nodes * VMS_PER_NODE,
        'vms_ever': len(cloud.vms),
        'rounds': ROUNDS,
        'metric': agents.metric,
        'policy': policy,
        'generate_cpu_s': round(generated_s - started_s, 2),
        'simulate_cpu_s': round(time.process_time() - generated_s, 2),
        'peak_mib': round(peak_kib / 1024, 1),
        'of_which_program_mib': round(begin_kib / 1024, 1),
        'cpu_used': total.result()['used']['cpu_time'],
    }


def page(result: dict[str, object]) -> str:
    """Table of the documents."""
    header = ('Policy', 'Nodes', 'VMs at a time', 'Seconds', 'Peak memory')
    cells = [
        (
            row['policy'],
            f'{row["nodes"]:,}',
            f'{row["vms_at_a_time"]:,}',
            f'{row["simulate_cpu_s"]:.0f}',
            f'{row["peak_mib"]:.0f} MiB',
        )
        for row in result['rows']
    ]
    lines = [
        f'{ROUNDS} rounds on one core, CPU seconds',
        (
            '(``benchmarks/lab/simulator.py``; '
            'a tenth of the VMs couples its demand;'
        ),
        'the ideal, the tables and the pictures are costs of their own):',
        '',
        *manual_table.lines(header, cells),
    ]
    return '\n'.join(lines)


def main() -> int:
    """Measure all sizes and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', type=pathlib.Path)
    parser.add_argument('--policies', default='foresight,feedback,none')
    parser.add_argument('--one', nargs=2, metavar=('NODES', 'POLICY'))
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(int(options.one[0]), options.one[1])))
        return 0
    one_thread = dict.fromkeys(
        ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1'
    )
    rows = []
    for policy in options.policies.split(','):
        for nodes in SIZES:
            done = subprocess.run(
                [
                    *(sys.executable, '-m', __spec__.name),
                    *('--one', str(nodes), policy),
                ],
                check=True,
                capture_output=True,
                text=True,
                env={**os.environ, **one_thread},
            )
            rows.append(json.loads(done.stdout))
            print(rows[-1])
    result = {
        'version': 1,
        'command': 'python -m benchmarks.lab.simulator',
        'machine': {
            'kernel': platform.release(),
            'cpus': os.cpu_count(),
            'python': platform.python_version(),
        },
        'limit_s': LIMIT_S,
        'rows': rows,
    }
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + '\n')
        PAGE.write_text(page(result), encoding='utf-8')
    slow = [row for row in rows if row['simulate_cpu_s'] > LIMIT_S]
    return 1 if slow else 0


if __name__ == '__main__':
    sys.exit(main())
