# SPDX-License-Identifier: Apache-2.0

import dataclasses

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.model import reason
from tests.fixtures import small_cloud


def test_arrays_of_a_snapshot_must_have_matching_shapes():
    good = small_cloud.cloud([small_cloud.host('a')])
    for name in ('capacity', 'used', 'unit', 'step'):
        bad = dataclasses.replace(
            good.inventory, **{name: np.ones((2, 2), dtype=np.int64)}
        )
        with pytest.raises(exception.BadSnapshot, match=name):
            dataclasses.replace(good, inventory=bad)


def test_amounts_must_not_be_negative():
    with pytest.raises(exception.BadSnapshot, match='negative'):
        small_cloud.cloud([small_cloud.host('a', used=-1)])


def test_the_use_of_a_project_has_an_amount_per_class():
    with pytest.raises(exception.BadSnapshot, match='used of project p'):
        small_cloud.cloud([], used={'p': np.zeros(3, dtype=np.int64)})


def test_a_step_is_at_least_one():
    with pytest.raises(exception.BadSnapshot, match='step'):
        small_cloud.cloud([small_cloud.host('a')], step=0)


def test_two_tries_of_one_decision_have_one_key():
    kept = reason.why(reason.Reason.ROOM_KEPT)
    one = cluster.Action(cluster.Verb.START, 'r', 3, ('a',), kept)
    assert one.key == 'start/r/3'
    assert dataclasses.replace(one, hosts=('b',)).key == one.key
    assert dataclasses.replace(one, version=4).key != one.key
