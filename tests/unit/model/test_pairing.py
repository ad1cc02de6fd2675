# SPDX-License-Identifier: Apache-2.0

"""What is said of a metric and a policy together."""

import pytest

from nova_fairness.model import pairing

EQUALISES, MAPS = pairing.PolicyKind.EQUALISES, pairing.PolicyKind.MAPS


@pytest.mark.parametrize('kind', [None, *pairing.PolicyKind])
def test_nothing_is_said_of_a_metric_for_all_policies(kind):
    assert pairing.pairing_warning('M', pairing.ANY, 'p', kind) == ''


@pytest.mark.parametrize(
    ('suits', 'kind', 'said'),
    [
        ({MAPS}, EQUALISES, 'p makes heaviness equal, for which M is not'),
        ({MAPS}, EQUALISES, '; policy thesis suits it'),
        ({EQUALISES}, MAPS, 'p gives every heaviness a weight of its own, '),
        ({EQUALISES}, MAPS, '; policy foresight suits it'),
        (set(), MAPS, 'for which M is not made'),
    ],
)
def test_an_unsuitable_metric_is_named_with_a_suitable_one(suits, kind, said):
    text = pairing.pairing_warning('M', suits, 'p', kind)
    assert text.startswith('metric M with policy p can leave users worse off')
    assert said in text
    assert ('suits it' in text) == bool(suits)


@pytest.mark.parametrize('kind', pairing.PolicyKind)
def test_a_suitable_metric_and_policy_give_no_warning(kind):
    assert pairing.pairing_warning('M', {kind}, 'p', kind) == ''


@pytest.mark.parametrize(
    ('given', 'are_kinds', 'is_kind'),
    [
        (pairing.ANY, True, False),
        (set(), True, False),
        ({'thesis'}, False, False),
        ('thesis', False, False),
        (MAPS, False, True),
        (None, False, True),
    ],
)
def test_kinds_that_plugins_declare_are_checked(given, are_kinds, is_kind):
    assert pairing.are_kinds(given) == are_kinds
    assert pairing.may_be_kind(given) == is_kind
