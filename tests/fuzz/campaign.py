# SPDX-License-Identifier: Apache-2.0

"""What one tenant, node, peer or row can do to the queue of all others.

Each area makes an odd input of one kind. Then the real loop runs on a real
store beside a fake cloud, a victim asks for a server that fits, and what must
hold is checked: the loop goes on, the victim starts within a few cycles, and
no host is overcommitted. The same seed makes the same inputs.
"""

import contextlib
import copy
import dataclasses
import json
import logging
import math
import pathlib
import random
import tempfile

import numpy as np
import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster import quarantine
from nova_fairness.cluster.accounts import limits_file
from nova_fairness.cluster.accounts import share_file
from nova_fairness.cluster.admission import scheduler
from nova_fairness.cluster.api import requests
from nova_fairness.cluster.messages import parser
from nova_fairness.cluster.store import tables
from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import planner
from nova_fairness.runtime import supervision
from nova_fairness.shares import measured
from tests.fixtures import fake_cloud
from tests.fixtures import small_cloud
from tests.fuzz import batch_areas
from tests.fuzz import odd
from tests.unit.cluster import test_service

S = request.State
GOOD_HOSTS = tuple(f'h{n}' for n in range(1, 6))
BAD_HOST = 'bad-host'
EVIL, VICTIM = 'evil', 'victim'
WITHIN = 4
"""Cycles after which the victim has started."""

_STEP_S = 20.0


class Broken(AssertionError):
    """Something that must hold does not."""


class FakeStop:
    """Stops the loop after some cycles; time passes between them."""

    def __init__(self, cloud, cycles):
        self._cloud = cloud
        self._left = cycles

    def is_set(self):
        return not self._left

    def wait(self, _):
        self._left -= 1
        self._cloud.pass_time()


class Cloud:
    """A world with a tenant who does harm, and one who does not."""

    def __init__(self, place):
        self.world = test_service.World(place)
        self.fake = self.world.cloud
        for name in (*GOOD_HOSTS, BAD_HOST):
            self.fake.add_host(name, 8)
        self._room = copy.deepcopy(self.fake.providers)
        self._built = set()
        self.runs = self.run_server('evil-runs', BAD_HOST, EVIL)
        self.shares = self.run_server('evil-shares', 'h1', EVIL)
        self.others = self.run_server('other-runs', 'h1', 'other')
        self.process = None

    def run_server(self, name, host, project):
        """A server that runs and that the queue knows."""
        server = fake_cloud.name_uuid(name)
        flavor = {'vcpus': 1, 'ram': 100, 'disk': 0, 'ephemeral': 0}
        self.fake.add_server(server, project, flavor=flavor)
        self.fake.servers[server]['OS-SRV-USG:launched_at'] = (
            '1970-01-01T00:10:00'
        )
        self.fake.build(server, host, {'VCPU': 1, 'MEMORY_MB': 100})
        return server

    def cycles(self, count):
        """Let the loop run for some cycles."""
        if self.process is None:
            self.process = self.world.process()
        before = self.process.cycles
        try:
            manager = supervision.ServiceManager()
            self.process.run(FakeStop(self, count), 0.0, manager)
        except Exception as error:
            raise Broken(f'the loop died of {error!r}') from error
        if self.process.cycles - before != count:
            raise Broken('the loop ended')

    def pass_time(self):
        """Nova builds what it was sent, and time goes on."""
        self.world.now += _STEP_S
        self.world.tick += _STEP_S
        states = {S.STARTING, S.ACTIVE}
        for record in self.world.store.requests(states):
            asked = record.request
            amounts = dict(asked.demand.amounts)
            pairs = zip(asked.servers, record.hosts, strict=False)
            for server, host in pairs:
                if server in self.fake.servers and server not in self._built:
                    self._built.add(server)
                    self.fake.build(server, host, amounts)
        self._check_room()

    def _check_room(self):
        for uuid, each in self._room.items():
            for name, inventory in each['inventories'].items():
                used = self.fake.used(uuid, name)
                if used > inventory['total']:
                    raise Broken(f'{each["name"]} has {used} {name} in use')

    def victim_starts(self):
        """A server that fits is asked for, and starts."""
        server = self.world.post('victim', 2, VICTIM)
        for _ in range(WITHIN):
            self.cycles(1)
            record = self.world.store.request(server)
            if record and record.request.state in (S.STARTING, S.ACTIVE):
                return
        told = record and (record.request.state, record.why.sentence)
        held = self.process.quarantine.entries()
        raise Broken(f'the victim waits: {told}; set aside: {held}')


