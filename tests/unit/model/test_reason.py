# SPDX-License-Identifier: Apache-2.0

import itertools
import pathlib

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
    ('token', 'numbers', 'said'),
    [
        (
            R.SHARED_PART_TAKEN,
            {'asked': 1, 'free': 0, 'shared': 10},
            'it needs 1 VCPU: 0 of the 10 that all projects may use are free',
        ),
        (
            R.ROOM_IS_MADE,
            {'servers': 1},
            'room is reserved for it: it starts after 1 server made room',
        ),
        (
            R.ROOM_IS_MADE,
            {'servers': 11},
            'room is reserved for it: it starts after 11 servers made room',
        ),
        (
            R.TOO_LARGE,
            {'asked': 4, 'most': 1},
            (
                'a server needs 4 VCPU, and no host gives one server more'
                ' than 1, even when it is empty'
            ),
        ),
    ],
)
def test_sentences_name_amounts_and_use_the_singular(token, numbers, said):
    subject = '' if token is R.ROOM_IS_MADE else 'VCPU'
    why = reason.why(token, subject, **numbers)
    assert why.sentence == said
    assert reason.readable_reason(why, A.OWNER, OWN).sentence == said


@pytest.mark.parametrize(
    'numbers', [{}, {'asked': 1}, {'asked': 1, 'free': 2, 'more': 3}]
)
def test_numbers_of_another_reason_are_refused(numbers):
    with pytest.raises(exception.BadReason, match='no_room has the numbers'):
        reason.why(R.NO_ROOM, **numbers)


def test_the_first_reason_of_the_fixed_sequence_is_shown():
    told = reason.first_reason(
        [
            reason.why(R.NO_ROOM, 'VCPU', asked=1, free=0),
            reason.why(R.TOO_LARGE, 'VCPU', asked=9, most=8),
            reason.why(R.TOO_LARGE, 'MEMORY_MB', asked=9, most=8),
        ]
    )
    assert (told.reason, told.subject) == (R.TOO_LARGE, 'MEMORY_MB')


def test_tokens_are_the_lower_case_of_their_names():
    assert [each.value for each in R] == [each.name.lower() for each in R]


# Audiences -----------------------------------------------------------------

A = reason.Audience
OWN, FOREIGN, ABOVE = 'the-project', 'secret-name', 'physics'
_WITH_CLASS = {
    R.OVER_ACCOUNT_CEILING,
    R.OVER_BORROWING_LIMIT,
    R.NOMINAL_IS_LENT,
}


def odd_numbers(token):
    """A number for each field that is like no other text."""
    names = reason.NUMBERS.get(token, ())
    return {name: 7001.0 + place for place, name in enumerate(names)}


def about(token, name):
    """A reason about an account, if it is about one, or names a host."""
    if reason.AUDIENCES[token]['subject'].others is A.OWNER:
        name = 'VCPU'
    subject = f'VCPU of {name}' if token in _WITH_CLASS else name
    return reason.why(token, subject, **odd_numbers(token))


@pytest.mark.parametrize('token', R)
def test_each_field_of_each_reason_has_an_audience(token):
    """A new reason needs a line in the table, which says who reads it."""
    fields = {'subject', *reason.NUMBERS.get(token, ())}
    assert set(reason.AUDIENCES[token]) == fields


@pytest.mark.parametrize('token', R)
@pytest.mark.parametrize('name', [OWN, f'{OWN}/u', FOREIGN])
@pytest.mark.parametrize('audience', A)
def test_a_reader_reads_the_fields_for_it_and_no_others(token, name, audience):
    why = about(token, name)
    told = reason.readable_reason(why, audience, OWN)
    text = f'{told.sentence} {told.subject} {told.numbers}'
    is_own = name != FOREIGN
    for field, seen in reason.AUDIENCES[token].items():
        least = seen.own if is_own else seen.others
        value = why.subject.rpartition(' ')[2]
        if field != 'subject':
            value = f'{odd_numbers(token)[field]:g}'
        shown = value in text
        if audience < least:
            assert not shown, field
        elif field != 'subject':
            assert told.numbers[field] == odd_numbers(token)[field]
        else:
            assert told.subject == why.subject
    assert told.sentence
    assert '{' not in told.sentence


@pytest.mark.parametrize('token', R)
def test_operators_read_all_and_later_audiences_no_less(token):
    for name in (OWN, FOREIGN):
        why = about(token, name)
        all_of_it = reason.readable_reason(why, A.OPERATOR, OWN)
        assert all_of_it.sentence == why.sentence
        assert dict(all_of_it.numbers) == dict(why.numbers)
        read = [
            set(reason.readable_reason(why, each, OWN).numbers) for each in A
        ]
        assert all(one <= two for one, two in itertools.pairwise(read))


def test_a_reason_without_audiences_is_for_operators(monkeypatch):
    monkeypatch.delitem(reason.AUDIENCES, R.NO_ROOM)
    why = reason.why(R.NO_ROOM, FOREIGN, asked=7001.0, free=7002.0)
    told = reason.readable_reason(why, A.MANAGER, OWN)
    assert told == reason.ReadableReason(R.NO_ROOM, 'no room', '', {})


def test_nothing_else_tells_whole_sentences():
    """Only the log and the operators' command line tell all of a reason."""
    root = pathlib.Path(reason.__file__).parents[2]
    found = {
        str(path.relative_to(root)): text.count('why.sentence')
        for package in ('nova_fairness', 'api_ext')
        for path in (root / package).rglob('*.py')
        if 'why.sentence' in (text := path.read_text())
    }
    assert found == {
        'nova_fairness/model/reason.py': 1,
        'nova_fairness/cluster/eviction/evictor.py': 1,
        'nova_fairness/cluster/eviction/at_risk.py': 1,
        'nova_fairness/cluster/admission/dispatcher.py': 2,
        'nova_fairness/cmd/cluster.py': 1,
        # An operator's release that is refused.
        'nova_fairness/cluster/admission/interventions.py': 1,
        # Lines of the debug log.
        'nova_fairness/cluster/admission/decisions.py': 2,
    }
