# SPDX-License-Identifier: Apache-2.0

"""The consolidation planner in OpenStack Watcher, with Watcher's own classes.

Watcher has a virtual environment of its own here: it brings some fifty
distributions that nothing else needs.
"""

import json
import pathlib
import subprocess
import sys
import venv

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = TOP / 'tests/functional/watcher_contract.py'

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope='module')
def told(tmp_path_factory):
    place = tmp_path_factory.mktemp('watcher')
    venv.create(place, with_pip=True)
    python = place / 'bin/python'
    # What the strategy does not import is left out.
    for what in (['python-watcher', 'scipy'], ['--no-deps', TOP]):
        subprocess.run(
            [python, '-m', 'pip', 'install', '-q', *what], check=True
        )
    done = subprocess.run(
        [python, SCRIPT], check=True, capture_output=True, text=True
    )
    sys.stderr.write(done.stderr)
    return json.loads(done.stdout)


def moves(found):
    return [
        (
            each['action_type'],
            each['input_parameters']['resource_name'],
            each['input_parameters']['destination_node'],
        )
        for each in found['actions']
    ]


def test_watcher_empties_a_host_and_a_second_audit_does_nothing(told):
    first = told['first']
    assert first['goal'] == 'server_consolidation'
    assert moves(first) in ([('migrate', 's3', host)] for host in 'ab')
    [action] = first['actions']
    assert action['input_parameters']['migration_type'] == 'live'
    assert action['input_parameters']['source_node'] == 'c'
    assert min(first['free']) >= 0
    [efficacy] = first['efficacy']
    assert efficacy['value'] == pytest.approx(100 / 3, abs=0.1)
    assert moves(told['second']) == []


def test_a_fixed_server_stays_and_a_disabled_host_gets_nothing(told):
    # Nobody goes to c for its locked server, as c is the least used.
    assert ('migrate', 's3', 'a') not in moves(told['locked'])
    assert all(each[1] != 's3' for each in moves(told['locked']))
    assert all(each[2] != 'b' for each in moves(told['disabled']))
    assert moves(told['dear']) == []


def test_an_audit_offers_the_choices_of_the_planner(told):
    assert set(told['schema']['properties']) == {
        'rule',
        'dearest_mb',
        'partial',
    }
