# SPDX-License-Identifier: Apache-2.0

"""Results become data frames, of one run and of several."""

import json
import sys

import pandas as pd
import pytest

import fairness_lab
from fairness_lab.cmd import sim
from nova_fairness import exception

SHORT = ('two-nodes', '--rounds', '3')


def test_tables_of_a_run_contain_the_numbers_of_its_files(tmp_path):
    out = tmp_path / 'result'
    assert sim.main(['run', *SHORT, '--out', str(out)]) == 0
    found = fairness_lab.load(out)
    assert list(found.settings) == ['result']
    assert found.settings['result']['scenario'] == 'two-nodes'
    assert set(found.tables) == {path.stem for path in out.glob('*.csv')}
    users = found.tables['users']
    written = pd.read_csv(out / 'users.csv')
    assert list(users.columns) == ['run', *written.columns]
    assert users.drop(columns='run').equals(written)


@pytest.mark.parametrize('kind', ['csv', 'parquet'])
def test_rows_of_several_runs_have_the_name_of_their_run(kind, tmp_path):
    out = tmp_path / 'result'
    names = ['foresight', 'none']
    policies = ','.join(names)
    chosen = ['--policies', policies, '--format', kind]
    assert sim.main(['compare', *SHORT, *chosen, '--out', str(out)]) == 0
    found = fairness_lab.load(str(out))
    runs = [f'two-nodes/DominantShareMetric/{name}' for name in names]
    assert list(found.settings) == runs
    counts = found.tables['measures'].groupby('run').size()
    assert counts.to_dict() == dict.fromkeys(runs, 3)


def test_a_table_of_a_sweep_belongs_to_no_run(tmp_path):
    out = tmp_path / 'result'
    vary = ['--vary', 'policy.part=0.3,0.7']
    assert sim.main(['sweep', *SHORT, *vary, '--out', str(out)]) == 0
    found = fairness_lab.load(out)
    assert list(found.settings) == ['0001', '0002']
    assert len(found.tables['sweep']) == 2
    assert 'run' not in found.tables['sweep']


def write_run(directory):
    directory.mkdir()
    (directory / 'result.json').write_text(json.dumps({'version': 1}))
    return directory


def test_a_directory_without_a_run_is_refused(tmp_path):
    (tmp_path / 'users.csv').write_text('round\n1\n')
    with pytest.raises(
        exception.SimError, match=f'{tmp_path}: no result.json'
    ):
        fairness_lab.load(tmp_path)


@pytest.mark.parametrize('name', ['users.csv', 'users.parquet'])
def test_an_error_names_the_table_that_cannot_be_read(name, tmp_path):
    run = write_run(tmp_path / 'run')
    (run / name).write_text('')
    with pytest.raises(exception.SimError, match=f'{name}: cannot be read'):
        fairness_lab.load(run)


def test_an_error_names_the_extra_that_is_missing(tmp_path, monkeypatch):
    run = write_run(tmp_path / 'run')
    monkeypatch.setitem(sys.modules, 'pandas', None)
    with pytest.raises(exception.SimError, match=r'nova-fairness\[notebook\]'):
        fairness_lab.load(run)
