# SPDX-License-Identifier: Apache-2.0


"""Every command of ``nova-fairness-sim`` that the documents show works."""

import pathlib
import re

import pytest

from fairness_lab.cmd import sim
from fairness_lab.scenario import recipes
from fairness_lab.scenario import traces

SOURCE = pathlib.Path(__file__).resolve().parents[3] / 'doc' / 'source'
PAGE = SOURCE / 'user' / 'simulator.rst'
SHOWN = re.compile(r'^ +\$ nova-fairness-sim (.+)$', re.MULTILINE)
LONG = frozenset(
    {
        'cluster pack strategies --out packing',
        'run examples/drawn.yaml --out drawn',
    }
)
"""They take more time than all others together."""


def shown():
    return sorted(
        {
            line
            for path in SOURCE.rglob('*.rst')
            for line in SHOWN.findall(path.read_text('utf-8'))
        }
    )


def test_all_commands_are_shown():
    assert set(shown()) >= LONG
    assert {line.split()[0] for line in shown()} == {
        'list',
        'run',
        'compare',
        'sweep',
        'reproduce',
        'new',
        'cluster',
    }


@pytest.mark.repeated
@pytest.mark.parametrize(
    'line',
    [
        pytest.param(line, marks=[pytest.mark.slow] if line in LONG else [])
        for line in shown()
    ],
)
def test_a_shown_command_can_be_typed(tmp_path, monkeypatch, capsys, line):
    (tmp_path / 'examples').symlink_to(SOURCE / 'user' / 'examples')
    monkeypatch.chdir(tmp_path)
    assert sim.main(line.split()) == 0
    written = {path.name for path in tmp_path.iterdir()} - {'examples'}
    assert len(written) == ('--out' in line or line.startswith('new '))


def test_all_options_of_the_simulator_are_described():
    text = PAGE.read_text('utf-8')
    for name in (*recipes.KEYS, *traces.COLUMNS):
        assert f'``{name}``' in text, name
