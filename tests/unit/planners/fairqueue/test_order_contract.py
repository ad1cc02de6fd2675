# SPDX-License-Identifier: Apache-2.0

"""Every order that is installed keeps the contract, which finds bad ones."""

import pytest

from nova_fairness import plugins
from nova_fairness.planners.fairqueue import order
from nova_fairness.testing import order_contract


class TestFifo(order_contract.OrderContract):
    order = plugins.load_order('fifo')


class TestFairTree(order_contract.OrderContract):
    order = plugins.load_order('fair_tree')


class TestFairTreeByUseAlone(order_contract.OrderContract):
    order = plugins.load_order('fair_tree', {'charge': 0.0})


class TestMultifactor(order_contract.OrderContract):
    order = plugins.load_order('multifactor')


class TestSynergy(order_contract.OrderContract):
    order = plugins.load_order('synergy')


class TestDominantShare(order_contract.OrderContract):
    order = plugins.load_order('dominant_share')


class TestDistribution(order_contract.OrderContract):
    order = plugins.load_order('distribution')


class TestDistributionByVolume(order_contract.OrderContract):
    order = plugins.load_order(
        'distribution', {'vcpus': 1.0, 'memory': 1.0, 'disk': 1.0}
    )


class TestFass(order_contract.OrderContract):
    order = plugins.load_order('fass')


class TestPublishedFass(order_contract.OrderContract):
    order = plugins.load_order('fass', {'published': 1.0})


class TestAdmissionFairSharing(order_contract.OrderContract):
    order = plugins.load_order('admission_fair_sharing')


def test_every_installed_order_is_tested():
    tested = {
        type(each.order)
        for each in order_contract.OrderContract.__subclasses__()
        if each.__module__ == __name__
    }
    installed = {type(plugins.load_order(n)) for n in plugins.order_names()}
    assert tested == installed


class Bad(order.OldestFirst):
    """An order that is right until a subclass breaks it."""

    description = 'Bad.'


class BadDescription(Bad):
    description = 'one\ntwo'


class BadLoss(Bad):
    def arrange(self, waiting, snapshot, now):
        return super().arrange(waiting, snapshot, now)[1:]


class BadState(Bad):
    calls = 0

    def arrange(self, waiting, snapshot, now):
        self.calls += 1
        found = super().arrange(waiting, snapshot, now)
        return found if self.calls % 2 else found[::-1]


class BadMutation(Bad):
    def arrange(self, waiting, snapshot, now):
        for amounts in snapshot.history.values():
            amounts += 1
        return super().arrange(waiting, snapshot, now)


class BadListing(Bad):
    def arrange(self, waiting, snapshot, now):
        return waiting


class BadNames(Bad):
    def arrange(self, waiting, snapshot, now):
        return sorted(waiting, key=lambda each: (each.project, each.uuid))


class BadShares(Bad):
    def arrange(self, waiting, snapshot, now):
        share = {each.name: each.share for each in snapshot.accounts}
        return sorted(
            super().arrange(waiting, snapshot, now),
            key=lambda each: share.get(each.project, 1.0),
        )


@pytest.mark.parametrize(
    ('bad', 'test'),
    [
        (BadDescription, 'description_is_one_line'),
        (BadLoss, 'every_request_comes_once'),
        (BadState, 'same_cloud_gets_the_same_order'),
        (BadMutation, 'arguments_are_not_changed'),
        (
            BadListing,
            'how_requests_and_accounts_are_listed_does_not_matter',
        ),
        (BadNames, 'names_of_projects_and_users_do_not_matter'),
        (BadShares, 'a_larger_share_is_never_served_later'),
    ],
)
def test_contract_finds_the_order_that_breaks_it(bad, test):
    suite = order_contract.OrderContract()
    suite.order = bad()
    with pytest.raises(AssertionError):
        getattr(suite, f'test_{test}')()
