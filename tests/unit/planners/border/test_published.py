# SPDX-License-Identifier: Apache-2.0

"""Partition Director as it was published, beside the planner.

``p_switch`` takes requests of hosts that the other side knows; ``p_driver``
drains them, waits, and after a time to live deletes what is left in the cloud.
"""

import dataclasses

import hypothesis
from hypothesis import strategies as st

from nova_fairness.model import border
from nova_fairness.planners.border import demand
from nova_fairness.planners.border import planner
from tests.fixtures import fake_border

TTL_S, EVERY_S = 300.0, 101.0
"""No run is just at the end of a time to live, where both differ."""

BATCH, CLOUD = border.BorderSide
E, C = border.HostEvent, border.HostCause
RULES = demand.BorderRules(ttl_s=TTL_S, end_vms=True)
LONG_S = 1e6
"""Jobs are waited for without a limit there, here for their time to live."""


class Published:
    """Lists of hosts, and what ``p_switch`` and ``p_driver`` do with them.

    :ivar left: until when servers may be on hosts that go to batch.
    """

    def __init__(self, batch, cloud):
        self.of = {BATCH: {*batch}, CLOUD: {*cloud}}
        self.asked = {BATCH: set(), CLOUD: set()}
        self.leaving = {BATCH: set(), CLOUD: set()}
        self.left = {}

    def switch(self, to, hosts, known):
        """Validate a list of requests."""
        self.asked[to] |= {*hosts} & {*known} & self.of[to.other]

    def drive(self, now, works):
        """One run; ``works`` says whether something is left on a host."""
        for side in border.BorderSide:
            new = self.asked[side.other]
            self.leaving[side] |= new
            self.of[side] -= new
            if side is CLOUD:
                self.left |= dict.fromkeys(new, now + TTL_S)
            self.asked[side.other] = set()
        for side, hosts in self.leaving.items():
            gone = {host for host in hosts if not works(side, host)}
            if side is CLOUD:
                gone |= {host for host in hosts if now > self.left[host]}
            hosts -= gone
            self.of[side.other] |= gone


def driven(world):
    """Plan and act until nothing is left to be done, as one run there."""
    while plan := planner.plan(world.snapshot(), world.now, RULES).actions:
        for action in plan:
            until = action.until
            if action.host in in_state(world, 'cloud_asked'):
                until = world.now + LONG_S
            world.do(dataclasses.replace(action, until=until))


def in_state(world, state):
    return {
        host for host, node in world.nodes.items() if node.state.value == state
    }


HOSTS = [f'h{n}' for n in range(4)]
hosts = st.sets(st.sampled_from(HOSTS))
steps = st.one_of(
    st.tuples(st.just('switch'), st.sampled_from(border.BorderSide), hosts),
    st.tuples(st.just('start'), st.sampled_from(border.BorderSide), hosts),
    st.tuples(st.just('end'), st.sampled_from(border.BorderSide), hosts),
)


NOTHING = ('end', CLOUD, set())
SERVER_STAYS = [
    ('start', CLOUD, {'h2'}),
    ('switch', BATCH, {'h2', 'h3'}),
    *[NOTHING] * 4,
]


@hypothesis.given(st.lists(steps, max_size=12), hosts)
@hypothesis.example(SERVER_STAYS, set())
@hypothesis.example(SERVER_STAYS, {'h2'})
def test_hosts_go_as_partition_director_drives_them(orders, unknown):
    """The same hosts are on each side, and on their way, after each run."""
    world = fake_border.FakeBorder(['batch', 'batch', 'cloud', 'cloud'])
    theirs = Published(HOSTS[:2], HOSTS[2:])
    for what, side, names in orders:
        world.now += EVERY_S
        if what == 'switch':
            ask(world, theirs, side, names, unknown)
        for host in names if what != 'switch' else ():
            if what == 'start':
                world.start(side, host)
            else:
                world.end(side, host)
        theirs.drive(
            world.now, lambda side, host: world.places[side][host].work
        )
        driven(world)
        assert in_state(world, 'batch') == theirs.of[BATCH]
        assert in_state(world, 'cloud') == theirs.of[CLOUD]
        assert in_state(world, 'leaving_batch') == theirs.leaving[BATCH]
        assert in_state(world, 'leaving_cloud') == theirs.leaving[CLOUD]
        assert world.in_both() == []


def ask(world, theirs, to, names, unknown):
    """Ask both for hosts; some the other side does not know meanwhile."""
    theirs.switch(to, names, {*HOSTS} - unknown)
    away = {
        host: world.places[to].pop(host)
        for host in unknown & names
        if world.nodes[host].state.value == to.other.value
    }
    for host in sorted(names):
        if world.nodes[host].state.value == to.other.value:
            world.step(host, E.ASK, C.OPERATOR)
    driven(world)
    world.places[to] |= away
