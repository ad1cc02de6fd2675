# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from nova_fairness.model import cluster
from nova_fairness.shares import overview
from tests.fixtures import small_cloud

ACCOUNTS = (
    cluster.Account('physics', None, 70),
    cluster.Account('arts', None, 30),
    cluster.Account('p', 'physics', 1),
    cluster.Account('thesis', 'p', 3),
    cluster.Account('p/ann', 'thesis'),
)
HISTORY = {
    'physics': np.array([0.3, 0.1]),
    'p': np.array([0.3, 0.1]),
    'thesis': np.array([0.2, 0.1]),
    'p/ann': np.array([0.2, 0.1]),
    'p/bob': np.array([0.1, 0.0]),
    'q': np.array([0.1, 0.1]),
    'gone/eve': np.array([0.1, 0.1]),
    'old group': np.array([0.1, 0.1]),
}


def cloud(**more):
    none = np.zeros(2, np.int64)
    given = {
        'requests': [small_cloud.waiting_request('r', project='r')],
        'accounts': ACCOUNTS,
        'history': HISTORY,
        'used': {'p': none, 'q': none, '': none},
        **more,
    }
    return small_cloud.cloud([small_cloud.host('h')], **given)


def test_child_accounts_are_listed_after_their_parent():
    found = overview.standings(cloud())
    assert [each.account.name for each in found] == [
        'arts', 'physics', 'p', 'p/bob', 'thesis', 'p/ann', 'q', 'r', 'r/u'
    ]  # fmt: skip


def test_a_project_stands_with_its_users_and_groups_alone():
    names = [e.account.name for e in overview.standings(cloud(), 'p')]
    assert names == ['p', 'p/bob', 'thesis', 'p/ann']
    assert overview.standings(cloud(), 'unknown') == []


def test_numbers_are_those_of_the_tree_and_of_slurm():
    found = {each.account.name: each for each in overview.standings(cloud())}
    ann = found['p/ann']
    # Beside physics and arts stand two projects that nobody named.
    assert ann.part == pytest.approx(70 / 102 * 3 / 4)
    assert ann.used == {'VCPU': 0.2, 'MEMORY_MB': 0.1}
    assert found['arts'].factor == 1
    use, part = 0.3 / 0.4, 70 / 102
    assert found['physics'].factor == pytest.approx(2 ** (-use / part))


def test_an_account_that_used_its_share_has_a_factor_of_one_half():
    shares = (cluster.Account('p', None, 3), cluster.Account('q'))
    history = {'p': np.array([0.3, 0]), 'q': np.array([0.1, 0])}
    snapshot = cloud(requests=(), accounts=shares, history=history)
    factors = [each.factor for each in overview.standings(snapshot)]
    assert factors == pytest.approx([0.5, 0.5])


def test_a_cloud_in_which_nothing_was_used_has_standings():
    snapshot = cloud(requests=(), accounts=(), history={})
    assert [e.factor for e in overview.standings(snapshot)] == [1, 1]
    assert overview.standings(cloud(requests=(), accounts=(), used={})) == []


def test_resource_classes_count_by_their_weights():
    found = {
        each.account.name: each
        for each in overview.standings(cloud(weights={'MEMORY_MB': 1.0}))
    }
    # Bob used no memory, which alone counts; told is all that was used.
    assert found['p/bob'].used == {'VCPU': 0.1, 'MEMORY_MB': 0.0}
    alike = {e.account.name: e for e in overview.standings(cloud())}
    assert found['p/bob'].factor > alike['p/bob'].factor
    assert found['q'].factor < alike['q'].factor
