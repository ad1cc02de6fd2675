# SPDX-License-Identifier: Apache-2.0

"""Notebooks of the examples run, and contain no results of an earlier run."""

import pathlib
import sys

import nbformat
import pytest

from tests.fixtures import notebooks

TOP = pathlib.Path(__file__).resolve().parents[3]
NOTEBOOKS = sorted((TOP / 'examples' / 'notebooks').glob('*.ipynb'))


@pytest.fixture
def programs_on_path(monkeypatch, tmp_path):
    """Let notebooks find the programs beside this Python."""
    monkeypatch.setenv('PATH', str(pathlib.Path(sys.executable).parent))
    monkeypatch.setenv('PYTHONPATH', str(TOP))
    monkeypatch.setenv('IPYTHONDIR', str(tmp_path / 'ipython'))
    monkeypatch.setenv('TMPDIR', str(tmp_path))


@pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_draws_its_picture(path, programs_on_path):
    done = notebooks.execute(path)
    assert notebooks.outputs(done, 'image/png')
    assert 'measures: ' in notebooks.printed(done)
    [table] = notebooks.outputs(done, 'text/html')
    assert all(name in table for name in ('none', 'feedback', 'foresight'))


@pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path):
    kept = nbformat.read(path, as_version=4)
    code = [cell for cell in kept.cells if cell.cell_type == 'code']
    assert code
    assert not any(cell.outputs or cell.execution_count for cell in code)
