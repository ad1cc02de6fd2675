# SPDX-License-Identifier: Apache-2.0

"""Costs of rounds, exchange and simulator beside those of another commit.

Makes a checkout of that commit with an environment of its own. Scripts of this
folder run there and here by turns, each with its own tree's code. Rounds, and
agents, share a node and its guests. Run as root, alone on the machine::

    python -m benchmarks.beside COMMIT
    python -m benchmarks.beside COMMIT --only mesh --times 9

Results are added to ``benchmarks/results/beside.json``.
"""

import argparse
from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import dataclasses
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

from benchmarks.agent import node_cycle

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / 'results' / 'beside.json'
TIMES = {'simulator': 5, 'mesh': 5, 'node_cycle': 12, 'agent': 3}
SIMULATED = ((250, 'foresight'), (500, 'feedback'))
MESH = ('--nodes', '10', '--users', '20', '--rounds', '8')
VMS, ROUNDS, WINDOW_S = 20, 30, 10.0

LIMIT = 1.05
"""Largest ratio of what is measured now to what was."""

MEMORY_LIMIT = 1.0
"""The same for memory of agents."""

Figures = dict[str, float]


@dataclasses.dataclass(frozen=True)
class Checkout:
    """A checkout and the interpreter that has its packages."""

    root: pathlib.Path
    python: str

    @property
    def commit(self) -> str:
        """Which commit it is of, and whether something was changed since."""
        return _output_of(
            *('git', '-C', str(self.root), 'describe', '--always', '--dirty'),
            *('--abbrev=40', '--exclude=*'),
        )

    def benchmark_command(self, name: str) -> list[str]:
        """Words that run a benchmark; older checkouts have no folders."""
        (path,) = self.root.glob(f'benchmarks/**/{name}.py')
        return ['env', f'PYTHONPATH={self.root}', self.python, str(path)]

    def run_benchmark(self, name: str, *arguments: str) -> str:
        """Run a benchmark of this checkout and return its output."""
        one_thread = dict.fromkeys(
            ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1'
        )
        return _output_of(
            *self.benchmark_command(name),
            *arguments,
            env={**os.environ, **one_thread},
        )


def _output_of(*command: str, env: dict[str, str] | None = None) -> str:
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=env
    ).stdout.strip()


@contextlib.contextmanager
def checkout_of(commit: str) -> Iterator[Checkout]:
    """A checkout of a commit; it sees the packages that this program sees."""
    with tempfile.TemporaryDirectory(dir='/var/tmp') as directory:
        root = pathlib.Path(directory, 'tree')
        git = ('git', '-C', str(ROOT), 'worktree')
        _output_of(*git, 'add', '--detach', str(root), commit)
        try:
            yield Checkout(root, _environment(root))
        finally:
            _output_of(*git, 'remove', '--force', str(root))


def _environment(root: pathlib.Path) -> str:
    _output_of(
        sys.executable, '-m', 'venv', '--without-pip', str(root / '.venv')
    )
    python = str(root / '.venv/bin/python')
    seen = [path for path in sys.path if path.endswith('-packages')]
    (own,) = (root / '.venv').glob('lib/python*/site-packages')
    (own / 'seen.pth').write_text('\n'.join(seen))
    _output_of(
        *(sys.executable, '-m', 'pip', '--python', python, 'install', '-q'),
        *('--no-deps', '-e', str(root)),
        env={**os.environ, 'PBR_VERSION': '0.0.1.dev0'},
    )
    return python


def cost_of_simulator(checkout: Checkout) -> Figures:
    """Cost of a simulation."""
    found = {}
    for nodes, policy in SIMULATED:
        row = json.loads(
            checkout.run_benchmark('simulator', '--one', str(nodes), policy)
        )
        for name in ('simulate_cpu_s', 'peak_mib'):
            found[f'{policy} {nodes} {name}'] = row[name]
    return found


def cost_of_mesh(checkout: Checkout) -> Figures:
    """Cost of a round for nodes that exchange their reports.

    Memory is not measured: many nodes share a process here, unlike agents.
    """
    with tempfile.NamedTemporaryFile() as file:
        checkout.run_benchmark('mesh', *MESH, '--out', file.name)
        rows = json.loads(pathlib.Path(file.name).read_text())['rows']
    return {
        f'{row["kind"]} cpu_ms_per_node_round': row['cpu_ms_per_node_round']
        for row in rows
        if row['kind'] != 'pubsub'  # None of our code.
    }


def cost_of_rounds(rows: list[dict[str, float]]) -> Figures:
    """Cost of rounds, by the part of VMs that change."""
    return {
        f'{row["changed"]:.0%} changed ours_us_per_vm': row['ours_us_per_vm']
        for row in rows
    }


