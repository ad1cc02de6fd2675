# SPDX-License-Identifier: Apache-2.0

"""Groups have what they were pledged of a real Slurm and the real Nova.

Three groups want more of both sides than there is, the first mostly of Slurm,
the others mostly of the cloud. What each had is reckoned from the records of
both sides. What came of it is in ``build/pledges-border.json`` afterwards.
"""

import collections
import contextlib
import functools
import json
import math
import pathlib
import random
import time

import pytest
import sqlalchemy as sa

from tests.fixtures import accounted_slurm
from tests.fixtures import panels
from tests.fixtures.nova_cloud import environment
from tests.fixtures.nova_cloud import infrastructure
from tests.fixtures.nova_cloud import places
from tests.fixtures.nova_cloud import scraping
from tests.integration.nova import crossing as crossing_module
from tests.integration.nova import faculty as faculty_module
from tests.integration.nova import test_border
from tests.integration.nova import test_seventy_thirty as turns
from tests.integration.nova import watching

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(watching.TIMEOUT_S),
]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)

queue = test_border.queue

USERS = {'astronomy': 'alice', 'biology': 'bob', 'chemistry': 'carol'}
PLEDGES = {'astronomy': 50, 'biology': 30, 'chemistry': 20}
CPUS = 8
JOBS = {'astronomy': 24, 'biology': 3, 'chemistry': 3}
SERVERS = {'astronomy': 4, 'biology': 20, 'chemistry': 20}
"""What each wants at once, of one core each; either side has sixteen."""

LASTS_S = (40, 60)
"""Jobs and servers run for times in between, by chance."""

HALF_LIFE_S = 180.0
MEASURED_S = 60.0
OF_MOVES = ['Steps of hosts per second']
"""Panels of ``test_border.py``; no host moves here."""
WITHIN = 0.05
SLURM = f"""
PriorityType=priority/multifactor
PriorityDecayHalfLife={HALF_LIFE_S / 60:.0f}
PriorityCalcPeriod=1
PriorityWeightFairshare=100000
"""
OF_QUEUE = {
    'keystone_tree': 'true',
    'order': 'fair_tree',
    'half_life': f'{HALF_LIFE_S:.0f}',
}
TOLD = environment.TOP / 'build/pledges-border.json'
TEST = str(pathlib.Path(__file__).relative_to(environment.TOP))


@pytest.fixture
def shared(cloud, queue):
    """A Slurm with accounts of the groups, beside the cloud."""
    path = infrastructure.socket_of(cloud.controller)
    engine = sa.create_engine(
        f'mysql+pymysql://root@localhost/?unix_socket={path}',
        isolation_level='AUTOCOMMIT',
    )
    with engine.connect() as connection:
        for order in accounted_slurm.statements('%').split(';'):
            connection.execute(sa.text(order))
    engine.dispose()
    make = functools.partial(
        accounted_slurm.AccountedSlurm,
        more=SLURM,
        cpus=CPUS,
        accounts=[*PLEDGES],
        storage=(places.ADDRESS, places.PORTS['database']),
    )
    with crossing_module.slurm_beside_cloud(cloud, queue, make) as made:
        yield made


@pytest.fixture
def groups(cloud, queue, shared, monkeypatch):
    """Projects of the groups; nothing is left of them."""
    made = faculty_module.Faculty(cloud, queue)
    try:
        for name, user in USERS.items():
            made.found_group(name, user, 'default')
            session = made.login(user, project=name)
            monkeypatch.setitem(cloud.users, name, session)
        yield made
    finally:
        shared.slurm.run('scancel', '--user=root')
        made.clear()
        made.close()


class Demand:
    """Jobs and servers of all groups, which end and come again.

    :ivar group: of each, by number of the job or UUID of the server.
    """

    def __init__(self, shared, groups):
        self._shared, self._groups = shared, groups
        self._chance = random.Random(1)
        self._lasts = {}
        self._ended = set()
        self.group = {}

    def look(self):
        """Ask for what is missing, and end whose time is over."""
        slurm = self._shared.slurm
        listed = slurm.run('squeue', '-h', '-o', '%a').split()
        for name in self._missing(JOBS, listed):
            lasts_s = self._chance.randint(*LASTS_S)
            where = '-n1', '--time=5', f'--account={name}'
            job = slurm.submit(*where, command=f'sleep {lasts_s}')
            self.group[job] = name
        self._end_servers()
        there = [self.group[each] for each in self._lasts.keys() - self._ended]
        for name in self._missing(SERVERS, there):
            server = self._groups.boot(name, name)
            self.group[server] = name
            self._lasts[server] = self._chance.uniform(*LASTS_S)

    @staticmethod
    def _missing(wanted, there):
        count = collections.Counter(there)
        for name, most in wanted.items():
            for _ in range(most - count[name]):
                yield name

    def _end_servers(self):
        admin = self._groups.cloud.admin
        path = '/servers/detail?all_tenants=1'
        for each in admin.get('compute', path)['servers']:
            uuid, launched = each['id'], each['OS-SRV-USG:launched_at']
            if uuid not in self._lasts or not launched:
                assert each['status'] != 'ERROR', each
                continue
            lasted_s = time.time() - turns.seconds(launched)
            if lasted_s >= self._lasts[uuid] and uuid not in self._ended:
                admin.ask('DELETE', 'compute', f'/servers/{uuid}')
                self._ended.add(uuid)


