# SPDX-License-Identifier: Apache-2.0

"""The service is killed at every step of making room, in a real cloud.

What came of it is in ``build/kills-room.json`` afterwards. Hosts are those of
Nova's fake driver.
"""

import collections
import json
import pathlib

import pytest

from tests.fixtures import write_signals
from tests.fixtures.nova_cloud import environment
from tests.integration.nova import rooms
from tests.integration.nova import watching

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(watching.TIMEOUT_S),
]
pytest_plugins = (
    'tests.fixtures.nova_cloud.fixtures',
    'tests.integration.nova.rooms',
)

TOLD = environment.TOP / 'build/kills-room.json'
TEST = str(pathlib.Path(__file__).relative_to(environment.TOP))

BOTH = ('before', 'after')
"""A write to the database that was sent and not committed is as none."""

LATE = ('half', 'after')
"""What was not sent at all is in doubt for as long as half of it."""

_LEAVES = 'UPDATE leaves SET .*state='
_REQUESTS = 'UPDATE requests SET .*state='
STEPS = {
    'the promise': ("UPDATE requests SET .*room='", BOTH),
    'the choice': ('INSERT INTO leaves', BOTH),
    'metadata are written': ('fairness:leaves_at"', write_signals.WHEN),
    'it was told': (f"{_LEAVES}'told'", BOTH),
    'an action is due': (f"{_LEAVES}'acting'", BOTH),
    'Nova is asked to stop': ('"os-stop"', write_signals.WHEN),
    'Nova was asked': (f"{_LEAVES}'asked'", BOTH),
    'Nova is asked to shelve': ('"shelve"', write_signals.WHEN),
    'its room is free': (f"{_LEAVES}'gone'", BOTH),
    'Nova is asked to unshelve': ('"unshelve"', write_signals.WHEN),
    'a request is reserved': (f"{_REQUESTS}'reserved'", BOTH),
    'room is kept': ('POST /allocations', write_signals.WHEN),
    'it is to be sent': (f"{_REQUESTS}'sending'", BOTH),
    'it is sent': ('schedule_and_build_instances|unshelve_instance', LATE),
    'metadata are removed': ('^DELETE .*leaves_at', write_signals.WHEN),
    'it runs again': (f"{_LEAVES}'returned'", BOTH),
}
"""Writes at which the service dies, and when; in the order of their way.

A shelving may be over before the service is back, so that of it nobody writes
that Nova was asked. Whoever has left is asked to start again at once, and
waits then. The steps of a request are those of one that made room as it comes
back.
"""


@pytest.fixture(scope='module')
def servers():
    """None but those of a test."""
    return {}


class Kills(rooms.Deaths):
    """The service dies at each step, as often as is said there.

    :ivar at: how often it died, by step and when.
    """

    def __init__(self, cloud):
        super().__init__(cloud)
        self.at = collections.defaultdict(dict)

    def blows(self):
        for step, (what, whens) in STEPS.items():
            for when in whens:
                before = self.count
                yield write_signals.WriteSignal(1, 0, when, what=what)
                self.at[step][when] = self.count - before
                print(self.count, step, when, flush=True)

    @property
    def left(self):
        """Steps that are yet to come, or were never done."""
        return [step for step in STEPS if step not in self.at]


@pytest.fixture
def kills(cloud, lent):
    made = Kills(cloud)
    try:
        yield made
    finally:
        made.end()


def wrong(room, victims, asked):
    """Sentences on what is not as it should be, once all have come back."""
    wanted = {each: [*did, 'unshelve'] for did, each in victims.items()}
    wanted |= {each: [] for each in room.servers.keys() - victims.values()}
    acted = {each: room.acted(each) for each in room.servers}
    states = {each: room.cloud.request(each).get('state') for each in asked}
    return [
        *(
            f'Nova was asked for {acted[each]} of {each}, not {did}'
            for each, did in wanted.items()
            if acted[each] != did
        ),
        *(
            f'{each} is {room.status(each)}'
            for each in room.servers
            if room.status(each) != 'ACTIVE'
        ),
        *(f'{each} is told still that it leaves' for each in room.told()),
        *(
            f'request {each} is {state}'
            for each, state in states.items()
            if state != 'ended'
        ),
        *([] if room.is_full() else [f'{room.used()} VCPUs are taken']),
    ]


def record(room, kills, victims, asked):
    """Write what came of the kills, and say what is not as it should be."""
    found = {
        'test': TEST,
        'killed': kills.count,
        'at': kills.at,
        'never_came': kills.left,
        'servers': len(room.servers),
        'requests': len(asked),
        'instance_actions_of_victims': [
            room.acted(v) for v in victims.values()
        ],
        'victims_of_others': sum(
            each in victims.values() and user != rooms.RICH
            for each, user in room.servers.items()
        ),
        'touched_beside_them': len(
            room.servers.keys() - room.untouched() - set(victims.values())
        ),
        'not_as_it_should_be': wrong(room, victims, asked),
    }
    TOLD.parent.mkdir(exist_ok=True)
    TOLD.write_text(json.dumps(found, indent=1) + '\n')
    return found


def test_a_service_killed_at_every_step_evicts_no_server_twice(room, kills):
    """Of two who leave, one is stopped before it is shelved."""
    room.start(room_actions='shelve', room_owner_actions='stop')
    shelved, stopped = room.fill({}, {rooms.BY: 'stop'})
    victims = {('shelve',): shelved, ('stop', 'shelve'): stopped}
    kills.begin()
    asked = room.ask(2)
    assert room.await_told(2).keys() == set(victims.values())
    # Each of these takes its time: the service is dead for most of it.
    for step in ('an action is due', 'Nova is asked to unshelve'):
        watching.eventually(lambda step=step: step in kills.at)
    room.await_status(asked, 'ACTIVE')
    room.await_status(victims.values(), 'SHELVED_OFFLOADED')
    assert room.is_full()
    room.cloud.delete(asked)
    watching.eventually(lambda: not kills.left, lambda: kills.left)
    watching.eventually(
        lambda: not record(room, kills, victims, asked)['not_as_it_should_be'],
        TOLD.read_text,
    )
    found = record(room, kills, victims, asked)
    assert not found['not_as_it_should_be']
    assert found['victims_of_others'] == found['touched_beside_them'] == 0
    assert found['killed'] == sum(len(whens) for _, whens in STEPS.values())
