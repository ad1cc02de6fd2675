# SPDX-License-Identifier: Apache-2.0

"""Numbers of classes and filters, and the sum of rates."""

import pytest

from nova_fairness import exception
from nova_fairness.apply import network_members
from nova_fairness.apply.network import plan
from nova_fairness.apply.network import state
from nova_fairness.model import instance


def nic(last, before=0):
    mac = f'52:54:00:00:{before:02x}:{last:02x}'
    return instance.Nic(mac, 'bridge', f'tap{before}-{last}')


def joined(members, key, *nics, rate=1000):
    return {
        **members,
        key: network_members.admitted(members, key, nics, rate),
    }


def test_each_vm_has_a_number_of_its_own_and_freed_ones_are_used_again():
    found = joined({}, 'a', nic(1))
    found = joined(found, 'b', nic(2))
    assert [item.minor for item in found.values()] == [16, 17]
    found.pop('a')
    assert joined(found, 'c', nic(3))['c'].minor == 16


def test_a_vm_keeps_its_numbers_when_its_rate_or_interfaces_change():
    found = joined({}, 'a', nic(1), nic(2))
    faster = joined(found, 'a', nic(1), nic(2), rate=9)['a']
    assert faster.filters == found['a'].filters
    assert (faster.minor, faster.rate) == (16, 9)
    more = joined(found, 'a', nic(2), nic(3))['a']
    assert more.minor == 16
    kept = {mac: handle for handle, mac in found['a'].filters.items()}
    now = {mac: handle for handle, mac in more.filters.items()}
    assert now[nic(2).mac] == kept[nic(2).mac]
    assert set(now) == {nic(2).mac, nic(3).mac}


def test_addresses_with_the_same_last_byte_share_a_bucket_by_number():
    found = joined({}, 'a', nic(7, 1), nic(7, 2))
    found = joined(found, 'b', nic(7, 3))
    handles = [handle for item in found.values() for handle in item.filters]
    assert sorted(handles) == [(7, 1), (7, 2), (7, 3)]


def test_an_address_that_two_vms_have_is_no_error():
    found = joined(joined({}, 'a', nic(7)), 'b', nic(7))
    assert len({h for item in found.values() for h in item.filters}) == 2


def test_when_numbers_run_out_it_is_said(monkeypatch):
    monkeypatch.setattr(state, 'LAST_MINOR', state.FIRST_MINOR)
    found = joined({}, 'a', nic(1))
    with pytest.raises(exception.WriteRefused, match='class'):
        joined(found, 'b', nic(2))


def member(minor, rate):
    return plan.Member(minor, {}, (), rate)


@pytest.mark.parametrize(
    ('before', 'after', 'expected', 'refused'),
    [
        ({}, {'a': 60, 'b': 40}, {'a': 60, 'b': 40}, set()),
        ({}, {'a': 60, 'b': 50}, {'a': 60}, {'b'}),
        ({'a': 50, 'b': 50}, {'a': 90, 'b': 50}, {'a': 50, 'b': 50}, {'a'}),
        ({'a': 50, 'b': 50}, {'a': 90, 'b': 10}, {'a': 90, 'b': 10}, set()),
        ({'a': 50, 'b': 50}, {'a': 99, 'b': 10}, {'a': 50, 'b': 10}, {'a'}),
        ({'a': 90, 'b': 90}, {'a': 80, 'b': 80}, {'a': 80, 'b': 80}, set()),
    ],
)
def test_the_sum_of_rates_stays_within_the_link(
    before, after, expected, refused
):
    numbers = {name: place for place, name in enumerate('abc')}

    def made(rates):
        return {n: member(numbers[n], rate) for n, rate in rates.items()}

    kept, excess = network_members.limited(made(before), made(after), 100)
    assert {name: item.rate for name, item in kept.items()} == expected
    assert excess == refused


def test_rates_of_recorded_vms_come_from_the_kernel():
    tree = state.Tree({16: state.Class(5000, 0, 0)}, {})
    found = network_members.with_rates(
        {'a': member(16, 0), 'b': member(17, 0)}, tree
    )
    assert {key: item.rate for key, item in found.items()} == {
        'a': 5000,
        'b': 1000,
    }