def fractions_of_groups(uses, group, now):
    """Part of each group in all use until then, which fades."""
    had = dict.fromkeys(PLEDGES, 0.0)
    for use in uses:
        name, ended = group.get(use.what), min(use.ended, now)
        if name and ended > use.begun:
            had[name] += decay_factor(now - ended) - decay_factor(
                now - use.begun
            )
    total = sum(had.values())
    return {name: each / total for name, each in had.items()}


def decay_factor(age_s):
    """What is left of use of that age."""
    return math.exp(-math.log(2) * age_s / HALF_LIFE_S)


def error(found):
    """Largest distance of a group's part from its pledge."""
    total = sum(PLEDGES.values())
    return max(abs(found[name] - PLEDGES[name] / total) for name in PLEDGES)


def error_statistics(found):
    """Mean and largest error of parts at many moments."""
    errors = [error(each) for each in found]
    return {'mean': sum(errors) / len(errors), 'largest': max(errors)}


def start(shared, queue, groups):
    """Have the service adjust shares; each side has two hosts."""
    path = shared.slurm.top / 'partition.yaml'
    path.write_text(
        path.read_text()
        + 'groups:\n'
        + ''.join(
            f"- {{account: '{groups.projects[name]}', batch: {name}}}\n"
            for name in PLEDGES
        )
    )
    crossing_module.begin(
        shared,
        queue,
        OF_QUEUE,
        **test_border.BY_HAND,
    )
    for name, share in PLEDGES.items():
        body = {'account': groups.projects[name], 'share': share}
        shared.cloud.admin.put('compute', '/fairness/shares', body)
    shared.act('m3', 'move')
    shared.await_state('m3', 'cloud')
    watching.eventually(
        lambda: len(reported_groups(shared)) == 3, shared.faults
    )


def reported_groups(shared):
    """What the service says of the groups, by their accounts in Slurm."""
    with contextlib.suppress(KeyError):
        answer = shared.cloud.admin.ask(
            'GET', 'compute', '/fairness/partition'
        )
        listed = answer.body['partition']['groups']
        return {each['batch_account']: each for each in listed}
    return {}


def want(demand, shared, until, settled):
    """Have all want until a moment; parts are told that the service tells."""
    seen = []
    while time.time() < until:
        demand.look()
        if time.time() > settled and (found := reported_groups(shared)):
            seen.append({name: found[name]['part'] for name in PLEDGES})
        time.sleep(0.5)
    return seen


def recorded_use_of_groups(demand, shared, settled, end):
    """What groups had by the records of both sides."""
    of_batch, of_cloud = shared.uses()
    both = [
        fractions_of_groups(of_batch + of_cloud, demand.group, at)
        for at in range(int(settled), int(end), 5)
    ]
    return {
        'jobs': len(of_batch),
        'servers': len(of_cloud),
        'parts': both[-1],
        'parts_of_batch': fractions_of_groups(of_batch, demand.group, end),
        'parts_of_cloud': fractions_of_groups(of_cloud, demand.group, end),
        'error': error_statistics(both),
        'on_both_sides_at_once': len(shared.overlaps()),
    }


def test_groups_get_their_pledges_in_batch_and_cloud_together(
    shared, queue, groups
):
    start(shared, queue, groups)
    demand = Demand(shared, groups)
    begun = time.time()
    settled = begun + 2 * HALF_LIFE_S
    seen = want(demand, shared, settled + MEASURED_S, settled)
    end = time.time()
    last, faults = reported_groups(shared), shared.faults()
    with scraping.running(shared.cloud) as prometheus:
        panels.await_values('border', prometheus.query, without=OF_MOVES)
    # What runs is recorded once it is over.
    shared.slurm.run('scancel', '--state=PENDING', '--user=root')
    watching.eventually(lambda: not shared.slurm.run('squeue', '-h').strip())
    found = {
        'test': TEST,
        'pledges': PLEDGES,
        'half_life_s': HALF_LIFE_S,
        'lasted_s': round(end - begun),
        **recorded_use_of_groups(demand, shared, settled, end),
        'shares_of_batch': {
            name: each['batch_share'] for name, each in last.items()
        },
        'error_as_it_is_told': error_statistics(seen),
        'looks': len(seen),
        'faults': faults,
    }
    TOLD.parent.mkdir(exist_ok=True)
    TOLD.write_text(json.dumps(found, indent=1) + '\n')
    assert found['error']['largest'] <= WITHIN, found
    # The service charges once a minute, a third of this half-life: a single
    # look may be behind by that.
    assert found['error_as_it_is_told']['mean'] <= WITHIN, found
    assert found['on_both_sides_at_once'] == 0
    assert not found['faults']
