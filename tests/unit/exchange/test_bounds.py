# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import types

import pytest

from nova_fairness import exception
from nova_fairness.exchange import bounds
from nova_fairness.model import resources

RESOURCES = resources.RESOURCES


def group(**changes):
    return types.SimpleNamespace(
        **{
            'domain': 'cell1',
            'view_max_age': 3.0,
            'max_users': 10,
            'max_total_users': 100,
            'max_peers': 5,
            'max_peer_capacity': {},
            'max_peer_heaviness': 7.0,
            'forget_peer_after': 60.0,
            **changes,
        }
    )


def test_every_resource_has_a_bound_without_configuration():
    assert set(bounds.LARGEST_CAPACITY) == set(RESOURCES.names)
    assert (bounds.from_options(group()).capacity > 0).all()


def test_a_configured_bound_replaces_its_resource_only():
    got = bounds.from_options(group(max_peer_capacity={'memory': '2e12'}))
    assert got.capacity[RESOURCES.index('memory')] == 2e12
    assert got.capacity[RESOURCES.index('cpu_time')] == 1e8
    assert (got.domain, got.max_heaviness) == ('cell1', 7.0)


@pytest.mark.parametrize(
    ('configured', 'text'),
    [
        ({'gpu': '1'}, r"names \['gpu'\]; expected resources out of cpu_time"),
        ({'memory': 'much'}, 'memory:much; expected a number above 0'),
        ({'memory': '0'}, 'memory:0'),
        ({'memory': 'nan'}, 'memory:nan'),
        ({'memory': 'inf'}, 'memory:inf'),
    ],
)
def test_a_useless_bound_is_named(configured, text):
    with pytest.raises(exception.ConfigurationError, match=text):
        bounds.from_options(group(max_peer_capacity=configured))
