# SPDX-License-Identifier: Apache-2.0

"""Servers that move for owners, judged by simulated agents and kernels."""

import json
import pathlib

import numpy as np

from fairness_lab.queue_sim import tenant_moves

RECORDED = (
    pathlib.Path(__file__).resolve().parents[4]
    / 'benchmarks/results/queue/tenants/tenants.json'
)


def test_the_worst_off_get_more_than_without_and_than_by_load_alone():
    rows = {
        each['moves']: each
        for each in json.loads(RECORDED.read_text())['tenants']
    }
    after = {name: row['worst-off after %'] for name, row in rows.items()}
    ours = after['for tenants']
    assert ours > after['no moves'] + 10
    assert ours > after['the busiest']
    # One round is not a history.
    assert ours > after['for tenants, by one round']
    assert rows['no moves']['servers moved'] == 0
    most = (tenant_moves.PERIODS - 1) * tenant_moves.MOST_MOVES
    assert all(row['servers moved'] <= most for row in rows.values())


def test_a_cloud_is_drawn_the_same_each_time_and_fits():
    cloud, at = tenant_moves.DrawnServers.drawn(3)
    again, there = tenant_moves.DrawnServers.drawn(3)
    assert (at == there).all()
    assert (cloud.wanted(0) == again.wanted(0)).all()
    inventory = cloud.snapshot(at).inventory
    assert (inventory.used <= inventory.capacity).all()


def test_the_busiest_goes_from_where_most_is_wanted_to_where_least_is():
    cloud, _ = tenant_moves.DrawnServers.drawn(3)
    at = np.zeros(tenant_moves.SERVERS, np.intp)
    at[1:] = 1 + np.arange(tenant_moves.SERVERS - 1) % (tenant_moves.NODES - 2)
    wanted = np.where(at == 5, 4.0, 0.1)
    seen = tenant_moves.SimulatedPeriod(
        wanted, wanted, wanted, np.stack([wanted, wanted])
    )
    after = tenant_moves.move_busiest(cloud, at, seen)
    moved = np.flatnonzero(after != at)
    assert 0 < len(moved) <= tenant_moves.MOST_MOVES
    assert (at[moved] == 5).all()
    assert tenant_moves.NODES - 1 in after[moved]