@contextlib.contextmanager
def clouds():
    """A cloud of its own."""
    with tempfile.TemporaryDirectory() as place:
        made = Cloud(place)
        try:
            yield made
        finally:
            made.world.close()


def casts(rng):
    """What a user's build or unshelve says, with hints and metadata."""
    with clouds() as cloud:
        for n in range(rng.randrange(1, 4)):
            _post(rng, cloud, f'bad{n}')
        if rng.random() < 0.5:
            cloud.world.binds = True
        preemptible = parser.PreemptibleRules(
            marks=True, choices=frozenset(parser.eviction.EvictionAction)
        )
        terms = test_service.intake.AdmissionOptions(
            rng.choice([None, 1e6]), preemptible
        )
        cloud.process = cloud.world.process(terms=terms)
        cloud.cycles(2)
        cloud.victim_starts()


def _post(rng, cloud, name):
    server = fake_cloud.name_uuid(name)
    cloud.fake.add_server(server, EVIL)
    hints = {
        'fairness:preemptible': ['yes'], 'fairness_time_limit': ['2h'],
        'fairness:preemption_action': ['stop'], 'query': ['["=", "$x", 1]'],
    }  # fmt: skip
    more = {
        'ignore_hosts': ['h1'], 'force_hosts': None, 'force_nodes': None,
        'availability_zone': None, 'num_instances': 1, 'limits': None,
        'requested_destination': None, 'security_groups': [],
        'instance_group': _group(rng),
        'numa_topology': None, 'pci_requests': None, 'retry': None,
        'requested_resources': [], 'root_required': [], 'image': None,
    }  # fmt: skip
    cast = test_service.build(
        name, server, rng.choice((1, 2, 8)), EVIL, hints, **more
    )
    body = json.loads(cast.body)
    inner = json.loads(body['oslo.message'])
    if rng.random() < 0.2:
        inner['method'] = request.Origin.UNSHELVE.value
        inner['args'] = {
            'instance': _versioned(
                'Instance', uuid=server, project_id=EVIL, user_id='u',
                vm_state='shelved_offloaded', metadata=dict(hints),
            ),
            'request_spec': inner['args']['request_specs'][0],
        }  # fmt: skip
        inner['args']['instance']['nova_object.version'] = '2.8'
    else:
        instance = _versioned(
            'Instance', uuid=server, metadata={'fairness:time_limit': '2h'}
        )
        instance['nova_object.version'] = '2.8'
        builds = [_versioned('BuildRequest', instance=instance)]
        inner['args']['build_requests'] = builds
    inner['args'] = odd.change_document(rng, inner['args'])
    if rng.random() < 0.1:
        inner = odd.change_document(rng, inner)
    text = json.dumps(inner)
    if rng.random() < 0.1:
        text = odd.cut(rng, text)
    body['oslo.message'] = text
    written = json.dumps(body).encode('utf-8', 'surrogatepass')
    method = rng.choice([each.value for each in request.Origin])
    if isinstance(inner, dict) and inner.get('method') in (
        each.value for each in request.Origin
    ):
        method = inner['method']
    cloud.world.store.store_message(
        dataclasses.replace(cast, method=method, body=written)
    )


def _versioned(kind, **fields):
    return {
        'nova_object.name': kind,
        'nova_object.version': '1.0',
        'nova_object.data': fields,
    }


def _group(rng):
    if rng.random() < 0.5:
        return None
    return _versioned(
        'InstanceGroup', uuid=fake_cloud.name_uuid('group'),
        policy=rng.choice(('affinity', 'anti-affinity')), members=[],
        _rules={'max_server_per_host': rng.choice((1, 2**31, '9' * 40, -1))},
    )  # fmt: skip


