# SPDX-License-Identifier: Apache-2.0


"""Results appear whole or not at all."""

import csv

import numpy as np
from pyarrow import parquet
import pytest

from fairness_lab.measures import files
from nova_fairness import exception


def test_a_directory_appears_when_all_is_written(tmp_path):
    target = tmp_path / 'deep' / 'result'
    with files.new_directory(target) as directory:
        (directory / 'a').write_text('all')
        assert not target.exists()
    assert (target / 'a').read_text() == 'all'
    assert [path.name for path in target.parent.iterdir()] == ['result']


def write_and_raise(target, error):
    with files.new_directory(target) as made:
        (made / 'a').write_text('half')
        raise error


@pytest.mark.parametrize('error', [ValueError, KeyboardInterrupt, OSError])
def test_nothing_is_left_when_something_goes_wrong(tmp_path, error):
    target = tmp_path / 'result'
    with pytest.raises((error, exception.SimError)):
        write_and_raise(target, error)
    assert list(tmp_path.iterdir()) == []


def test_results_are_never_overwritten(tmp_path):
    (tmp_path / 'kept').write_text('')
    with (
        pytest.raises(exception.SimError, match='expected a new or empty'),
        files.new_directory(tmp_path),
    ):
        pytest.fail('it was opened')


def test_an_unwritable_result_directory_is_named(tmp_path):
    (tmp_path / 'file').write_text('')
    with (
        pytest.raises(exception.SimError, match='cannot be written'),
        files.new_directory(tmp_path / 'file' / 'result'),
    ):
        pytest.fail('it was opened')


COLUMNS = {
    'name': ['a', 'b'],
    'count': np.array([1, 2]),
    'part': np.array([1 / 3, np.nan]),
}


def test_a_table_is_written_as_csv(tmp_path):
    table = files.CsvTable(tmp_path / 'table')
    table.add(COLUMNS)
    table.add(COLUMNS)
    table.close()
    with (tmp_path / 'table.csv').open(newline='') as file:
        rows = list(csv.reader(file))
    first = ['a', '1', '0.333333333']
    second = ['b', '2', '']
    assert rows == [list(COLUMNS), first, second, first, second]


def test_a_table_is_written_as_parquet(tmp_path):
    table = files.ParquetTable(tmp_path / 'table')
    table.add(COLUMNS)
    table.add(COLUMNS)
    table.close()
    found = parquet.read_table(tmp_path / 'table.parquet').to_pydict()
    assert found['name'] == ['a', 'b', 'a', 'b']
    assert found['part'][0] == 1 / 3


def test_a_file_that_is_no_result_is_refused(tmp_path):
    path = tmp_path / files.RESULT
    for text in ('', '[]', '{'):
        path.write_text(text)
        with pytest.raises(exception.SimError, match=r'result\.json'):
            files.read_json(path)


def test_a_result_never_contains_nan_or_infinity(tmp_path):
    with pytest.raises(ValueError, match='not JSON compliant'):
        files.write_json(tmp_path / 'a', {'x': float('nan')})
