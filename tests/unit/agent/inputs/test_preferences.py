# SPDX-License-Identifier: Apache-2.0

"""What owners prefer: stated by a call or by a file, kept over restarts."""

import json

import pytest

from nova_fairness import exception
from nova_fairness.agent.inputs import preferences


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'preferences.json'


@pytest.fixture
def file(tmp_path):
    return tmp_path / 'of-the-operator.json'


def test_preferences_are_empty_at_first(path):
    assert preferences.Preferences(path).current() == {}


def test_a_preference_stated_by_a_call_outlives_the_agent(path):
    assert preferences.Preferences(path).store({'a': 3, 'b': 0.5}) == ''
    again = preferences.Preferences(path)
    assert again.current() == {'a': 3.0, 'b': 0.5}
    assert again.store({'a': None, 'c': None}) == ''
    assert preferences.Preferences(path).current() == {'b': 0.5}


def test_a_preference_of_a_call_overrides_the_file(path, file):
    file.write_text('{"a": 2, "b": 4}')
    known = preferences.Preferences(path, str(file))
    known.store({'a': 3})
    assert known.current() == {'a': 3.0, 'b': 4.0}
    known.store({'a': None})
    assert known.current() == {'a': 2.0, 'b': 4.0}


def test_a_file_is_read_again_when_it_changes(path, file):
    known = preferences.Preferences(path, str(file))
    assert known.current() == {}
    file.write_text('{"a": 2}')
    assert known.current() == {'a': 2.0}
    other = file.with_suffix('.new')
    other.write_text('{"a": 5}')
    other.replace(file)
    assert known.current() == {'a': 5.0}
    file.unlink()
    assert known.current() == {}


@pytest.mark.parametrize(
    'content',
    ['', '[', '[]', '{"a": "x"}', '{"a": true}', '{"a": 0}', '{"a": 101}'],
)
def test_a_file_that_cannot_be_used_changes_nothing(
    path, file, caplog, content
):
    file.write_text('{"a": 2}')
    known = preferences.Preferences(path, str(file))
    assert known.current() == {'a': 2.0}
    file.write_text(content)
    assert known.current() == {'a': 2.0}
    assert 'is not taken over' in caplog.text
    caplog.clear()
    known.current()
    assert caplog.text == ''


@pytest.mark.parametrize(
    'number', [0, 0.009, 100.1, -1, float('nan'), float('inf'), 'x', True, []]
)
def test_one_number_that_cannot_be_used_refuses_the_whole_call(path, number):
    known = preferences.Preferences(path)
    with pytest.raises(exception.BadArgument, match=r'from 0\.01 to 100'):
        known.store({'a': 2, 'b': number})
    assert known.current() == {}
    assert not path.exists()


@pytest.mark.parametrize(
    'content',
    ['', '[]', '{}', '{"version": 2, "preferences": {}}', '{"version": 1}'],
)
def test_an_unreadable_record_is_replaced_by_an_empty_one(
    path, caplog, content
):
    path.write_text(content)
    assert preferences.Preferences(path).current() == {}
    assert 'no VM has a preference' in caplog.text


def test_an_unsaved_preference_counts_and_is_logged(tmp_path):
    known = preferences.Preferences(tmp_path / 'nowhere' / 'x.json')
    assert 'cannot write' in known.store({'a': 2})
    assert known.current() == {'a': 2.0}


def test_preferences_are_saved_in_the_documented_format(path):
    preferences.Preferences(path).store({'a': 2})
    assert json.loads(path.read_text()) == {
        'version': 1,
        'preferences': {'a': 2.0},
    }
