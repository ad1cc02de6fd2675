# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json

import pytest

from fairness_lab.results import recording
from nova_fairness import exception
from tests.unit.fairness_lab.results import fake_run

EMPTY = ',' * len(recording.MORE_COLUMNS)
COLUMNS = len(recording.INSTANCE_COLUMNS) + len(recording.MORE_COLUMNS)


@pytest.fixture
def folder(tmp_path):
    recording.write(fake_run.one_node_cpu(duration_s=20.0), tmp_path)
    return tmp_path


def test_a_written_recording_is_read_again(tmp_path):
    written = fake_run.one_node_cpu(events=[(3.0, 'freeze', 'a1')])
    recording.write(written, tmp_path)
    assert recording.read(tmp_path) == written


def test_a_recording_of_old_without_more_columns_can_be_read(folder):
    path = folder / 'instances.csv'
    lines = path.read_text().splitlines()
    short = [line.removesuffix(EMPTY) for line in lines[1:]]
    head = ','.join(recording.INSTANCE_COLUMNS)
    path.write_text('\n'.join([head, *short]) + '\n')
    assert all(not row.more for row in recording.read(folder).readings)


def test_further_readings_and_bytes_of_fio_come_back(tmp_path):
    written = fake_run.one_node_cpu(duration_s=5.0)
    more = {'read_bytes': 5.0, 'io_weight': 250.0, 'wait_s': 0.5}
    rows = tuple(
        dataclasses.replace(row, more=more) for row in written.readings
    )
    fio = {'a1': {'weight': 250.0, 'bytes_per_s': 7e6}}
    written = dataclasses.replace(written, readings=rows, fio=fio)
    recording.write(written, tmp_path)
    assert recording.read(tmp_path) == written


@pytest.mark.parametrize(
    'text', ['{', '[]', '{"a1": 3}', '{"a1": {"w": "x"}}']
)
def test_results_of_fio_that_are_no_numbers_are_an_error(folder, text):
    (folder / recording.FIO).write_text(text)
    with pytest.raises(exception.LabError, match='numbers by VM'):
        recording.read(folder)


@pytest.mark.parametrize(
    'name', ['instances.csv', 'events.csv', 'agents/node1/rounds.jsonl']
)
def test_a_last_line_that_was_cut_off_is_left_out(folder, name):
    whole = recording.read(folder)
    with (folder / name).open('a') as stream:
        stream.write('{"ver' if name.endswith('l') else '9.5,nod')
    assert recording.read(folder) == whole


@pytest.mark.parametrize(
    ('name', 'line', 'text', 'complaint'),
    [
        ('instances.csv', 1, 't_s,node', 'vm'),
        ('instances.csv', 3, f'soon,n,v,u,1,2,3,running{EMPTY}', "'soon'"),
        ('instances.csv', 4, '1,2', f'{COLUMNS} fields'),
        ('instances.csv', 3, f'1,n,v,u,nine,2,3,running{EMPTY}', 'cpu_s'),
        ('offered.csv', 2, '0,a1,lots', "'lots'"),
        ('agents/node1/rounds.jsonl', 2, '{', 'JSON'),
        ('agents/node1/rounds.jsonl', 1, '[]', 'round'),
        (
            'agents/node1/rounds.jsonl',
            1,
            '{"version": 7, "instances": []}',
            'version 1',
        ),
    ],
)
def test_an_error_names_file_and_line(folder, name, line, text, complaint):
    path = folder / name
    lines = path.read_text().splitlines()
    lines[line - 1] = text
    path.write_text('\n'.join(lines) + '\n')
    with pytest.raises(exception.LabError) as caught:
        recording.read(folder)
    assert f'{path}, line {line}:' in str(caught.value)
    assert complaint in str(caught.value)


def test_a_folder_without_recording_is_named(tmp_path):
    with pytest.raises(exception.LabError, match='no recording'):
        recording.read(tmp_path)


def test_a_missing_table_is_named(folder):
    (folder / 'offered.csv').unlink()
    with pytest.raises(exception.LabError, match=r'offered\.csv is missing'):
        recording.read(folder)


def test_values_that_were_not_read_are_none(folder):
    with (folder / 'instances.csv').open('a') as stream:
        stream.write(f'99,node1,a1,alice,,,,frozen{EMPTY}\n')
    last = recording.read(folder).readings[-1]
    assert (last.cpu_s, last.cpu_shares, last.work) == (None, None, None)
    assert last.state == 'frozen'


def test_a_run_without_agents_has_no_rounds(tmp_path):
    recording.write(fake_run.one_node_cpu(agents=False), tmp_path)
    assert recording.read(tmp_path).rounds == {}


def test_rows_come_in_the_order_of_time(folder):
    meta = json.loads((folder / 'meta.json').read_text())
    assert meta['name'] == 'one-node-cpu'
    with (folder / 'events.csv').open('a') as stream:
        stream.write('9,freeze,a1\n2,thaw,a2\n')
    assert [event.t_s for event in recording.read(folder).events] == [2, 9]


@pytest.mark.parametrize(
    ('drop', 'named'),
    [
        (lambda meta: meta.pop('backend'), 'backend'),
        (lambda meta: meta['options'].pop('agents'), r'options\.agents'),
        (lambda meta: meta.update(options=None), r'options\.interval_s'),
    ],
)
def test_a_key_that_the_meta_file_lacks_is_named(folder, drop, named):
    meta = json.loads((folder / 'meta.json').read_text())
    drop(meta)
    (folder / 'meta.json').write_text(json.dumps(meta))
    with pytest.raises(exception.LabError, match=named):
        recording.read(folder)


@pytest.mark.parametrize('text', ['{', '[]'])
def test_a_meta_file_that_is_no_object_is_named(folder, text):
    (folder / 'meta.json').write_text(text)
    with pytest.raises(exception.LabError, match=r'meta\.json, line 1'):
        recording.read(folder)
