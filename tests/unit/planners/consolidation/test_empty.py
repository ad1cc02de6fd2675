# SPDX-License-Identifier: Apache-2.0

"""One host is emptied, and what moves bring is said before they are made."""

import hypothesis
from hypothesis import strategies as st
import pytest

from nova_fairness.planners.consolidation import empty
from nova_fairness.planners.consolidation import rules
from nova_fairness.planners.consolidation import utilisation
from tests.fixtures import small_cloud
from tests.unit.planners.consolidation import test_planner
from tests.unit.planners.consolidation import test_properties

host, lies = small_cloud.host, small_cloud.placed_server
filled, where = test_planner.filled, test_planner.where


def test_hosts_in_use_are_filled_before_others():
    cloud = filled(h1=[2, 3], h2=[1], h3=[])
    assert where(empty.empty(cloud, 'h1')) == {'h10': 'h2', 'h11': 'h2'}


def test_an_empty_host_takes_servers_without_other_room():
    cloud = filled(h1=[2, 3], h2=[7], h3=[])
    plan = empty.empty(cloud, 'h1')
    assert set(where(plan).values()) == {'h3'}
    assert plan.busy == (2, 2)


def test_smaller_servers_move_to_make_room_for_larger_ones():
    cloud = filled(h1=[4], h2=[4, 2], h3=[6])
    assert where(empty.empty(cloud, 'h1')) == {'h10': 'h2', 'h21': 'h3'}


def test_a_host_is_emptied_as_far_as_servers_find_room():
    cloud = filled(h1=[4, 2], h2=[6])
    assert where(empty.empty(cloud, 'h1')) == {'h11': 'h2'}


def test_a_server_that_may_not_move_stays_and_the_others_leave():
    servers = [lies('a', 'h1', demand=None), lies('b', 'h1')]
    cloud = small_cloud.cloud_of_servers([host('h1'), host('h2')], servers)
    assert where(empty.empty(cloud, 'h1')) == {'b': 'h2'}


def test_a_host_that_takes_no_server_is_emptied_too():
    servers = [lies('a', 'h1')]
    hosts = [host('h1', takes=False), host('h2')]
    cloud = small_cloud.cloud_of_servers(hosts, servers)
    assert where(empty.empty(cloud, 'h1')) == {'a': 'h2'}


@pytest.mark.parametrize('names', ['abc', 'cba'])
@pytest.mark.parametrize('room', [1, 2])
def test_the_server_with_least_choice_comes_first(names, room):
    free, pinned, fills = names
    servers = [
        lies(free, 'h1'),
        lies(pinned, 'h1', demand=small_cloud.demand(zone='z1')),
        lies(f'{fills}2', 'h2', vcpu=8 - room),
        lies(f'{fills}3', 'h3'),
    ]
    hosts = [
        host('h1', zone='z1'), host('h2', zone='z1'), host('h3', zone='z2'),
    ]  # fmt: skip
    cloud = small_cloud.cloud_of_servers(hosts, servers)
    found = where(empty.empty(cloud, 'h1'))
    assert found[pinned] == 'h2'
    assert free in found


@hypothesis.given(test_properties.clouds(), st.data())
def test_emptying_breaks_no_constraint_and_moves_no_server_in(cloud, data):
    if not cloud.providers:
        return
    names = [each.name for each in cloud.providers]
    name = data.draw(st.sampled_from(names))
    before = test_properties.places(cloud)
    plan = empty.empty(cloud, name)
    after = small_cloud.cloud_after_moves(cloud, plan.moves)
    assert test_properties.breaks(after, before) == []
    assert name not in {each.target for each in plan.moves}
    # A server that finds no room once finds none again.
    assert len(empty.empty(after, name).moves) <= len(plan.moves)
    said = utilisation.snapshot_after_moves(cloud, plan.moves)
    assert test_properties.places(said) == test_properties.places(after)
    assert (said.inventory.used == after.inventory.used).all()


def test_figures_name_hosts_in_use_and_the_spread():
    found = utilisation.utilisation_figures(filled(h1=[8], h2=[4], h3=[]))
    assert found.busy == {'h1', 'h2'}
    assert found.spread == pytest.approx(0.5)
    assert utilisation.utilisation_figures(
        small_cloud.cloud([])
    ) == utilisation.UtilisationFigures(frozenset(), 0.0)


def test_the_plan_counts_the_traffic_of_moves():
    servers = [lies('a', 'h1', memory=100, sends=30.0), lies('b', 'h2', 2)]
    cloud = small_cloud.cloud_of_servers([host('h1'), host('h2')], servers)
    plan = empty.empty(cloud, 'h1', rules.USUAL)
    assert plan.cost_mb == 3000
