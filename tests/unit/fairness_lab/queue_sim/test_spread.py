# SPDX-License-Identifier: Apache-2.0

"""Results of several seeds."""

import pytest

from fairness_lab.queue_sim import runs
from fairness_lab.queue_sim import spread
from tests.fixtures import simulator_schemas
from tests.unit.fairness_lab.queue_sim import small_clouds

ONE, WHOLE = small_clouds.ONE, small_clouds.WHOLE


def result(seed, order='fifo', error=0.1, jain=0.9, **more):
    """As much of a ``result.json`` as is compared."""
    return {
        'scenario': 'small',
        'seed': seed,
        'order': order,
        'victims': 'least',
        'share_error': {'mean': error},
        'share_error_wanting': {'mean': error},
        'utilisation': {'settled_mean': 0.5},
        'jain': {'mean': jain},
        'waiting': dict.fromkeys(
            ('mean_s', 'p95_s', 'longest_s', 'expired'), 1
        ),
        'made_room': None,
        **more,
    }


def measures_of(cloud, name):
    [found] = [run for run in cloud['runs'] if run['name'] == name]
    return found['measures']


def seeds(order, errors, **more):
    return [
        result(n, order, error, **more) for n, error in enumerate(errors, 1)
    ]


def test_means_spreads_and_differences_of_seeds():
    cloud = spread.of_cloud(
        {
            'fair_tree': seeds('fair_tree', [0.1, 0.2, 0.3]),
            'fifo': seeds('fifo', [0.31, 0.4, 0.5]),
            'synergy': seeds('synergy', [0.0, 0.3, 0.3]),
        }
    )
    assert (cloud['seeds'], cloud['reference']) == ([1, 2, 3], 'fair_tree')
    own, fifo, other = (
        measures_of(cloud, name)['share_error']
        for name in ('fair_tree', 'fifo', 'synergy')
    )
    assert own == {
        'values': [0.1, 0.2, 0.3],
        'mean': 0.2,
        'sd': 0.1,
        'difference': None,
    }
    assert fifo['difference']['verdict'] == 'worse'
    assert fifo['difference']['mean'] == pytest.approx(0.203333)
    assert other['difference']['verdict'] == 'noise'
    assert 'work_lost' not in measures_of(cloud, 'fifo')
    content = spread.content([cloud], 'nova-fairness-sim')
    simulator_schemas.validate(content, 'queue_sim', 'spread')


def test_more_of_some_measures_is_better():
    cloud = spread.of_cloud(
        {
            'fifo': seeds('fifo', [0.1, 0.1], jain=0.5),
            'fair_tree': seeds('fair_tree', [0.05, 0.05], jain=0.75),
        }
    )
    found = measures_of(cloud, 'fair_tree')
    for measure in ('share_error', 'jain'):
        assert found[measure]['difference']['verdict'] == 'better'


def test_one_seed_has_no_spread_and_a_seed_without_number_no_mean():
    nothing = dict.fromkeys(('mean_s', 'p95_s', 'longest_s', 'expired'))
    two = [result(1), result(2, waiting=nothing)]
    cloud = spread.of_cloud({'fifo': [result(1), result(2)], 'other': two})
    found = measures_of(cloud, 'other')['wait_mean_s']
    assert found == {
        'values': [1, None],
        'mean': None,
        'sd': None,
        'difference': None,
    }
    alone = spread.of_cloud({'fifo': [result(1)], 'other': [result(1)]})
    for name in ('fifo', 'other'):
        found = measures_of(alone, name)['share_error']
        assert (found['sd'], found['difference']) == (None, None)
        assert found['mean'] == 0.1
    content = spread.content([cloud, alone], 'nova-fairness-sim')
    simulator_schemas.validate(content, 'queue_sim', 'spread')


def test_every_measure_is_in_a_result(tmp_path):
    requests = [(0, 0, WHOLE, 95), (5, 1, ONE, 20), (5, 0, ONE, 20)]
    cloud = small_clouds.cloud(requests)
    found = runs.run(cloud, 'fifo', tmp_path)
    assert found == runs.numbers(cloud, 'fifo')
    cells = measures_of(spread.of_cloud({'fifo': [found]}), 'fifo')
    assert {*spread.MEASURES} - {*cells} == {
        'servers_left',
        'work_lost',
        'follows_share',
    }
    assert all(each['mean'] is not None for each in cells.values())
