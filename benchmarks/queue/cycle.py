# SPDX-License-Identifier: Apache-2.0

"""Cost of a cycle of the queue: all of it, and each part.

Clouds have up to 1,000 full hosts with 20 servers each, and up to 10,000
requests wait, by shares; without accounts, and with 2,210 that have budgets,
windows, ceilings and quotas. A cycle runs every ten seconds. Before each, a
server ends on one of a hundred hosts, so that others start. One cycle a minute
is whole and charges users for their servers; those between plan for the first
requests.

The store is SQLite. Placement, Nova and Keystone are a fake that answers over
HTTP, in a process of its own: only the CPU time of the service is counted. As
Nova does, it lists servers that no host has each time, and others when they
changed. Started servers run before the next cycle. Run alone on the machine::

    python -m benchmarks.queue.cycle --out FILE
"""

import collections
from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import dataclasses
import json
import math
import pathlib
import random
import tempfile
import time
from typing import Any

import numpy as np
from oslo_config import cfg

from benchmarks.queue import fairqueue
from benchmarks.queue import large_cloud
from benchmarks.queue import recorded
from nova_fairness.cluster import clocks
from nova_fairness.cluster import collaborators
from nova_fairness.cluster import leader_election
from nova_fairness.cluster import service
from nova_fairness.cluster.accounts import accounts as accounts_module
from nova_fairness.cluster.admission import dispatcher
from nova_fairness.cluster.admission import scheduler
from nova_fairness.cluster.assembly import queue_service
from nova_fairness.cluster.assembly import service_parts
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import store as store_module
from nova_fairness.conf import cluster as cluster_conf
from nova_fairness.model import cast as cast_module
from nova_fairness.model import cluster
from nova_fairness.model import request
from tests.fixtures import fake_cloud

MINUTES = 3
BEGIN = 1.8e9
"""A Friday morning, seconds of the epoch."""

PAUSE_S = 10.0
PARTS = ('store', 'look', 'ledger', 'plan', 'starts')


class Conductor(dispatcher.Sender):
    """Takes all that is sent."""

    def connect(self) -> None:
        """Be ready."""

    def send(self, cast: cast_module.Cast) -> None:
        """Take it."""

    def is_drained(self) -> bool:
        """Have it all."""
        return True


@contextlib.contextmanager
def stored() -> Iterator[store_module.Store]:
    """A store that this process leads with the epoch 1."""
    with tempfile.TemporaryDirectory() as place:
        keys = pathlib.Path(place) / 'keys'
        sealing.add_key(keys)
        engine = database.open_engine(f'sqlite:///{place}/s.sqlite')
        schema.upgrade_tables(engine)
        yield store_module.Store(engine, sealing.read_key_file(keys))


def asked(
    waiting: int, flavors: int, seed: int | None = None
) -> tuple[request.Request, ...]:
    """Requests as they come from Nova: by UUIDs, up to the begin.

    :param seed: ``None`` for one that depends on their number alone.
    """
    named = fake_cloud.name_uuid
    return tuple(
        dataclasses.replace(
            each,
            uuid=named(each.servers[0]),
            servers=tuple(map(named, each.servers)),
            asked_at=BEGIN - waiting + each.asked_at,
        )
        for each in fairqueue.requests(
            waiting, random.Random(waiting if seed is None else seed), flavors
        )
    )


def keep(store: store_module.Store, each: request.Request) -> None:
    """A request whose message came."""
    spec = {
        'nova_object.name': 'RequestSpec',
        'nova_object.version': '1.0',
        'nova_object.data': {'ignore_hosts': None, 'project_id': each.project},
    }
    message = {
        'method': each.origin.value,
        'version': '1.17',
        '_context_auth_token': 'a-token',
        'args': {'request_specs': [spec] * len(each.servers)},
    }
    body = {'oslo.version': '2.0', 'oslo.message': json.dumps(message)}
    cast = cast_module.Cast(
        f'cast-{each.uuid}',
        each.origin.value,
        each.asked_at,
        'conductor',
        json.dumps(body).encode(),
        {},
    )
    store.store_message(cast)
    store.add_request(each, cast.uuid, each.asked_at)


def default_choices() -> service_parts.Choices:
    """Choices of operators who configure nothing."""
    conf = cfg.ConfigOpts()
    cluster_conf.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    return queue_service.build_choices(conf)


