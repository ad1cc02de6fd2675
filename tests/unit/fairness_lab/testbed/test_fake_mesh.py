# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness.model import node
from nova_fairness.model import report
from nova_fairness.model import resources
from tests.unit.fairness_lab.testbed import fake_mesh


def report_of(host, sequence=1):
    nothing = resources.RESOURCES.vector()
    return report.NodeReport(
        host=host,
        boot_id='x',
        sequence=sequence,
        interval_s=2.0,
        metric='UniformMetric',
        resources=node.NodeResources(host, (0,), 1.0, nothing),
        users={},
    )


@pytest.fixture
def mesh():
    made = fake_mesh.FakeMesh()
    for host in 'ab':
        made.join(host)
    return made


def hears(mesh, host, now_s=0.0):
    """Let everybody tell something, and give whom one hears."""
    for sender in 'ab':
        mesh.publish(report_of(sender), now_s)
    return set(mesh.view(host, now_s).reports)


def test_nodes_that_meet_at_redis_hear_each_other(mesh):
    assert hears(mesh, 'a') == {'a', 'b'}
    assert hears(mesh, 'b') == {'a', 'b'}


def test_a_report_ages_out_after_three_intervals(mesh):
    hears(mesh, 'a')
    mesh.publish(report_of('a'), 6.0)
    assert set(mesh.view('a', 6.0).reports) == {'a', 'b'}
    later = mesh.view('a', 6.1)
    assert set(later.reports) == {'a'}
    assert later.left_out == {'b': 'silent'}
    assert later.age_s == {'a': pytest.approx(0.1)}


@pytest.mark.parametrize('how', ['freeze', 'kill', 'flush'])
def test_nodes_that_know_each_other_go_on_without_redis(mesh, how):
    hears(mesh, 'a')
    getattr(mesh.redis, how)()
    assert hears(mesh, 'a', 10.0) == {'a', 'b'}


@pytest.mark.parametrize(
    ('away', 'back'), [('freeze', 'thaw'), ('kill', 'start')]
)
def test_a_node_that_starts_again_is_found_only_with_redis(mesh, away, back):
    hears(mesh, 'a')
    getattr(mesh.redis, away)()
    mesh.leave('b')
    mesh.join('b')
    assert hears(mesh, 'a', 10.0) == {'a'}
    getattr(mesh.redis, back)()
    hears(mesh, 'a', 20.0)
    assert hears(mesh, 'a', 20.0) == {'a', 'b'}


def test_a_node_that_is_cut_off_hears_only_itself(mesh):
    hears(mesh, 'a')
    mesh.cut.add('b')
    assert hears(mesh, 'a', 10.0) == {'a'}
    assert hears(mesh, 'b', 10.0) == {'b'}
    mesh.cut.discard('b')
    assert hears(mesh, 'a', 20.0) == {'a', 'b'}


def test_flushed_nodes_are_registered_again(mesh):
    hears(mesh, 'a')
    mesh.redis.flush()
    assert mesh.redis.lives == {}
    hears(mesh, 'a')
    assert set(mesh.redis.lives) == {'a', 'b'}
