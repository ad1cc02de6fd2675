# SPDX-License-Identifier: Apache-2.0

import csv
import json
import pathlib
import subprocess
import sys

import jsonschema
import pytest

from fairness_lab.figures import report
from fairness_lab.results import recording
from fairness_lab.results import schema
from fairness_lab.scenario import programs
from fairness_lab.scenario import reader
from nova_fairness import exception
from tests.unit.fairness_lab.results import fake_run

SAVED = pathlib.Path(__file__).parents[3] / 'data/recordings/one-node-cpu'
EXPECT = reader.find('one-node-cpu', programs.LABORATORY).expect
PNG = b'\x89PNG\r\n\x1a\n'


@pytest.fixture
def folder(tmp_path):
    run = fake_run.one_node_cpu(expect=EXPECT)
    recording.write(run, tmp_path / 'recording')
    return tmp_path


def test_a_recording_becomes_result_series_and_picture(folder):
    path = report.write(folder / 'recording', folder / 'out')
    assert path == folder / 'out' / 'result.json'
    content = json.loads(path.read_text())
    jsonschema.validate(content, schema.schema())
    assert content['checks']
    assert (folder / 'out' / 'run.png').read_bytes().startswith(PNG)
    assert sorted(item.name for item in path.parent.iterdir()) == [
        'result.json',
        'run.png',
        'series.csv',
    ]


def test_a_saved_recording_of_a_run_that_was_cut_off_can_be_used(tmp_path):
    path = report.write(SAVED, tmp_path)
    content = json.loads(path.read_text())
    assert content['rounds'] == 12
    assert content['window'] == {'from_s': 12.0, 'to_s': 24.0}
    # a2 is frozen for the second half of the window
    fair = {name: vm['max_min_share'] for name, vm in vms_of(content)}
    assert fair == pytest.approx({'a1': 0.375, 'a2': 0.125, 'b1': 0.5})
    with (SAVED / 'instances.csv').open(newline='') as stream:
        total = {
            (row['vm'], float(row['t_s'])): float(row['cpu_s'])
            for row in list(csv.DictReader(stream))[:-1]
        }
    used = {vm: total[vm, 24.0] - total[vm, 12.0] for vm in fair}
    for name, vm in vms_of(content):
        assert vm['cpu_s'] == pytest.approx(used[name])
        assert vm['cpu_share'] == pytest.approx(used[name] / 12.0)


def vms_of(content):
    return content['instances'].items()


def test_the_series_holds_parts_and_weights(folder):
    report.write(folder / 'recording', folder)
    with (folder / 'series.csv').open(newline='') as stream:
        rows = list(csv.DictReader(stream))
    assert {(row['kind'], row['quantity']) for row in rows} == {
        ('user', 'cpu_share'),
        ('user', 'max_min_share'),
        ('instance', 'cpu_share'),
        ('instance', 'max_min_share'),
        ('instance', 'weight'),
        ('instance', 'applied'),
    }
    ends = {
        row['name']: float(row['value'])
        for row in rows
        if row['quantity'] == 'cpu_share'
    }
    assert ends['bob'] == pytest.approx(0.5, abs=1e-3)


def test_a_bad_recording_leaves_nothing(folder):
    (folder / 'recording' / 'offered.csv').write_text('t_s\n')
    with pytest.raises(exception.LabError):
        report.write(folder / 'recording', folder / 'out')
    assert not (folder / 'out').exists()


def test_a_report_that_cannot_be_written_is_named(folder):
    (folder / 'out').write_text('a file')
    with pytest.raises(exception.LabError, match='cannot be written'):
        report.write(folder / 'recording', folder / 'out')


def test_an_older_file_is_replaced_whole(tmp_path):
    path = tmp_path / 'file'
    path.write_bytes(b'old and long')
    report.write_atomically(path, b'new')
    assert path.read_bytes() == b'new'
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ('text', 'complaint'),
    [
        (None, 'no result'),
        ('{', 'cannot be read'),
        ('[]', 'version 1'),
        ('{"version": 2}', 'got 2'),
    ],
)
def test_a_result_that_cannot_be_used_is_named(tmp_path, text, complaint):
    if text is not None:
        (tmp_path / 'result.json').write_text(text)
    with pytest.raises(exception.LabError, match=complaint) as caught:
        report.load(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_the_table_shows_parts_and_checks(folder):
    report.write(folder / 'recording', folder)
    result = report.load(folder)
    table = report.table(result)
    assert 'one-node-cpu (fake) with agents: DominantShareMetric' in table
    assert 'bob                50.0 %   50.0 %' in table
    assert '  a1               25.0 %   25.0 %        1' in table
    assert 'pass' in table
    assert 'FAIL' not in table
    assert report.has_passed(result)
    result['checks'][0]['passed'] = False
    assert 'FAIL' in report.table(result)
    assert not report.has_passed(result)


def test_matplotlib_is_imported_only_for_drawing():
    code = (
        'import sys\n'
        'from fairness_lab.figures import compare, report\n'
        'sys.exit("matplotlib" in sys.modules)\n'
    )
    subprocess.run([sys.executable, '-c', code], check=True)