def answers(rng):
    """Entries of Nova, Placement and Keystone about one host and tenant."""
    with clouds() as cloud:
        cloud.fake.groups['g'] = [cloud.runs]
        answer, seed = cloud.fake.answer, rng.random()
        is_steady = rng.random() < 0.5

        def changed(method, url, text, token=None):
            status, told = answer(method, url, text, token)
            if status != 200 or method != 'GET' or not told:
                return status, told
            own = random.Random(f'{seed}{url if is_steady else told}')
            return status, _changed_answer(own, url, told)

        if rng.random() < 0.3:
            _post(rng, cloud, 'bad')
        cloud.cycles(rng.randrange(2))
        cloud.fake.answer = changed
        cloud.cycles(2)
        cloud.victim_starts()


_OF_EVIL = (BAD_HOST, fake_cloud.name_uuid(BAD_HOST), EVIL)


def _changed_answer(rng, url, told):
    """An answer in which what is about the bad host and tenant is odd."""
    found = json.loads(told)
    if '/usages?' in url and f'={EVIL}' in url:
        # What is possible is believed: Placement keeps the books.
        found['usages']['VCPU'] = rng.choice(_IMPOSSIBLE)
        return json.dumps(found)
    if any(f'/{each}' in url or f'={each}' in url for each in _OF_EVIL) or (
        'os-server-groups' in url
    ):
        return json.dumps(odd.change_document(rng, found))
    for key, entries in found.items():
        if isinstance(entries, list):
            found[key] = [
                odd.change_document(rng, each) if _is_evil(each) else each
                for each in entries
            ]
            # What is said of a good host alone stays as it is.
            if '/resource_providers/' not in url and rng.random() < 0.2:
                found[key].append(odd.value(rng))
    return json.dumps(found)


_IMPOSSIBLE = (-1, 2**60, 2**70, -(2**63), 1e300, math.nan, 'x', None, [1])


def _is_evil(entry):
    text = json.dumps(entry)
    return any(each in text for each in _OF_EVIL)


def outages(rng):
    """Whole answers that are nonsense for a while."""
    with clouds() as cloud:
        begins = (
            'GET /resource_providers', 'GET /servers', 'GET /os-hypervisors',
            'GET /os-services', 'GET /usages', 'POST /allocations',
            'GET /allocations', 'GET /auth/tokens', 'DELETE /allocations',
            'GET /os-server-groups',
        )  # fmt: skip
        texts = ('', '{', '[]', '{}', 'null', '7', '"x"', '[[]]', '{"a": 1}')
        _post(rng, cloud, 'bad')
        cloud.cycles(rng.randrange(2))
        for begin in rng.sample(begins, rng.randrange(1, 4)):
            answer = rng.choice([*texts, 500, 503, 429, 403, 404, 409, 300])
            cloud.fake.broken[begin] = answer
        cloud.cycles(3)
        cloud.fake.broken.clear()
        cloud.victim_starts()


def rows(rng):
    """Rows of the store, but those of the victim."""
    with clouds() as cloud:
        for n in range(2):
            cloud.world.post(f'bad{n}', rng.choice((1, 99)), EVIL)
        cloud.cycles(rng.randrange(1, 3))
        _insert_some(rng, cloud)
        with cloud.world.engine.begin() as connection:
            for _ in range(rng.randrange(1, 4)):
                connection.execute(_odd_row(rng))
        if rng.random() < 0.3:
            cloud.process = None
            cloud.world.tick += 100.0
            cloud.cycles(2)
            cloud.world.tick += 100.0
        cloud.cycles(2)
        cloud.victim_starts()


