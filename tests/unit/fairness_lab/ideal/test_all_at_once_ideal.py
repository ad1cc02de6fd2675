# SPDX-License-Identifier: Apache-2.0

"""The best division that all resources at once are compared with."""

import json

import numpy as np
import pytest

from tests.fixtures import benchmark

RECORDED = benchmark.RESULTS / 'all-at-once' / 'result.json'


@pytest.fixture(scope='module')
def filled():
    module = benchmark.load('policies.all_at_once_ideal')

    def found(**used):
        """Fill for VMs that belong to a user of their own each."""
        arrays = {vm: np.array(parts) for vm, parts in used.items()}
        return module.filled(arrays, {vm: vm for vm in used})

    found.of = module.filled
    return found


def test_two_users_with_the_same_want_share_equally(filled):
    found = filled(a=[0.7, 0, 0, 0], b=[0.2, 0, 0, 0])
    assert found == pytest.approx({'a': 0.45, 'b': 0.45})


def test_vms_without_competition_keep_their_use(filled):
    found = filled(a=[0.7, 0, 0, 0], b=[0, 0.9, 0, 0], c=[0, 0, 0.3, 0])
    assert found == pytest.approx({'a': 0.7, 'b': 0.9, 'c': 0.3})


def test_io_requests_cost_cpu_time_of_others(filled):
    found = filled(a=[0.6, 0, 0, 0], b=[0.4, 0.8, 0, 0])
    assert found == pytest.approx({'a': 2 / 3, 'b': 2 / 3})


def test_a_user_bounded_by_a_full_resource_is_fixed(filled):
    found = filled(a=[0.8, 0, 0, 0], b=[0.1, 0.3, 0, 0])
    assert found == pytest.approx({'a': 0.8, 'b': 0.3})


def test_memory_that_is_held_is_all_that_is_wanted(filled):
    found = filled(a=[0.1, 0, 0, 0.25], b=[0, 0, 0, 0.5], c=[0.5, 0, 0, 0.2])
    assert found['b'] == pytest.approx(0.5)
    assert found['a'] == pytest.approx(0.25)
    assert found['c'] == pytest.approx(0.5)


def test_a_user_with_two_vms_counts_once(filled):
    used = {
        'a1': np.array([0.3, 0, 0, 0]),
        'a2': np.array([0.3, 0, 0, 0]),
        'b': np.array([0.3, 0, 0, 0]),
    }
    found = filled.of(used, {'a1': 'a', 'a2': 'a', 'b': 'b'})
    assert found == pytest.approx({'a': 0.45, 'b': 0.45})


def test_recorded_distances_are_those_to_the_ideal(filled):
    recorded = json.loads(RECORDED.read_text())
    used = {vm: np.array(p) for vm, p in recorded['instances'].items()}
    ideal = filled.of(used, recorded['owners'])
    assert ideal == pytest.approx(
        {user: entry['ideal'] for user, entry in recorded['users'].items()},
        abs=1e-6,
    )
    worst = max(entry['distance'] for entry in recorded['users'].values())
    assert recorded['largest_distance'] == worst
