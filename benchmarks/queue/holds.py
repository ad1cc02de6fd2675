# SPDX-License-Identifier: Apache-2.0

"""How many messages a second the store keeps, alone and many at once.

On SQLite and on real servers of MariaDB and PostgreSQL, which the benchmark
starts. Run alone on the machine::

    python -m benchmarks.queue.holds --out benchmarks/results/holds.json
"""

import contextlib
import pathlib
import random
import tempfile
import time
import uuid

from benchmarks.queue import recorded
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cast as cast_module
from tests.fixtures import database_server

BODY_BYTES = 15_000
BATCHES = (1, 10, 50)
COUNT = 1000


def casts(count: int) -> list[cast_module.Cast]:
    """Messages of the size of Nova's; half cannot be compressed."""
    half = random.Random(0).randbytes(BODY_BYTES // 4).hex()
    body = half.encode().ljust(BODY_BYTES, b' ')
    return [
        cast_module.Cast(
            uuid.uuid4().hex, 'm', float(n), 'conductor', body, {'a': 1}
        )
        for n in range(count)
    ]


def measure(name: str, url: str, directory: pathlib.Path) -> dict[str, int]:
    """Holds a second in batches of every size."""
    keys = directory / f'keys-{name}'
    sealing.add_key(keys)
    engine = database.open_engine(url)
    schema.upgrade_tables(engine)
    store = store_module.Store(engine, sealing.read_key_file(keys))
    found = {}
    for size in BATCHES:
        came = casts(COUNT)
        begun_s = time.monotonic()
        for first in range(0, COUNT, size):
            store.store_messages(came[first : first + size])
        rate = COUNT / (time.monotonic() - begun_s)
        print(f'{name:10} batches of {size:3}: {rate:8.0f} holds/s')
        found[f'batches_of_{size}'] = round(rate)
    return found


def main() -> None:
    """Measure on every database."""
    out = recorded.parser(__doc__).parse_args().out
    found = {}
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(
            stack.enter_context(tempfile.TemporaryDirectory())
        )
        url = f'sqlite:///{directory}/s.sqlite'
        found['sqlite'] = measure('sqlite', url, directory)
        for name, kind in (
            ('mariadb', database_server.MARIADB),
            ('postgresql', database_server.POSTGRESQL),
        ):
            server = stack.enter_context(database_server.running(kind))
            found[name] = measure(name, server.new_database(), directory)
    recorded.write(out, {'holds_a_second': found})


if __name__ == '__main__':
    main()