_ROWS = {
    'leaves': {
        'uuid': 'l', 'server': fake_cloud.name_uuid('evil-runs'),
        'project': EVIL, 'owner': 'u', 'cause': 'idle', 'actions': 'stop',
        'at': 0.0, 'changed_at': 1000.0, 'tried': 0, 'state': 'told',
        'version': 0, 'reason': 'idle', 'subject': '',
        'numbers': '[["idle_h", 1]]', 'turn': 0, 'vcpus': 0, 'chosen_at': 0.0,
    },
    'plans': {
        'uuid': 'p', 'goal': 'empty', 'subject': BAD_HOST, 'state': 'running',
        'is_open': True, 'made_at': 0.0, 'changed_at': 0.0, 'until': 9e9,
        'cause': 'operator', 'explanation': '', 'moves': '[]',
        'empties': f'["{BAD_HOST}"]', 'promised': '{}', 'stays': '[]',
        'version': 0,
    },
    'nodes': {
        'host': BAD_HOST, 'batch': BAD_HOST, 'cloud': BAD_HOST, 'cores': 8.0,
        'state': 'cloud', 'since': 0.0, 'version': 0, 'history': '[]',
    },
    'risks': {
        'server': fake_cloud.name_uuid('evil-runs'), 'project': EVIL,
        'owner': 'u', 'state': 'at_risk', 'since': 0.0, 'changed_at': 0.0,
        'is_written': True, 'reason': 'at_risk', 'subject': '',
        'numbers': '[["times", 1], ["waiting", 1]]',
    },
}  # fmt: skip
_ALONE = frozenset({'leaders', 'casts'})
"""Nobody but this product's own statements and the relay write these."""


def _insert_some(rng, cloud):
    with cloud.world.engine.begin() as connection:
        for name, row in _ROWS.items():
            if rng.random() < 0.5:
                table = tables.METADATA.tables[name]
                connection.execute(sa.insert(table).values(row))


def _odd_row(rng):
    named = sorted(tables.METADATA.tables.keys() - _ALONE)
    table = tables.METADATA.tables[rng.choice(named)]
    if rng.random() < 0.15:
        return sa.delete(table)
    columns = [
        each.name
        for each in table.columns
        if not each.primary_key and each.name != 'cast_uuid'
    ]
    given = odd.value(rng)
    if isinstance(given, dict | list) or rng.random() < 0.3:
        given = json.dumps(given)
    if isinstance(given, int) and abs(given) >= 2**63:
        given = float(given)
    if isinstance(given, str):
        given = given.encode('utf-8', 'replace').decode()
        given = sa.cast(sa.literal(given), sa.Text)
    if given is None:
        given = sa.literal('null', sa.Text)
    column = rng.choice(columns)
    return sa.update(table).values({column: _raw(given)})


def _raw(given):
    """As it is, whatever the column is of."""
    if isinstance(given, bool):
        return sa.text(str(int(given)))
    if isinstance(given, int | float):
        text = repr(float(given))
        return sa.text({'inf': '9e999', '-inf': '-9e999'}.get(
            text, "'nan'" if text == 'nan' else text
        ))  # fmt: skip
    return given


def accounts(rng):
    """Limits of an account, as its manager or an operator sets them."""
    with clouds() as cloud:
        cloud.cycles(1)
        asked = requests.ClusterOperations(cloud.world.store, cloud.process)
        for _ in range(rng.randrange(1, 4)):
            name = rng.choice((EVIL, f'{EVIL}/u'))
            fields = odd.change_document(rng, _limits(rng))
            with contextlib.suppress(
                exception.FairnessError, TypeError, ValueError, AttributeError
            ):
                if rng.random() < 0.2:
                    asked.set_share(name, odd.number(rng))
                elif isinstance(fields, dict):
                    asked.set_limits(name, _but_all(fields))
        if rng.random() < 0.5:
            # What is in memory may come from a file, or from a newer version.
            cloud.world.accounts = _odd_accounts(rng)
        cloud.world.post('bad', 1, EVIL)
        cloud.cycles(2)
        cloud.victim_starts()


def _but_all(fields):
    """Limits by which nobody owns all: that is for operators to say."""
    owned = fields.get('nominal')
    if isinstance(owned, dict) and any(
        isinstance(n, int | float) and n > 8 for n in owned.values()
    ):
        return {name: own for name, own in fields.items() if name != 'nominal'}
    return fields


