# SPDX-License-Identifier: Apache-2.0

"""Shares of 70 and 30 of a full cloud, and how good estimates are there.

Servers are on hosts of Nova's fake driver and end by being deleted, each
after a time of its own. What came of it is in ``build/shares-nova.json``
afterwards.
"""

import collections
import datetime as dt
import json
import pathlib
import random
import time

import numpy as np
import pytest

from nova_fairness.planners.fairqueue import calibration
from tests.fixtures.nova_cloud import environment
from tests.integration.nova import faculty as faculty_module
from tests.integration.nova import watching

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(watching.TIMEOUT_S),
]
pytest_plugins = (
    'tests.fixtures.nova_cloud.fixtures',
    'tests.integration.nova.faculty',
)

HOSTS = 5
SHARES = {'physics': 70, 'arts': 30}
BEFORE, FEW = [*('physics', 'physics', 'arts') * 3, 'physics'], 20
"""Requests that are asked for at a time, and how many wait at least, while the
queue learns how long servers last and how far its estimates are off."""

ASKED = {'arts': 12, 'physics': 28}
"""Requests that are measured; who comes first has the smaller share."""

LASTS_S = (15.0, 45.0)
"""Servers run for times in between, by chance."""

WAITS = ('shared_part_taken', 'no_room', 'behind_others')

TOLD = environment.TOP / 'build/shares-nova.json'
TEST = str(pathlib.Path(__file__).relative_to(environment.TOP))


def seconds(text):
    """Seconds of the epoch of a time of an API, which is UTC."""
    at = dt.datetime.fromisoformat(text)
    return at.replace(tzinfo=dt.UTC).timestamp()


class Turns:
    """Servers end in turn, and all that is seen meanwhile is kept.

    :ivar started: when servers began to run, seconds of the epoch, by UUID.
    :ivar ended: those that were deleted.
    :ivar told: estimates by UUID of the request: when each was seen, p50, p90.
    :ivar looks: when, and what each project had allocated then.
    """

    def __init__(self, faculty):
        self._faculty = faculty
        self._admin = faculty.cloud.admin
        self._chance = random.Random(1)
        self._lasts = {}
        self.group = {}
        self.started, self.ended = {}, set()
        self.told = collections.defaultdict(list)
        self.looks = []

    def ask(self, groups):
        """Ask for a server of one group after the other, and look."""
        made = []
        for group in groups:
            made.append(self._faculty.boot(group, f'{group}-turn'))
            self._lasts[made[-1]] = self._chance.uniform(*LASTS_S)
            self.group[made[-1]] = group
            if not len(made) % 4:
                self.look()
        return made

    def look(self):
        """Look once, and delete whose time is over."""
        now = time.time()
        path = '/servers/detail?all_tenants=1'
        for each in self._admin.get('compute', path)['servers']:
            uuid = each['id']
            launched = each['OS-SRV-USG:launched_at']
            if uuid not in self._lasts or not launched:
                assert each['status'] != 'ERROR', each
                continue
            self.started.setdefault(uuid, seconds(launched))
            lasted_s = now - self.started[uuid]
            if lasted_s >= self._lasts[uuid] and uuid not in self.ended:
                self._admin.ask('DELETE', 'compute', f'/servers/{uuid}')
                self.ended.add(uuid)
        self._note_estimates(now)
        self.looks.append((now, self._allocated()))

    def _note_estimates(self, now):
        path = '/fairness/requests?all_projects=true&state=held'
        for each in self._admin.get('compute', path)['requests']:
            told = each['estimated_start']
            if told is None:
                continue
            estimate = (
                seconds(told['p50'].rstrip('Z')),
                seconds(told['p90'].rstrip('Z')),
            )
            seen = self.told[each['uuid']]
            if not seen or seen[-1][1:] != estimate:
                seen.append((now, *estimate))

    def _allocated(self):
        found = {}
        for group in SHARES:
            project = self._faculty.projects[group]
            path = f'/usages?project_id={project}'
            usages = self._admin.get('placement', path)['usages']
            found[group] = usages.get('VCPU', 0)
        return found


