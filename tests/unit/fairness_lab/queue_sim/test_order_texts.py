# SPDX-License-Identifier: Apache-2.0

import pytest

from fairness_lab.queue_sim import order_texts
from nova_fairness import exception


def test_parameters_follow_the_name():
    assert order_texts.load_order('fair_tree').charge == 1
    assert order_texts.load_order('fair_tree:charge=0').charge == 0
    found = order_texts.load_order('multifactor:age=3:size=0')
    assert (found.age, found.size) == (3, 0)
    assert order_texts.load_victims('chance:seed=2').seed == 2


@pytest.mark.parametrize(
    ('text', 'error', 'message'),
    [
        ('none', exception.UnknownPlugin, "no order 'none'"),
        ('none:charge=0', exception.UnknownPlugin, "no order 'none'"),
        ('fair_tree:', exception.UnknownParameter, "got ''"),
        ('fair_tree:charge', exception.UnknownParameter, 'PARAMETER=NUMBER'),
        ('fair_tree:charge=x', exception.UnknownParameter, 'charge=x'),
        ('fair_tree:charge=2', exception.UnknownParameter, 'from 0 to 1'),
        ('fair_tree:age=2', exception.UnknownParameter, 'has no number age'),
    ],
)
def test_a_wrong_text_is_named(text, error, message):
    with pytest.raises(error, match=message):
        order_texts.load_order(text)
