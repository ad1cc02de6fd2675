# SPDX-License-Identifier: Apache-2.0

"""A file is read again when it changes, and only then."""

import logging

import pytest

from nova_fairness.runtime import watched_file


def number(path):
    return int(path.read_text())


def watched(path, taken=None):
    return watched_file.WatchedFile(
        path, number, 0, (OSError, ValueError), 'no number is taken', taken
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'number'


def test_a_file_is_read_once_for_each_change(path, monkeypatch):
    path.write_text('1')
    read = []
    made = watched(path)
    monkeypatch.setattr(
        made, '_read', lambda place: read.append(place) or number(place)
    )
    assert [made.content(), made.content()] == [1, 1]
    path.write_text('23')
    assert [made.content(), made.content()] == [23, 23]
    assert read == [path, path]


def test_a_file_that_cannot_be_used_changes_nothing(path, caplog):
    path.write_text('1')
    made = watched(path)
    made.load()
    path.write_text('one')
    assert [made.content(), made.content()] == [1, 1]
    path.unlink()
    assert [made.content(), made.content()] == [1, 1]
    assert [line.split(': ')[0] for line in caplog.messages] == [
        'no number is taken',
        'no number is taken',
    ]
    path.write_text('2')
    assert made.content() == 2


def test_a_file_that_must_be_there_is_refused_at_the_start(path):
    with pytest.raises(FileNotFoundError):
        watched(path).load()


def test_new_content_is_logged_but_not_the_first_content(path, caplog):
    caplog.set_level(logging.INFO)
    path.write_text('1')
    made = watched(path, 'the number is {}'.format)
    made.load()
    assert made.content() == 1
    path.write_text('23')
    assert made.content() == 23
    assert caplog.messages == ['the number is 23']


def test_without_a_file_the_first_content_counts():
    made = watched(None)
    made.load()
    assert made.content() == 0