def physics_fractions(turns, begin, end):
    """Part of physics in each look of a time, and over all of it."""
    seen = [each for each in turns.looks if begin <= each[0] <= end]
    used = np.array([[each[1][name] for name in SHARES] for each in seen])
    spans_s = np.diff([at for at, _ in seen], append=end)
    total = spans_s @ used
    return used[:, 0] / used.sum(axis=1), total[0] / total.sum(), len(seen)


def estimate_quality(turns, asked):
    """How estimates compare with what came true: the first ones, and all."""
    first, all_ = [], []
    for uuid in asked:
        held = [
            (at, turns.started[uuid] <= p50, turns.started[uuid] <= p90)
            for at, p50, p90 in turns.told.get(uuid, ())
        ]
        first += held[:1]
        all_ += held
    return {
        name: {
            'count': len(found),
            'by_p50': sum(each[1] for each in found) / len(found),
            'by_p90': sum(each[2] for each in found) / len(found),
        }
        for name, found in (('first', first), ('all', all_))
    }


def ledger(faculty):
    """What each group used by the ledger, as a command shows it."""
    listed = watching.openstack(
        faculty.cloud, 'fairness', 'share', 'list', '--all-projects'
    )
    used = {each['Account']: each['Used'] for each in listed}
    return {name: used[faculty.projects[name]]['VCPU'] for name in SHARES}


def judged_count(faculty):
    """Estimates of which it is known what came true."""
    return (faculty.cloud.capacity()['estimates'] or {'count': 0})['count']


def run(faculty, turns):
    """Ask, and look until all have run; what is told is returned."""
    begun = time.time()
    before = []
    while judged_count(faculty) < calibration.LEAST:
        # The cloud stays full.
        if len(before) < FEW + len(turns.started):
            before += turns.ask(BEFORE)
        turns.look()
    waiting = len({*before} - turns.started.keys())
    asked = turns.ask(
        [name for name, count in ASKED.items() for _ in range(count)]
    )
    begin = time.time()
    last = asked[-1]
    new = 'not_planned'
    # Nor does the queue know a request at once.
    while faculty.cloud.request(last).get('reason', new) == new:
        turns.look()
    shown = faculty.openstack(turns.group[last], 'request', 'show', last)
    while turns.started.keys() < {*before, *asked}:
        turns.look()
    ends = [
        max(turns.started[each] for each in asked if turns.group[each] == name)
        for name in SHARES
    ]
    of_looks, part, count = physics_fractions(turns, begin, min(ends))
    used = ledger(faculty)
    return {
        'test': TEST,
        'vcpus': HOSTS * faculty_module.VCPUS,
        'shares': SHARES,
        'requests_before': len(before),
        'requests': ASKED,
        'waiting_when_asked': waiting,
        'lifetimes_s': LASTS_S,
        'measured_s': round(min(ends) - begin, 1),
        'took_s': round(time.time() - begun, 1),
        'looks': count,
        'part_of_physics': round(float(part), 4),
        'part_of_physics_by_look': {
            name: round(float(np.quantile(of_looks, quantile)), 4)
            for name, quantile in (('p10', 0.1), ('p50', 0.5), ('p90', 0.9))
        },
        'part_of_physics_in_ledger': round(
            used['physics'] / sum(used.values()), 4
        ),
        'estimates': estimate_quality(turns, asked),
        'who_waits_reads': {
            name: shown[name] for name in ('reason', 'summary')
        },
    }


def test_two_projects_have_seventy_and_thirty_of_a_full_cloud(founded):
    founded.start(order='fair_tree', interval='5')
    for name, share in SHARES.items():
        body = {'account': founded.projects[name], 'share': share}
        founded.cloud.admin.put('compute', '/fairness/shares', body)
    turns = Turns(founded)
    try:
        found = run(founded, turns)
    finally:
        founded.clear()
    TOLD.parent.mkdir(exist_ok=True)
    TOLD.write_text(json.dumps(found, indent=1) + '\n')
    assert abs(found['part_of_physics'] - 0.7) <= 0.05, found
    assert abs(found['part_of_physics_in_ledger'] - 0.7) <= 0.05, found
    assert found['estimates']['first']['by_p90'] >= 0.9, found
    assert found['who_waits_reads']['reason'] in WAITS, found
    assert found['who_waits_reads']['summary'], found
