# SPDX-License-Identifier: Apache-2.0

"""Where a server is put."""

import collections

import numpy as np
import pytest

from nova_fairness.conf import cluster as cluster_conf
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners import weighers
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import small_cloud

# What is left of 10 VCPUs and 1,000 MB.
LEFT = {'a': (8, 800), 'b': (4, 500), 'c': (9, 100), 'd': (3, 620)}


def cloud(*requests):
    snapshot = small_cloud.cloud(
        [small_cloud.host(name, 10, 1000) for name in LEFT], requests
    )
    for row, left in enumerate(LEFT.values()):
        snapshot.inventory.used[row] = np.array([10, 1000]) - left
    return snapshot


def chosen(rule, vcpu, memory, salt=0, allowed=None):
    hosts = hosts_module.Hosts(cloud())
    shape = hosts.shape(small_cloud.demand(vcpu, memory))
    rows = weighers.choose_host(
        hosts, hosts.free, shape, weighers.RULES[rule], salt, allowed
    )
    return ''.join(hosts.names[row] for row in rows)


@pytest.mark.parametrize(
    ('rule', 'vcpu', 'memory', 'host'),
    [
        # Left over: a 7 + 7, b 3 + 4, d 2 + 5 tenths, c does not hold it.
        ('fullest', 1, 100, 'b'),
        ('fullest', 1, 600, 'd'),
        ('best_fit', 1, 100, 'b'),
        ('emptiest', 1, 200, 'a'),
        ('dot_product', 4, 40, 'c'),
        ('dot_product', 1, 500, 'a'),
        # c has next to no memory left, and it wants next to none.
        ('cosine', 4, 40, 'c'),
        ('fullest', 4, 40, 'b'),
        ('random', 9, 100, 'c'),
        ('fullest', 10, 100, ''),
    ],
)
def test_each_rule_has_its_own_best_host(rule, vcpu, memory, host):
    assert chosen(rule, vcpu, memory) == host


def test_hosts_that_are_not_allowed_are_not_taken():
    allowed = np.array([True, False, True, False])
    assert chosen('fullest', 1, 200, allowed=allowed) == 'a'


def test_random_fit_takes_all_hosts_alike_and_one_for_each_server():
    drawn = [
        chosen('random', 1, 100, weighers.salt_of(f'server-{n}'))
        for n in range(600)
    ]
    count = collections.Counter(drawn)
    assert count.keys() == {*'abcd'}
    assert min(count.values()) > 110
    again = chosen('random', 1, 100, weighers.salt_of('server-0'))
    assert again == drawn[0]


def test_operators_may_choose_every_rule():
    [option] = [each for each in cluster_conf.OPTS if each.name == 'placement']
    assert {*option.type.choices} == {*weighers.RULES}
    assert option.default == 'fullest'


@pytest.mark.parametrize('count', [1, 2])
@pytest.mark.parametrize(
    ('rule', 'host'), [('fullest', 'b'), ('emptiest', 'a')]
)
def test_the_queue_keeps_room_where_the_rule_says(rule, host, count):
    snapshot = cloud(small_cloud.waiting_request('r', count=count))
    [action] = planner.plan(snapshot, 0.0, rule=weighers.RULES[rule]).actions
    assert action.hosts == (host,) * count
