# SPDX-License-Identifier: Apache-2.0

import json
import types

import pytest

from nova_fairness import exception
from nova_fairness.agent import settings
from nova_fairness.exchange import limits
from nova_fairness.model import resources

RESOURCES = resources.RESOURCES


def group(**changes):
    return types.SimpleNamespace(
        **{
            'domain': 'cell1',
            'view_max_age': 3.0,
            'max_peers': 5,
            'peer_capacity_file': '',
            'max_peer_heaviness': 7.0,
            **changes,
        }
    )


def test_every_resource_has_a_bound_without_configuration():
    assert set(limits.LARGEST_CAPACITY) == set(RESOURCES.names)
    assert (settings.exchange_limits(group()).capacity > 0).all()


def test_the_limit_of_users_grows_with_the_number_of_peers():
    got = settings.exchange_limits(group(max_peers=4))
    assert (got.max_peers, got.max_total_users) == (4, 2000)
    assert (got.domain, got.max_heaviness) == ('cell1', 7.0)


@pytest.fixture
def table(tmp_path):
    """Writes a file of capacities, and gives what is read from it."""

    def make(content, **changes):
        path = tmp_path / 'capacities.json'
        path.write_text(
            content if type(content) is str else json.dumps(content)
        )
        return settings.exchange_limits(
            group(peer_capacity_file=str(path), **changes)
        )

    return make


@pytest.mark.parametrize(
    ('host', 'memory', 'cpu_time'),
    [
        ('gpu-1', 4e12, 1e8),
        ('gpu-big', 4e12, 1e8),
        ('n1', 1e11, 5e4),
        ('n12', 3e11, 1e8),
        ('N1', 2e11, 7e4),
        ('other', 2e11, 7e4),
    ],
)
def test_the_first_pattern_that_matches_a_host_counts(
    table, host, memory, cpu_time
):
    got = table(
        {
            'gpu-*': {'memory': 4e12},
            'n1': {'memory': 1e11, 'cpu_time': 50_000},
            'n??': {'memory': '3e11'},
            'gpu-big': {'memory': 1},
            '*': {'memory': '2e11', 'cpu_time': '7e4'},
        },
    )
    capacity, _ = got.capacity_of(host)
    assert capacity[RESOURCES.index('memory')] == memory
    assert capacity[RESOURCES.index('cpu_time')] == cpu_time


def test_the_source_of_a_capacity_is_named(table):
    got = table({'gpu-*': {'memory': 4e12}})
    assert got.capacity_of('gpu-1')[1] == 'peer_capacity_file: gpu-*'
    assert got.capacity_of('n1')[1] == 'peer_capacity_file names no other'


@pytest.mark.parametrize(
    ('content', 'text'),
    [
        ('{', 'expected a JSON object'),
        ([], 'expected a JSON object'),
        ({'n1': 7}, 'expected a JSON object'),
        ({'n1': ['memory']}, 'expected a JSON object'),
        ({'n1': {'gpu': 1}}, r"names \['gpu'\]; expected resources out of"),
        ({'n1': {'memory': None}}, 'memory:None; expected a number above 0'),
        ({'n1': {'memory': 'much'}}, 'memory:much; expected a number above 0'),
        ({'n1': {'memory': -1}}, 'memory:-1'),
        ({'n1': {'memory': 0}}, 'memory:0'),
        ({'n1': {'memory': 'nan'}}, 'memory:nan'),
        ({'n1': {'memory': 'inf'}}, 'memory:inf'),
    ],
)
def test_an_invalid_capacity_file_is_named(table, content, text):
    with pytest.raises(
        exception.ConfigurationError, match='peer_capacity_file = .*' + text
    ):
        table(content)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(exception.ConfigurationError, match='No such file'):
        settings.exchange_limits(
            group(peer_capacity_file=str(tmp_path / 'none'))
        )
