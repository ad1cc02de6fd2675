# SPDX-License-Identifier: Apache-2.0

"""The record of classes outlives the agent, and nothing else."""

import json
import pathlib

import pytest

from nova_fairness import exception
from nova_fairness.apply.network import plan
from nova_fairness.apply.network import trees

MEMBER = plan.Member(
    16, {(10, 1): '52:54:00:00:00:0a', (11, 3): '52:54:00:00:00:0b'}, ('t',), 0
)
CONTENT = trees.RecordedClasses({'u/1/2': MEMBER}, 'eth1')


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'network.json'


def record(path, boot_id='this'):
    return trees.NetworkRecord(path, boot_id)


def test_a_saved_record_of_classes_is_read_back(path):
    record(path).save(CONTENT)
    assert record(path).load() == CONTENT


def test_a_record_of_an_earlier_boot_is_dropped(path):
    record(path, 'last').save(CONTENT)
    assert record(path).load() == trees.EMPTY_RECORD


@pytest.mark.parametrize(
    'spoil',
    [
        {'version': 2},
        {'members': []},
        {'members': {'a': {}}},
        {'members': {'a': {'minor': 'x', 'taps': [], 'filters': []}}},
        {'members': {'a': {'minor': 1, 'taps': [], 'filters': [['', 1]]}}},
        {'members': {'a': {'minor': 1, 'taps': 7, 'filters': []}}},
    ],
)
def test_an_unreadable_record_counts_as_missing(path, spoil):
    record(path).save(CONTENT)
    path.write_text(json.dumps({**json.loads(path.read_text()), **spoil}))
    assert record(path).load() == trees.EMPTY_RECORD


@pytest.mark.parametrize('text', ['', 'null', '[1]', '{"version": 1}', '\0'])
def test_a_damaged_record_file_counts_as_missing(path, text):
    path.write_text(text)
    assert record(path).load() == trees.EMPTY_RECORD


def test_changed_rates_alone_do_not_rewrite_the_record(path, monkeypatch):
    found = record(path)
    found.save(CONTENT)
    path.unlink()
    faster = plan.Member(16, MEMBER.filters, ('t',), 5000)
    found.save(trees.RecordedClasses({'u/1/2': faster}, 'eth1'))
    assert not path.exists()


def test_a_failing_disk_is_reported_and_keeps_the_old_record(
    path, monkeypatch
):
    found = record(path)
    found.save(CONTENT)

    def refuse(self, target):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(pathlib.Path, 'replace', refuse)
    with pytest.raises(exception.StateError, match='No space left'):
        found.save(trees.EMPTY_RECORD)
    monkeypatch.undo()
    assert record(path).load() == CONTENT
