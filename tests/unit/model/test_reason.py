# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness import exception
from nova_fairness.model import reason

R = reason.Reason


def numbers_of(token):
    return dict.fromkeys(reason.NUMBERS.get(token, ()), 3.0)


@pytest.mark.parametrize('token', R)
def test_every_reason_has_a_sentence_with_all_of_its_numbers(token):
    sentence = reason.why(token, 'VCPU', **numbers_of(token)).sentence
    assert sentence
    assert '{' not in sentence
    assert sentence.count('3') == len(numbers_of(token))


def test_numbers_come_in_their_order():
    why = reason.why(R.NO_ROOM, 'VCPU', free=1, asked=8)
    assert why.numbers == (('asked', 8), ('free', 1))
    assert why.sentence == (
        'a server needs 8 VCPU, the host that comes closest has 1 left'
    )


@pytest.mark.parametrize(
    'numbers', [{}, {'asked': 1}, {'asked': 1, 'free': 2, 'more': 3}]
)
def test_numbers_of_another_reason_are_refused(numbers):
    with pytest.raises(exception.BadReason, match='no_room has the numbers'):
        reason.why(R.NO_ROOM, **numbers)


def test_the_first_in_the_order_is_told():
    told = reason.first(
        [
            reason.why(R.NO_ROOM, 'VCPU', asked=1, free=0),
            reason.why(R.TOO_LARGE, 'VCPU', asked=9, most=8),
            reason.why(R.TOO_LARGE, 'MEMORY_MB', asked=9, most=8),
        ]
    )
    assert (told.reason, told.subject) == (R.TOO_LARGE, 'MEMORY_MB')


def test_tokens_are_the_lower_case_of_their_names():
    assert [each.value for each in R] == [each.name.lower() for each in R]
