# SPDX-License-Identifier: Apache-2.0

import ipaddress
import itertools

import pytest

from fairness_lab.testbed.nodes import namespace


def test_no_two_interfaces_of_a_run_share_an_address():
    seen = [
        address
        for index, segment, number in itertools.product(
            (0, 1, 30), range(namespace.SEGMENTS), (0, 1, 255, 256, 2000)
        )
        for address in namespace.addresses(index, segment, number)
    ]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize('segment', range(namespace.SEGMENTS))
def test_guest_and_bridge_are_in_one_network(segment):
    for guest, bridge in zip(
        namespace.addresses(3, segment, 17),
        namespace.addresses(3, segment, 0),
        strict=True,
    ):
        own = ipaddress.ip_interface(guest)
        assert own.network == ipaddress.ip_interface(bridge).network
        assert own.ip != own.network.network_address


@pytest.mark.parametrize(('index', 'number'), [(31, 0), (-1, 0), (0, 2001)])
def test_a_number_without_an_address_is_refused(index, number):
    with pytest.raises(ValueError, match='no address'):
        namespace.addresses(index, 0, number)


def test_the_bridge_is_in_every_segment():
    assert len(namespace.bridge_addresses(0)) == 2 * namespace.SEGMENTS
