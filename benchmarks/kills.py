# SPDX-License-Identifier: Apache-2.0

"""Whether a request is lost or started twice when something dies.

Relay, two cluster services, RabbitMQ and the database are real; in every run
three requests are made, and one of these processes is killed at a random
write. nova-api, conductor, Placement and Nova are fakes that count::

    PYTHONPATH=. python benchmarks/kills.py DATABASE RUNS [SEED [FILE]]

DATABASE is sqlite or mariadb. Several results in one FILE stand side by side.
"""

import dataclasses
import json
import pathlib
import sys
import time
from typing import Any

from tests.fixtures import killing

RESULTS = pathlib.Path(__file__).parent / 'results' / 'kills.json'


def measure(name: str, count: int, seed: int, path: pathlib.Path) -> bool:
    """Do runs; whether nothing was lost, doubled or stuck."""
    begun_s = time.monotonic()

    def tell(counts: killing.Counts) -> None:
        took_s = round(time.monotonic() - begun_s)
        found = {'seed': seed, 'seconds': took_s, **dataclasses.asdict(counts)}
        _write(path, f'{name}-{seed}', found)
        print(json.dumps(found), flush=True)

    with killing.cloud(name, seed) as cloud:
        return killing.runs(cloud, count, tell).is_clean


def _write(path: pathlib.Path, name: str, found: dict[str, Any]) -> None:
    known = json.loads(path.read_text()) if path.exists() else {}
    text = json.dumps({**known, name: found}, indent=1, sort_keys=True)
    path.write_text(text + '\n')


def main() -> int:
    """Do the runs that the command line asks for."""
    name, count, *more = sys.argv[1:]
    seed = int(more[0]) if more else 0
    path = pathlib.Path(more[1]) if len(more) > 1 else RESULTS
    return 0 if measure(name, int(count), seed, path) else 1


if __name__ == '__main__':
    raise SystemExit(main())
