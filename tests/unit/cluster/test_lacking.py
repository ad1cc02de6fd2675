# SPDX-License-Identifier: Apache-2.0

"""What agents say of who lacks CPUs, as plans are made of it."""

import pytest

from nova_fairness import exception
from nova_fairness.cluster import agent_reports
from nova_fairness.planners.tenants import planner
from tests.fixtures import small_cloud
from tests.fixtures.patience import wait_for_value


def server(owner, wanted, got, **more):
    return {
        'owner': owner,
        'wanted_cpus': wanted,
        'got_cpus': got,
        'weight_units': 100,
        'seen_s': 900.0,
        **more,
    }


def answer(host, servers, **more):
    tenants_of = {'host': host, 'entity': 'user', 'cpus_count': 4}
    return {**tenants_of, 'instances': servers, **more}


class FakeAgents:
    def __init__(self):
        self.now_s = 0.0
        self.said = {
            'a': answer(
                'a', {'u1': server('u', 2, 1), 'v1': server('v', 6, 3)}
            ),
            'b': answer('b', {}),
        }

    def __call__(self, host):
        if host not in self.said:
            raise exception.HostNotReached(host)
        return self.said[host]


@pytest.fixture
def agents():
    return FakeAgents()


@pytest.fixture
def lacking(agents):
    made = agent_reports.ServerShortfall(agents, lambda: agents.now_s)
    yield made
    made.stop()


CLOUD = small_cloud.cloud_of_servers(
    [small_cloud.host('a'), small_cloud.host('b')],
    [
        small_cloud.placed_server('u1', 'a', 3),
        small_cloud.placed_server('v1', 'a', 6),
    ],
)


def tenants_of(lacking, **more):
    return lacking.tenants(
        CLOUD, more.get('moved_at', {}), more.get('shares', {})
    )


def test_help_uses_reports_of_agents(agents, lacking):
    assert tenants_of(lacking).cpus == {}
    wait_for_value(lambda: tenants_of(lacking).cpus == {'a': 4.0, 'b': 4.0})
    given = tenants_of(lacking, moved_at={'v1': 7.0}, shares={'u': 2.0})
    assert given.wants['u1'].wanted_cpus == 2.0
    assert given.wants['v1'].moved_at == 7.0
    assert given.shares == {'u': 2.0}
    [move] = planner.plan(given, 5000.0).plan.moves
    assert (move.source, move.target) == ('a', 'b')
    agents.said.clear()
    agents.now_s += 3 * agent_reports.LACKING_S + 1
    assert tenants_of(lacking).wants == {}


@pytest.mark.parametrize(
    'nonsense',
    [
        None,
        {},
        server('u', -1, 0),
        server('u', float('nan'), 0),
        server('u', 'much', 0),
        server(7, 1, 1),
        server('u', 1, 1, seen_s=None),
    ],
)
def test_a_server_with_nonsense_reports_is_left_out(agents, lacking, nonsense):
    agents.said['a']['instances']['u1'] = nonsense
    wait_for_value(lambda: len(tenants_of(lacking).cpus) == 2)
    assert set(tenants_of(lacking).wants) == {'v1'}


def test_an_unknown_weight_counts_as_average(agents, lacking):
    agents.said['a']['instances']['u1']['weight_units'] = None
    wait_for_value(lambda: 'u1' in tenants_of(lacking).wants)
    assert tenants_of(lacking).wants['u1'].weight == 1.0


@pytest.mark.parametrize(
    ('more', 'left'),
    [
        ({'cpus_count': None}, {'a'}),
        ({'cpus_count': 0}, {'a'}),
        # As many compare users as projects: projects are first in the order.
        ({'entity': 'project'}, {'b'}),
    ],
)
def test_hosts_that_compare_projects_differently_are_left_out(
    agents, lacking, more, left
):
    agents.said['b'].update(more)
    wait_for_value(lambda: set(tenants_of(lacking).cpus) == left)


@pytest.mark.parametrize('said', [None, [], {'host': 'a'}, answer('z', {})])
def test_an_invalid_answer_of_an_agent_is_ignored(agents, lacking, said):
    agents.said['a'] = said
    wait_for_value(lambda: set(tenants_of(lacking).cpus) == {'b'})
    assert tenants_of(lacking).wants == {}
