# SPDX-License-Identifier: Apache-2.0

"""Whether a request is lost or started twice when something dies.

Relay, two cluster services, RabbitMQ and the database are real; in every run
three requests are made, and one of these processes is killed at a random
write. nova-api, conductor, Placement and Nova are fakes that count::

    python -m benchmarks.queue.kills DATABASE RUNS [SEED [FILE]]

DATABASE is sqlite or mariadb. With ``--beside`` so many clouds, with a broker
and a database each, share the runs: most of a run is waiting. Several results
in one FILE stand side by side.
"""

import argparse
from concurrent import futures
import dataclasses
import json
import multiprocessing
import pathlib
import sys
import time

from tests.fixtures import kill_runs

RESULTS = pathlib.Path(__file__).parents[1] / 'results' / 'kills.json'


def measure(name: str, count: int, seed: int) -> kill_runs.Counts:
    """Do runs in one cloud, and say how it goes on.

    :param name: of the database.
    """

    def tell(counts: kill_runs.Counts) -> None:
        found = {'seed': seed, **dataclasses.asdict(counts)}
        print(json.dumps(found), flush=True)

    with kill_runs.cloud(name, seed) as cloud:
        return kill_runs.runs(cloud, count, tell)


def measure_beside(
    name: str, count: int, seed: int, clouds: int
) -> kill_runs.Counts:
    """Do runs in some clouds; each cloud has a seed of its own."""
    parts = [count // clouds + (n < count % clouds) for n in range(clouds)]
    # A process each: what is fake of a cloud would wait for others.
    context = multiprocessing.get_context('spawn')
    with futures.ProcessPoolExecutor(clouds, context) as pool:
        done = [
            pool.submit(measure, name, part, seed + n)
            for n, part in enumerate(parts)
        ]
        return kill_runs.sum_counts([each.result() for each in done])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('database', choices=('sqlite', 'mariadb'))
    parser.add_argument('runs', type=int)
    parser.add_argument('seed', type=int, nargs='?', default=0)
    parser.add_argument('file', type=pathlib.Path, nargs='?', default=RESULTS)
    parser.add_argument('--beside', type=int, default=1, metavar='CLOUDS')
    return parser.parse_args()


def main() -> int:
    """Do the runs that the command line asks for."""
    given, begun_s = _arguments(), time.monotonic()
    counts = measure_beside(
        given.database, given.runs, given.seed, given.beside
    )
    found = {
        'command': ' '.join(['python', *sys.orig_argv[1:]]),
        'seed': given.seed,
        'clouds': given.beside,
        'seconds': round(time.monotonic() - begun_s),
        **dataclasses.asdict(counts),
    }
    known = json.loads(given.file.read_text()) if given.file.exists() else {}
    known[f'{given.database}-{given.seed}'] = found
    text = json.dumps(known, indent=1, sort_keys=True)
    given.file.write_text(text + '\n')
    return 0 if counts.is_clean else 1


if __name__ == '__main__':
    raise SystemExit(main())
