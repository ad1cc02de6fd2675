# SPDX-License-Identifier: Apache-2.0

"""How each Slurm is asked, on commands that know the options of its version.

Real ones are asked in tests/integration/batch.
"""

import json
import logging
import os
import sys

import pytest

from nova_fairness import exception
from nova_fairness import plugins
from tests.fixtures import slurm_written

_COMMAND = '''\
#!{python} -ISB
import json, pathlib, sys
told = json.loads(pathlib.Path({told!r}).read_text())
name, *options = pathlib.Path(sys.argv[0]).name, *sys.argv[1:]
with open({asked!r}, 'a') as asked:
    print(name, *options, file=asked)
key = 'jobs' if name == 'squeue' else 'nodes'
known = told['options'].get(name, [])
given = [each for each in options if each.startswith('--json')]
if not set(given) <= set(known):
    print(f'Try "{{name}} --help" for more information', file=sys.stderr)
    sys.exit(1)
if told['away']:
    sys.exit('cannot reach slurmctld')
if given == ['--json=list']:
    print('\\n'.join(told['plugins']), file=sys.stderr)
elif options[0] != 'update' and '--version' not in options:
    form = given[0].rpartition('.')[2] if '=' in given[0] else told['plain']
    print(told['answers'][str(form)][key])
'''


class Commands:
    """Commands of Slurm in a directory.

    :ivar asked: file of what they were asked.
    """

    def __init__(self, directory):
        self.asked = directory / 'asked'
        self._told = directory / 'told'
        for name in ('scontrol', 'sinfo', 'squeue'):
            path = directory / name
            path.write_text(
                _COMMAND.format(
                    python=sys.executable,
                    told=str(self._told),
                    asked=str(self.asked),
                )
            )
            path.chmod(0o755)

    def tell(self, options, forms=(), plain=0, away=False, nodes=()):
        """What they know from now on.

        :param options: by command.
        :param forms: of the plugins that are listed.
        :param plain: form that is written without a name of one.
        :param nodes: of the cluster.
        """
        answers = {
            form: {
                'nodes': slurm_written.answer(form, 'nodes', [*nodes]),
                'jobs': slurm_written.answer(form, 'jobs', []),
            }
            for form in {*forms, plain}
        }
        told = {
            'options': options,
            'plugins': [f'x: data_parser/v0.0.{form}' for form in forms],
            'plain': plain,
            'answers': answers,
            'away': away,
        }
        self._told.write_text(json.dumps(told))
        self.asked.write_text('')

    def lists(self, *forms, away=False, nodes=()):
        """As Slurm has been since 23.11."""
        known = ['--json=list', *(f'--json=v0.0.{form}' for form in forms)]
        options = {'scontrol': known, 'squeue': known}
        self.tell(options, forms, away=away, nodes=nodes)

    def lines(self):
        return self.asked.read_text().splitlines()


@pytest.fixture
def commands(tmp_path, monkeypatch):
    monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')
    return Commands(tmp_path)


@pytest.fixture
def batch():
    return plugins.load_batch('slurm', {'timeout_s': 60.0})


LISTED = 'scontrol --json=list'
PLAIN = 'scontrol --json --version'


@pytest.mark.parametrize(
    ('forms', 'chosen'),
    [((39, 40), 40), ((40, 41, 42), 42), ((42, 43, 44, 45), 44)],
)
def test_commands_are_asked_for_the_best_form_that_they_list(
    commands, batch, caplog, forms, chosen
):
    commands.lists(*forms)
    caplog.set_level(logging.INFO)
    for _ in range(2):
        assert batch.read_hosts().places == {}
    lists = [
        f'scontrol --all --json=v0.0.{chosen} show nodes',
        f'squeue --all --states=all --json=v0.0.{chosen}',
    ]
    assert commands.lines() == [LISTED, *lists, *lists]
    (line,) = caplog.messages
    assert line == (
        f'Slurm is read by: {lists[0]}, env SLURM_BITSTR_LEN=0 {lists[1]}'
    )


def test_commands_that_know_one_form_are_asked_for_it(commands, batch):
    """As 23.02 does."""
    known = {'scontrol': ['--json'], 'squeue': ['--json']}
    commands.tell(known, plain=39)
    batch.read_hosts()
    assert commands.lines() == [
        *(LISTED, PLAIN),
        'scontrol --all --json show nodes',
        'squeue --all --states=all --json',
    ]


def test_sinfo_is_asked_where_scontrol_writes_no_json(commands, batch):
    """As in 22.05."""
    commands.tell({'sinfo': ['--json'], 'squeue': ['--json']}, plain=38)
    batch.read_hosts()
    assert commands.lines() == [
        *(LISTED, PLAIN, 'sinfo --json'),
        'squeue --all --states=all --json',
    ]


def test_a_changed_slurm_is_asked_again_for_its_json_forms(
    commands, batch, caplog
):
    commands.lists(41)
    batch.read_hosts()
    commands.lists(44)
    with pytest.raises(exception.BatchAway, match='scontrol --help'):
        batch.read_hosts()
    caplog.set_level(logging.INFO)
    caplog.clear()
    batch.read_hosts()
    (line,) = caplog.messages
    assert 'v0.0.44' in line


def test_an_unchanged_slurm_that_returns_is_logged_once(
    commands, batch, caplog
):
    caplog.set_level(logging.INFO)
    commands.lists(44)
    batch.read_hosts()
    commands.lists(44, away=True)
    for _ in range(2):
        with pytest.raises(exception.BatchAway, match='cannot reach'):
            batch.read_hosts()
    commands.lists(44)
    batch.read_hosts()
    assert len(caplog.messages) == 1


def test_slurm_commands_without_a_known_json_form_are_named(commands, batch):
    commands.lists(46, 47)
    with pytest.raises(
        exception.BatchUnreadable, match=r'it offers v0.0.46, v0.0.47, and'
    ):
        batch.read_hosts()
    commands.tell({'sinfo': ['--json'], 'squeue': ['--json']}, plain=46)
    with pytest.raises(
        exception.BatchUnreadable, match=r'form data_parser/v0.0.46, and'
    ):
        batch.read_hosts()