def _limits(rng):
    return {
        'time_limit': 3600, 'longest_wait': 60, 'budget': 5.0, 'funds': 7.0,
        'ceiling': {'VCPU': 4}, 'nominal': {'VCPU': 2},
        'borrowing_limit': {'VCPU': 2}, 'lending_limit': {'VCPU': 2},
        'windows': [
            {'begins': rng.choice((
                '0 8 * * 1-5', '0 0 1 1 * 0 2030', '@yearly', '0 0 30 2 *',
                '* * * * * *', '0 0 1 6 * 0 1999', '0 0 l * *',
            )), 'lasts': 3600, 'zone': 'UTC'}
        ],
    }  # fmt: skip


def _odd_accounts(rng):
    account = cluster.Account(
        EVIL,
        share=rng.choice((1.0, odd.number(rng))),
        windows=(cluster.Window(rng.choice(odd.TEXTS), 60.0, odd.zone(rng)),),
        ceiling=(('VCPU', odd.number(rng)),),
        # An operator may give all to one: the victim's would not fit then.
        nominal=(('VCPU', rng.choice((1, 2, -1, 0.5, None, 'x', True))),),
        time_limit_s=rng.choice((None, odd.number(rng))),
        budget_hours=rng.choice((None, odd.number(rng))),
    )
    return (account, cluster.Account(VICTIM))


def agents(rng):
    """Numbers that agents say of use, of idle servers, and of CPU time."""
    with clouds() as cloud:
        world = cloud.world
        world.charge = rng.choice(list(measured.Charge))
        world.idling = test_service.idle_reclaim.IdleOptions(after_s=3600.0)
        cloud.cycles(1)
        for _ in range(2):
            told = {'cpu_time': 0.1, 'memory': 0.2}
            parts = {
                who: odd.change_document(rng, told) for who in ('u', EVIL)
            }
            world.measured = measured.MeasuredUse(rng.random() < 0.5, parts)
            if rng.random() < 0.2:
                world.measured = odd.value(rng)
            world.idle = odd.change_document(
                rng, {BAD_HOST: {cloud.runs: 7e3}, 'h1': {cloud.shares: 7e3}}
            )
            meters = {
                f'p{n}':
                (rng.choice((cloud.runs, 'x')), odd.number(rng))
                for n in range(3)
            }  # fmt: skip
            with contextlib.suppress(Exception):
                # Whoever asks gets an error; the loop must not care.
                cloud.process.charging.trading.rates(meters)
            world.now += 100.0
            cloud.cycles(1)
        cloud.victim_starts()


_SHARES = """\
accounts:
  - {name: faculty, share: 3}
  - name: evil
    parent: faculty
    share: 2.5
    time_limit: 2h
    budget: 10
    ceiling: {VCPU: 4}
    windows: [{begins: '0 8 * * 1-5', lasts: 8h, zone: Europe/Zurich}]
  - {name: evil/u, parent: evil, longest_wait: 30m}
"""
_LIMITS = {EVIL: {'guaranteed': {'VCPU': 2}, 'ceiling': {'VCPU': 4}}}


def files(rng):
    """Files of shares and limits: refused as such, or of no harm."""
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / 'file'
        text = odd.cut(rng, _SHARES)
        path.write_bytes(text.encode('utf-8', 'surrogatepass'))
        try:
            found = share_file.read(path)
        except exception.BadShares:
            found = None
        changed = json.dumps(odd.change_document(rng, _LIMITS))
        if rng.random() < 0.3:
            changed = odd.cut(rng, changed)
        path.write_bytes(changed.encode('utf-8', 'surrogatepass'))
        try:
            limits = limits_file.read(path)
        except exception.ConfigurationError:
            limits = None
    if limits and any(_takes_all(each) for each in limits.values()):
        return
    if found is None and limits is None:
        return
    with clouds() as cloud:
        cloud.world.accounts = found or ()
        cloud.process = cloud.world.process()
        cloud.process._reader._limits = limits or {}
        cloud.world.post('bad', 1, EVIL)
        cloud.cycles(2)
        cloud.victim_starts()


def _takes_all(limits):
    """Whether so much is guaranteed to one that a victim's does not fit."""
    return any(amount > 8 for amount in limits.guaranteed.values())