class Cycles:
    """A service whose cycles are measured, part by part.

    :param served: its cloud.
    :param store: its store.
    :param limits: of projects.
    :param accounts: of the share tree.

    :ivar now: seconds of the epoch.
    """

    def __init__(
        self,
        served: large_cloud.Served,
        store: store_module.Store,
        limits: dict[str, cluster.Limits],
        accounts: tuple[cluster.Account, ...],
    ) -> None:
        self.now = BEGIN
        self._spent_s: dict[str, float] = collections.defaultdict(float)
        clock = lambda: self.now  # noqa: E731
        outside = service_parts.Surroundings(
            store,
            served.clients(),
            Conductor(),
            leader_election.Election(store, 'benchmark', 1e9, clock, clock),
            clocks.Clocks(clock, clock, lambda: None),
            time.monotonic,
        )
        chosen = dataclasses.replace(
            default_choices(),
            limits=limits,
            accounts=lambda _, store: accounts_module.Accounts(
                store, lambda: accounts
            ),
        )
        made = service_parts.build_collaborators(outside, chosen)
        self.service = service.Service(made, service.ServiceOptions())
        self._time_parts(made)

    def _time_parts(self, made: collaborators.Collaborators) -> None:
        for name, owner, method in (
            ('store', made.store, 'requests'),
            ('look', made.reader, 'read'),
            ('ledger', made.charging, 'charge'),
            ('plan', self.service._planning, 'plan'),  # noqa: SLF001
            ('starts', made.executor, 'carry_out'),
        ):
            setattr(owner, method, self._timed(name, getattr(owner, method)))

    def _timed(
        self, name: str, call: Callable[..., Any]
    ) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            begun_s = time.process_time()
            try:
                return call(*given, **named)
            finally:
                self._spent_s[name] += time.process_time() - begun_s

        return timed

    def started(self) -> list[tuple[str, str, dict[str, int]]]:
        """Servers that the last cycle started: which, where, and what."""
        last = self.service.last()
        known = {each.uuid: each for each in last.snapshot.requests}
        return [
            (server, host, dict(known[each.request].demand.amounts))
            for each in last.plan.actions
            if each.verb is cluster.Verb.START
            for server, host in zip(
                known[each.request].servers, each.hosts, strict=True
            )
        ]

    def measured(self) -> dict[str, float]:
        """CPU seconds of a cycle and of its parts, and how many start."""
        self._spent_s.clear()
        begun_s = time.process_time()
        self.service.cycle()
        cycle_s = time.process_time() - begun_s
        # What a pause does for cycles; it makes no estimates in no time.
        self.service.estimate(0.0)
        parts = {name: self._spent_s[name] for name in PARTS}
        started = sum(
            each.verb is cluster.Verb.START
            for each in self.service.last().plan.actions
        )
        return {**parts, 'cycle': cycle_s, 'started': started}


def medians(measured: list[dict[str, float]]) -> dict[str, float]:
    """Median CPU time of each part, seconds.

    ``own`` is the service's own work: without calls of Nova and Placement and
    without starts.
    """
    found = {
        f'{name}_cpu_s': round(
            float(np.median([each[name] for each in measured])), 3
        )
        for name in (*PARTS, 'cycle')
    }
    without = [each['cycle'] - each['starts'] for each in measured]
    found['without_starts_cpu_s'] = round(float(np.median(without)), 3)
    own = [e['cycle'] - e['starts'] - e['look'] for e in measured]
    found['own_cpu_s'] = round(float(np.median(own)), 3)
    found['started'] = int(np.median([each['started'] for each in measured]))
    return found


def measure(
    waiting: int, hosts: int, flavors: int, is_bounded: bool
) -> dict[str, Any]:
    """Some minutes of cycles: medians of whole ones and of those between."""
    requests = asked(waiting, flavors)
    limits = {
        f'p{n}': cluster.Limits({'VCPU': 10}, {'VCPU': 100_000})
        for n in range(0, fairqueue.PROJECTS, 2)
    }
    accounts = fairqueue.accounts(hosts) if is_bounded else ()
    spent: tuple[list[dict[str, float]], ...] = ([], [])
    with (
        large_cloud.Served(
            large_cloud.FakeLargeCloud(hosts, requests)
        ) as served,
        stored() as store,
    ):
        for each in requests:
            keep(store, each)
        cycles = Cycles(served, store, limits, accounts)
        # The first minute reads everything.
        started: list[tuple[str, str, dict[str, int]]] = []
        for number in range(round(scheduler.EVERY_S / PAUSE_S) * MINUTES + 1):
            served.go_on(max(hosts // 100, 1), started)
            cycles.now = BEGIN + PAUSE_S * number
            found = cycles.measured()
            started = cycles.started()
            is_whole = (PAUSE_S * number) % scheduler.EVERY_S == 0
            if PAUSE_S * number >= scheduler.EVERY_S:
                spent[is_whole].append(found)
    found = {
        'requests': waiting,
        'hosts': hosts,
        'whole': medians(spent[True]),
        'between': medians(spent[False]),
    }
    print(found, flush=True)
    return found


def measure_all(flavors: int, is_bounded: bool) -> dict[str, Any]:
    """Measure every size: the cost of cycles, and its growth."""
    found = [measure(*size, flavors, is_bounded) for size in fairqueue.SIZES]
    logs = [
        (
            math.log(each['requests']),
            math.log(each['whole']['without_starts_cpu_s']),
        )
        for each in found
    ]
    slope = np.polyfit(*zip(*logs, strict=True), 1)[0]
    return {
        'bounded': is_bounded,
        'exponent': round(float(slope), 2),
        'cycles': found,
    }


def main() -> None:
    """Measure without accounts and with them."""
    parser = recorded.parser(__doc__)
    parser.add_argument('--flavors', type=int, default=50)
    given = parser.parse_args()
    clouds = [measure_all(given.flavors, each) for each in (False, True)]
    recorded.write(given.out, {'flavors': given.flavors, 'clouds': clouds})


if __name__ == '__main__':
    main()
