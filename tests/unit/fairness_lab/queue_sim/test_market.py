# SPDX-License-Identifier: Apache-2.0

"""What was published of a market of spending rates, with our planner."""

import itertools
import json
import pathlib

from hypothesis import given
from hypothesis import strategies as st
import numpy as np

from fairness_lab.queue_sim import market

RECORDED = (
    pathlib.Path(__file__).resolve().parents[4]
    / 'benchmarks/results/queue/market/market.json'
)


def test_the_worked_example_of_three_nodes():
    rows = market.example()
    assert [each['rate'] for each in rows] == [35, 35, 30, 30, 20, 20]
    together = {}
    for each in rows:
        together.setdefault(each['node'], []).append(each['rate'])
    assert sorted(together.values()) == [[30, 30], [35, 20], [35, 20]]
    # Per cent of a core, of the 400 that a node has.
    assert [each['share'] for each in rows] == [
        254.5,
        254.5,
        200.0,
        200.0,
        145.5,
        145.5,
    ]
    assert all(len(set(each['cores'].split())) == 3 for each in rows)


def test_published_migrations_come_out_with_classes_in_turn():
    found = {
        each['groups go to nodes by']: each['in turn']
        for each in market.migrations(1)
    }
    assert found['groups in their order'] == 8
    assert found['published search'] == 4
    assert found['best for these groups'] == 4
    assert found[market.OURS] == 0


def test_recorded_tables_of_the_market_come_out_again():
    recorded = json.loads(RECORDED.read_text('utf-8'))
    tables = market.tables(recorded['seed'])
    assert {name: recorded[name] for name in tables} == tables


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(0, 5), min_size=n, max_size=n),
            min_size=n,
            max_size=n,
        )
    )
)
def test_the_published_search_is_a_mapping_and_the_exact_one_the_best(drawn):
    table = np.array(drawn, float)
    size = range(len(table))
    best = min(
        sum(table[row, group] for row, group in enumerate(each))
        for each in itertools.permutations(size)
    )
    for name, choose in market.MAPPINGS.items():
        chosen = choose(table)
        assert sorted(chosen) == list(size), name
        assert table[size, chosen].sum() >= best
    assert table[size, market.assign_optimally(table)].sum() == best


def test_of_the_cheapest_groups_the_first_is_taken():
    servers = [
        market.MarketServer(rate, 1, 0) for rate in (5.0, 5.0, 9.0, 4.0)
    ]
    assert market.group_servers(servers, 2) == [[2, 3], [0, 1]]