def memory_of_agent(agent: dict[str, float]) -> Figures:
    """Memory of an agent that is run as operators run it, and of its helpers.

    Its CPU time is counted in ticks of ten milliseconds, too few to compare.
    """
    names = ('agent_pss_mib', 'tree_pss_mib')
    return {name: agent[name] for name in names}


@contextlib.contextmanager
def measure_trees_in_turn(
    measured: Callable[[Checkout], Figures],
) -> Iterator[Callable[[Checkout], Figures]]:
    """Measurement that needs nothing in common."""
    yield measured


@contextlib.contextmanager
def rounds_on_one_node() -> Iterator[Callable[[Checkout], Figures]]:
    """Rounds of all checkouts with the same guests."""
    with node_cycle.one_node() as (node, where):
        node_cycle.start_guests(node, 0, VMS, where)
        yield lambda checkout: cost_of_rounds(
            node_cycle.run_inner_half(
                node,
                *('--vms', str(VMS), '--rounds', str(ROUNDS)),
                command=checkout.benchmark_command('node_cycle_rounds'),
            )['rows']
        )


@contextlib.contextmanager
def agents_on_one_node() -> Iterator[Callable[[Checkout], Figures]]:
    """Agents of all checkouts with the same guests."""
    with node_cycle.one_node() as (node, where):
        node_cycle.start_guests(node, 0, VMS, where)
        yield lambda checkout: memory_of_agent(
            node_cycle.agent_cost(
                node, WINDOW_S, where, python=checkout.python
            )
        )


PARTS: dict[
    str, Callable[[], contextlib.AbstractContextManager[
        Callable[[Checkout], Figures]]]
] = {
    'simulator': lambda: measure_trees_in_turn(cost_of_simulator),
    'mesh': lambda: measure_trees_in_turn(cost_of_mesh),
    'node_cycle': rounds_on_one_node,
    'agent': agents_on_one_node,
}  # fmt: skip


def largest_ratio(name: str) -> float:
    """Largest ratio that is allowed of what has this name."""
    return MEMORY_LIMIT if name.endswith('pss_mib') else LIMIT


def compare_figures(
    runs: list[tuple[Figures, Figures]],
) -> list[dict[str, object]]:
    """Values before and now, by figure.

    The ratio is the median of the ratios of all turns: a disturbance of some
    minutes falls on both sides of a turn.

    :param runs: before and now, of each turn.
    """
    rows: list[dict[str, object]] = []
    for name in runs[0][0]:
        before = [then[name] for then, _ in runs]
        now = [here[name] for _, here in runs]
        pairs = zip(before, now, strict=True)
        rows.append(
            {
                'figure': name,
                'before': statistics.median(before),
                'now': statistics.median(now),
                'ratio': statistics.median(new / old for old, new in pairs),
                'limit': largest_ratio(name),
                'before_runs': before,
                'now_runs': now,
            }
        )
    return rows


def measure(
    part: str, then: Checkout, here: Checkout, times: int
) -> dict[str, object]:
    """Run one part so many times at both commits, in turn."""
    runs = []
    with PARTS[part]() as measured:
        for turn in range(times):
            # Each is the first in every second turn.
            checkouts = (then, here) if turn % 2 else (here, then)
            found = {checkout: measured(checkout) for checkout in checkouts}
            runs.append((found[then], found[here]))
            print(part, json.dumps(runs[-1]), flush=True)
    return {
        'command': ' '.join(['python', *sys.orig_argv[1:]]),
        'before': then.commit,
        'now': here.commit,
        'machine': {
            'kernel': platform.release(),
            'cpus': os.cpu_count(),
            'python': platform.python_version(),
        },
        'rows': compare_figures(runs),
    }


def main() -> int:
    """Measure what was asked for, keep it, and say what costs more."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('commit', help='commit that is compared with this one')
    parser.add_argument('--only', nargs='+', choices=PARTS, default=PARTS)
    parser.add_argument('--times', type=int)
    parser.add_argument('--out', type=pathlib.Path, default=RESULTS)
    options = parser.parse_args()
    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    here, worse = Checkout(ROOT, sys.executable), False
    with checkout_of(options.commit) as then:
        for part in options.only:
            times = options.times or TIMES[part]
            known[part] = measure(part, then, here, times)
            options.out.write_text(json.dumps(known, indent=1) + '\n')
            for row in known[part]['rows']:
                over = row['ratio'] > row['limit']
                worse = worse or over
                print(
                    f'{part:11}{row["figure"]:36}{row["before"]:10.2f}'
                    f'{row["now"]:10.2f}{row["ratio"]:8.3f}'
                    f'{"  more" if over else ""}'
                )
    return 1 if worse else 0


if __name__ == '__main__':
    sys.exit(main())
