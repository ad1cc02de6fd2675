# SPDX-License-Identifier: Apache-2.0

"""Cost of percentiles of waits, on every database.

100,000 ended requests of 2,000 projects and 50 flavors, each with five events
of its wait, for three reasons. Needs mariadbd and postgres. Run alone::

    python -m benchmarks.queue.waits --out benchmarks/results/queue/waits.json
"""

import collections
import contextlib
import pathlib
import random
import resource
import statistics
import tempfile
import time
from typing import Any

import sqlalchemy as sa

from benchmarks.queue import recorded
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import store as store_module
from nova_fairness.cluster.store import tables
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.model import waits
from tests.fixtures import database_server

REQUESTS, PROJECTS, FLAVORS, ROUNDS, AT_ONCE = 100_000, 2000, 50, 7, 500
DAYS_S = 30 * 86400.0
DEMAND = request_model.Demand(
    (('DISK_GB', 40), ('MEMORY_MB', 8192), ('VCPU', 4))
)
WHYS = (
    reason.why(reason.Reason.NOT_PLANNED),
    reason.why(reason.Reason.BEHIND_OTHERS, before=12),
    reason.why(reason.Reason.NO_ROOM, 'VCPU', asked=4, free=1),
    reason.why(reason.Reason.BEHIND_OTHERS, before=2),
    reason.why(reason.Reason.NO_ROOM, 'MEMORY_MB', asked=4, free=1),
)
ENDED = reason.why(reason.Reason.STARTED)


def rows(
    n: int, chance: random.Random
) -> dict[sa.Table, list[dict[str, Any]]]:
    """The row of one request, and those of its events and reasons."""
    uuid = f'{n:08x}-0000-4000-8000-000000000000'
    asked_at = chance.uniform(0.0, DAYS_S)
    wait_s = chance.lognormvariate(6.0, 2.0)
    request = request_model.Request(
        uuid,
        f'{n % PROJECTS:032x}',
        f'{n % 7:032x}',
        (uuid,),
        DEMAND,
        asked_at,
        flavor=f'm{n % FLAVORS}.large',
        state=request_model.State.ENDED,
    )
    record = records.RequestRecord(request, uuid, ENDED, asked_at + wait_s)
    made = {
        **records.request_columns(record),
        'stage': len(WHYS) + 2,
        'sent_at': asked_at + wait_s,
        'waited_s': wait_s,
    }
    part_s = wait_s / len(WHYS)
    events = [
        {
            'request': uuid,
            'stage': stage,
            'at': asked_at + stage * part_s,
            'until': asked_at + (stage + 1) * part_s,
            'state': request_model.State.WAITING.value,
            **records.reason_columns(why),
        }
        for stage, why in enumerate(WHYS)
    ]
    waited = {
        'request': uuid,
        'project': request.project,
        'sent_at': asked_at + wait_s,
    }
    reasons = collections.Counter(why.reason.value for why in WHYS)
    return {
        tables.REQUESTS: [made],
        tables.EVENTS: events,
        tables.WAITS: [
            {**waited, 'reason': name, 'wait_s': count * part_s}
            for name, count in reasons.items()
        ],
    }


def write_requests(engine: sa.Engine) -> None:
    """Write requests and their events."""
    chance = random.Random(0)
    for first in range(0, REQUESTS, AT_ONCE):
        found = [rows(n, chance) for n in range(first, first + AT_ONCE)]
        with engine.begin() as connection:
            for table in (tables.REQUESTS, tables.EVENTS, tables.WAITS):
                connection.execute(
                    sa.insert(table),
                    [row for each in found for row in each[table]],
                )


def timed(
    store: store_module.Store, wanted: waits.WaitFilter
) -> dict[str, Any]:
    """Seconds of one page, several times."""
    taken, found = [], 0
    for _ in range(ROUNDS):
        begin_s = time.perf_counter()
        found = len(store.waits.percentiles(wanted, '', 1000))
        taken.append(time.perf_counter() - begin_s)
    return {
        'groups': found,
        'median_s': round(statistics.median(taken), 3),
        'most_s': round(max(taken), 3),
    }


def measure(url: str, keys: pathlib.Path) -> dict[str, Any]:
    """Fill a database without tables, and ask it.

    :param keys: file that is made.
    """
    engine = database.open_engine(url)
    schema.upgrade_tables(engine)
    write_requests(engine)
    sealing.add_key(keys)
    store = store_module.Store(engine, sealing.read_key_file(keys))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    week_s, key = DAYS_S - 7 * 86400.0, waits.WaitKey
    found = {
        f'{each.value}_{span}': timed(store, waits.WaitFilter(each, None, at))
        for each in key
        for span, at in (('month', None), ('week', week_s))
    }
    found['reason_one_project'] = timed(
        store, waits.WaitFilter(key.REASON, f'{1:032x}')
    )
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    engine.dispose()
    return {
        'queries': found,
        'more_memory_mib': round((after - before) / 1024, 1),
    }


def main() -> None:
    """Measure, and write what was found."""
    out = recorded.parser(__doc__ or '').parse_args().out
    found = {}
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(
            stack.enter_context(tempfile.TemporaryDirectory())
        )
        url = f'sqlite:///{folder}/s.sqlite'
        found['sqlite'] = measure(url, folder / 'sqlite')
        for name, kind in (
            ('mariadb', database_server.MARIADB),
            ('postgresql', database_server.POSTGRESQL),
        ):
            server = stack.enter_context(database_server.running(kind))
            found[name] = measure(server.new_database(), folder / name)
    about = {'requests': REQUESTS, 'events': REQUESTS * len(WHYS)}
    recorded.write(out, {**about, 'databases': found})


if __name__ == '__main__':
    main()
