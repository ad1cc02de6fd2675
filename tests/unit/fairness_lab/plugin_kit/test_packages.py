# SPDX-License-Identifier: Apache-2.0

"""A new package passes its test at once, and can be installed."""

import importlib
import os
import pathlib
import subprocess
import sys
import tomllib

import nbformat
import pytest

from fairness_lab.cmd import sim
from fairness_lab.plugin_kit import packages
from fairness_lab.queue_sim import reader
from fairness_lab.scenario import experiment
from nova_fairness import exception
from tests.fixtures import notebooks

TOP = pathlib.Path(__file__).resolve().parents[4]
every_kind = pytest.mark.parametrize('kind', list(packages.KINDS))


@pytest.fixture
def created(tmp_path, monkeypatch, capsys):
    """Create a package by the command; its modules can be imported."""
    known = set(sys.modules)

    def create(kind, name='campus-plugin'):
        out = tmp_path / 'package'
        assert sim.main(['new', kind, name, '--out', str(out)]) == 0
        monkeypatch.syspath_prepend(str(out))
        importlib.invalidate_caches()
        return out

    yield create
    for name in set(sys.modules) - known:
        if name.startswith(('campus_', 'test_campus_')):
            del sys.modules[name]


@every_kind
def test_a_new_package_keeps_the_contract(kind, created, monkeypatch):
    out = created(kind)
    monkeypatch.syspath_prepend(str(out / 'tests'))
    module = importlib.import_module('test_campus_plugin')
    suite = module.TestCampusPlugin()
    tests = [name for name in dir(suite) if name.startswith('test_')]
    assert len(tests) > 3
    for name in tests:
        getattr(suite, name)()


@every_kind
def test_generated_files_pass_formatting_and_types(kind, created):
    out = created(kind, 'a-name-of-four-tens-in-all-of-characters')
    for check in (['check', '--select=E,F,I,B,UP'], ['format', '--diff']):
        done = subprocess.run(
            ['ruff', *check, '--isolated', '.'],
            cwd=out,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@every_kind
def test_the_entry_point_leads_to_the_class(kind, created):
    out = created(kind)
    project = tomllib.loads((out / 'pyproject.toml').read_text())['project']
    [(group, points)] = project['entry-points'].items()
    [(name, target)] = points.items()
    path, _, class_name = target.partition(':')
    found = getattr(importlib.import_module(path), class_name)
    assert found.description
    assert group == f'nova_fairness.{packages.KINDS[kind].group}'
    expected = 'CampusPlugin' if kind == 'metric' else 'campus_plugin'
    assert name == expected
    assert name in (out / 'README.rst').read_text()


@every_kind
def test_the_scenario_can_be_read(kind, created):
    scenario = str(created(kind) / 'scenario.yaml')
    find = reader if kind in ('order', 'victims') else experiment
    assert find.find(scenario)


@pytest.mark.parametrize(
    ('kind', 'name', 'message'),
    [
        ('metric', 'Burst', 'lower-case words'),
        ('metric', 'burst--credits', 'lower-case words'),
        ('metric', '1st', 'lower-case words'),
        ('metric', '../burst', 'lower-case words'),
        ('metric', 'b' * 41, 'at most 40 characters'),
        ('order', 'json', 'Python has a module json already'),
        ('order', 'class', 'Python has a module class already'),
        ('order', 'tests', 'Python has a module tests already'),
        ('order', 'fair-tree', 'order of the queue fair_tree is installed'),
        ('metric', 'greediness-metric', 'GreedinessMetric is installed'),
        ('victims', 'youngest', 'youngest is installed already'),
        ('policy', 'foresight', 'foresight is installed already'),
    ],
)
def test_a_wrong_name_is_refused(kind, name, message, tmp_path, capsys):
    out = tmp_path / 'out'
    assert sim.main(['new', kind, name, '--out', str(out)]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()
    with pytest.raises(exception.BadPluginName, match=message):
        packages.PluginPackage(kind, name).check()


def test_an_existing_folder_is_not_overwritten(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'round-robin').mkdir()
    (tmp_path / 'round-robin' / 'mine').write_text('')
    assert sim.main(['new', 'order', 'round-robin']) == 1
    assert 'round-robin' in capsys.readouterr().err
    [left] = (tmp_path / 'round-robin').iterdir()
    assert left.name == 'mine'


def test_the_directory_is_the_name_unless_it_is_given(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert sim.main(['new', 'order', 'round_robin']) == 0
    said = capsys.readouterr().out
    assert 'round-robin/round_robin/order.py' in said
    assert (tmp_path / 'round-robin' / 'round_robin' / 'order.py').exists()


def run(package, *arguments):
    """Run a command beside an installed package."""
    paths = os.pathsep.join([str(package.parent / 'installed'), str(TOP)])
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=package,
        env=os.environ
        | {
            'PYTHONPATH': paths,
            'XDG_CACHE_HOME': str(package.parent / 'cache'),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@every_kind
def test_the_notebook_is_valid_and_has_no_outputs(kind, created):
    kept = nbformat.read(created(kind) / 'notebook.ipynb', as_version=4)
    nbformat.validate(kept)
    text = '\n'.join(cell.source for cell in kept.cells)
    assert '$' not in text
    expected = 'CampusPlugin' if kind == 'metric' else 'campus_plugin'
    assert f'{expected},' in text
    assert not any(cell.get('outputs') for cell in kept.cells)


@pytest.mark.slow
@every_kind
def test_a_new_package_is_built_installed_tested_and_simulated(
    kind, created, tmp_path, monkeypatch
):
    package = created(kind)
    target = str(tmp_path / 'installed')
    # pip downloads the tools that build packages.
    run(package, '-m', 'pip', 'install', '--no-deps', '--target', target, '.')
    assert 'passed' in run(package, '-m', 'pytest', '-q')
    readme = (package / 'README.rst').read_text()
    [line] = [
        line.split()
        for line in readme.splitlines()
        if 'nova-fairness-sim' in line
    ]
    run(package, '-m', 'fairness_lab.cmd.sim', *line[1:])
    assert (package / 'result' / 'report.html').exists()
    paths = os.pathsep.join([target, str(TOP)])
    monkeypatch.setenv('PYTHONPATH', paths)
    monkeypatch.setenv('PATH', str(pathlib.Path(sys.executable).parent))
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    done = notebooks.execute(package / 'notebook.ipynb')
    assert notebooks.outputs(done, 'image/png')