def snapshots(rng):
    """Snapshots in which all that is not the victim's may be odd."""
    ask, host = small_cloud.waiting_request, small_cloud.host
    victim = ask('victim', 2, VICTIM, at=50.0)
    count = rng.randrange(1, 5)
    bad = [
        _odd_request(
            rng, ask(f'bad{n}', rng.choice((1, 8)), EVIL, at=float(n))
        )
        for n in range(count)
    ]
    hosts = [host(f'h{n}', 8) for n in range(count + 1)]
    snapshot = dataclasses.replace(
        small_cloud.cloud(hosts, [*bad, victim]),
        accounts=_odd_accounts(rng) if rng.random() < 0.4 else (),
        running=tuple(_odd_running(rng, n) for n in range(rng.randrange(3))),
        history={EVIL: np.array([odd.NUMBERS[0], rng.random()])},
        lifetimes={(EVIL, 1, 100): (rng.choice((1.0, -1.0, 1e308)),)},
        member_hosts={'g': tuple(rng.sample(['h0', 'h1', 'gone'], 2))},
    )
    made = scheduler.Scheduler(
        planner.plan, quarantine.Quarantine(lambda: 0.0)
    )
    made.begin_cycle(len(bad) + 1, 100.0)
    with np.errstate(all='ignore'):
        plan = made.plan(snapshot, 100.0)
    starts = {e.request: e.hosts for e in plan.actions if e.hosts}
    if 'victim' not in starts:
        held = plan.waiting.get('victim')
        raise Broken(f'the victim waits: {held and held.why.sentence}')
    known = {each.uuid: each for each in snapshot.requests}
    for name in {h for each in starts.values() for h in each}:
        used = sum(
            _vcpus(known[uuid]) * hosts.count(name)
            for uuid, hosts in starts.items()
        )
        if used > 8:
            raise Broken(f'{name} has {used} VCPUs in use')


_DEMANDS = (1, 2**31 - 1, 2**63, 0.5, math.nan, math.inf, None, 'x', [])
"""Amounts below 0 are refused where messages and rows are read."""


def _vcpus(asked):
    amount = dict(asked.demand.amounts).get('VCPU', 0)
    return amount if isinstance(amount, int) else 0


def _odd_request(rng, asked):
    fields = {
        'asked_at': lambda: odd.number(rng),
        'expires_at': lambda: odd.number(rng),
        'time_limit_s': lambda: odd.number(rng),
        'extended_s': lambda: odd.number(rng),
        'user': lambda: rng.choice(odd.TEXTS),
        'group': lambda: request.Group(
            'g', rng.choice(list(request.Rule)),
            rng.choice((1, 2**31 - 1, 2**63, -1, 0)),
        ),
        'demand': lambda: request.Demand(
            (('MEMORY_MB', 100), ('VCPU', rng.choice(_DEMANDS)))
        ),
        'servers': lambda: rng.choice(((), ('s',), (7,), ('',))),
        'band': lambda: rng.choice(list(request.Band)),
    }  # fmt: skip
    some = rng.sample(sorted(fields), rng.randrange(1, 4))
    return dataclasses.replace(
        asked, **{name: fields[name]() for name in some}
    )


def _odd_running(rng, number):
    return cluster.Running(
        rng.choice(('h0', 'gone')), EVIL, (('VCPU', 1),),
        rng.choice((0.0, odd.number(rng))), 'u', f's{number}',
        rng.choice((None, 1e9, odd.number(rng))),
        rng.choice(list(request.Band)),
    )  # fmt: skip


AREAS = {
    'casts': casts,
    'answers': answers,
    'outages': outages,
    'rows': rows,
    'accounts': accounts,
    'agents': agents,
    'files': files,
    'slurm': batch_areas.slurm,
    'slurmrestd': batch_areas.slurmrestd,
    'lsf': batch_areas.lsf,
    'condor': batch_areas.condor,
    'snapshots': snapshots,
}


def once(area, seed):
    """Make one input and see what it does."""
    random.seed(0)
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        AREAS[area](random.Random(f'{area} {seed}'))
    finally:
        logging.disable(before)
