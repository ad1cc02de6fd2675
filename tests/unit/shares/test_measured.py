# SPDX-License-Identifier: Apache-2.0

"""What is charged of what is allocated, and of what agents measured."""

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness.shares import measured

CAPACITY = {'VCPU': 100.0, 'MEMORY_MB': 1000.0, 'DISK_GB': 10.0}


def amounts(vcpu=0.0, memory=0.0, disk=0.0):
    return np.array([vcpu, memory, disk])


def charged(charge, own, told, *, by_project=False, lent=None, counts=0.0):
    known = measured.MeasuredUse(by_project, told)
    found = measured.charged_amounts(
        measured.Charge(charge), own, lent or {}, counts, known, CAPACITY
    )
    return {name: each.tolist() for name, each in found.items()}


OWN = {'p': amounts(2), 'p/ann': amounts(10, 100, 5), 'q/ann': amounts(30)}


@pytest.mark.parametrize(
    ('charge', 'told', 'expected'),
    [
        ('allocated', {'ann': {'cpu_time': 0.8}}, (10, 100, 5, 30)),
        # Ann's use is divided as her 10 and 30 VCPUs.
        ('used', {'ann': {'cpu_time': 0.2}}, (5, 100, 5, 15)),
        ('used', {'ann': {'cpu_time': 0.8, 'memory': 0.3}}, (20, 300, 5, 60)),
        ('larger', {'ann': {'cpu_time': 0.2}}, (10, 100, 5, 30)),
        ('larger', {'ann': {'cpu_time': 0.8}}, (20, 100, 5, 60)),
        ('used', {'bob': {'cpu_time': 0.8}}, (10, 100, 5, 30)),
        ('used', {'ann': {'net_sent': 0.8}}, (10, 100, 5, 30)),
        ('used', {}, (10, 100, 5, 30)),
    ],
)
def test_use_of_users_is_divided_like_their_allocations(
    charge, told, expected
):
    found = charged(charge, OWN, told)
    assert found['p/ann'] == list(expected[:3])
    assert found['q/ann'][0] == expected[3]
    # What no user has is known by its allocation alone.
    assert found['p'][0] == 2


def test_use_of_projects_is_divided_among_all_users_there():
    found = charged('used', OWN, {'p': {'cpu_time': 0.6}}, by_project=True)
    assert found['p'][0] == pytest.approx(60 * 2 / 12)
    assert found['p/ann'][0] == pytest.approx(60 * 10 / 12)
    assert found['q/ann'][0] == 30


@pytest.mark.parametrize('counts', [0.0, 0.5, 1.0])
@pytest.mark.parametrize('charge', ['used', 'larger'])
def test_use_of_preemptible_servers_counts_as_far_as_these_do(charge, counts):
    lent = {'p/ann': amounts(10)}
    told = {'ann': {'cpu_time': 0.4}}
    own = {'p/ann': amounts(10)}
    found = charged(charge, own, told, lent=lent, counts=counts)
    assert found['p/ann'][0] == pytest.approx(20 + 20 * counts)


part = st.floats(0, 1)
leaves = st.dictionaries(
    st.sampled_from(['p', 'p/ann', 'p/bob', 'q/ann']),
    st.tuples(part, part, part).map(lambda each: 100 * np.array(each)),
)
told = st.dictionaries(
    st.sampled_from(['ann', 'bob', 'p', 'q']),
    st.dictionaries(st.sampled_from(['cpu_time', 'memory']), part),
)


@hypothesis.given(leaves, told, st.booleans())
def test_the_larger_of_allocated_and_measured_use_is_charged(
    own, use, by_project
):
    larger, used, allocated = (
        charged(each, own, use, by_project=by_project)
        for each in ('larger', 'used', 'allocated')
    )
    for name in own:
        most = np.maximum(used[name], allocated[name])
        assert larger[name] == pytest.approx(most.tolist())


@hypothesis.given(leaves, told)
def test_no_user_is_charged_more_than_was_used(own, use):
    found = charged('used', own, use)
    for user, each in use.items():
        if 'cpu_time' not in each:
            continue
        mine = [name for name in own if name.endswith(f'/{user}')]
        had = sum(own[name][0] for name in mine)
        got = sum(found[name][0] for name in mine)
        assert got == pytest.approx(100 * each['cpu_time'] if had else 0)
