# SPDX-License-Identifier: Apache-2.0

"""Values that somebody else knows are asked for beside the rounds."""

import threading

import pytest

from nova_fairness.runtime import lookup

ENOUGH_S = 60  # for broken code only


class FakeAuthority:
    """Answers what it was told, when it was told to."""

    def __init__(self):
        self.answers = {}
        self.asked = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.found = threading.Event()
        self.keys_found = []

    def fetch(self, key):
        self.asked.append(key)
        assert self.may_answer.wait(ENOUGH_S)
        answer = self.answers[key]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def on_found(self, key):
        self.keys_found.append(key)
        self.found.set()


@pytest.fixture
def authority():
    return FakeAuthority()


@pytest.fixture
def begin(authority):
    begun = []

    def start(**options):
        made = lookup.Lookup(
            'names', authority.fetch, on_found=authority.on_found, **options
        )
        begun.append(made)
        made.start()
        return made

    yield start
    authority.may_answer.set()
    for made in begun:
        made.stop()


def test_the_first_caller_does_not_wait_and_hears_later(authority, begin):
    authority.answers['a'] = 1
    authority.may_answer.clear()
    names = begin()
    assert names.known(['a']) == {}
    authority.may_answer.set()
    assert authority.found.wait(ENOUGH_S)
    assert authority.keys_found == ['a']
    assert names.known(['a']) == {'a': 1}
    assert names.known(['a']) == {'a': 1}
    assert authority.asked == ['a']


def test_a_missing_value_counts_as_an_answer(authority, begin):
    authority.answers = {'a': None, 'b': 2}
    names = begin()
    names.known(['a', 'b'])
    assert authority.found.wait(ENOUGH_S)
    assert names.known(['a', 'b']) == {'b': 2}
    assert authority.asked == ['a', 'b']


def test_an_old_value_counts_until_the_new_one_has_come(authority, begin):
    now = [0.0]
    authority.answers['a'] = 1
    names = begin(lifetime_s=10.0, clock=lambda: now[0])
    names.known(['a'])
    assert authority.found.wait(ENOUGH_S)
    authority.found.clear()
    authority.answers['a'] = 2
    now[0] = 11.0
    assert names.known(['a']) == {'a': 1}
    assert authority.found.wait(ENOUGH_S)
    assert names.known(['a']) == {'a': 2}


def test_a_question_that_failed_is_asked_again(
    authority, begin, monkeypatch, caplog
):
    monkeypatch.setattr(lookup, 'RETRY_S', 0.01)
    authority.answers['a'] = OSError('nobody is there')
    names = begin()
    with caplog.at_level('INFO'):
        names.known(['a'])
        while len(authority.asked) < 3:
            threading.Event().wait(0.01)
        assert 'nobody is there' in names.problem
        authority.answers['a'] = 1
        assert authority.found.wait(ENOUGH_S)
    assert names.known(['a']) == {'a': 1}
    assert names.problem == ''
    assert caplog.text.count('query failed') == 1
    assert caplog.text.count('queries succeed again') == 1


def test_a_value_that_no_caller_wanted_for_long_is_forgotten_first(
    authority, begin, monkeypatch
):
    monkeypatch.setattr(lookup, 'MOST', 2)
    authority.answers = {'a': 1, 'b': 2, 'c': 3}
    names = begin()
    for key in 'abac':
        names.known([key])
    while authority.asked != ['a', 'b', 'c']:
        threading.Event().wait(0.01)
    while len(names.known(['a', 'c'])) < 2:
        threading.Event().wait(0.01)
    assert set(names._entries) == {'a', 'c'}


def test_a_lookup_can_be_stopped_while_a_question_hangs(
    authority, begin, monkeypatch
):
    monkeypatch.setattr(lookup, '_JOIN_S', 0.01)
    authority.answers['a'] = 1
    authority.may_answer.clear()
    names = begin()
    names.known(['a'])
    names.stop()
