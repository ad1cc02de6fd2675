# SPDX-License-Identifier: Apache-2.0

"""What made a recorded result, or a claim, is a command that still exists."""

import argparse
import json
import shlex
import sys

import pytest

from fairness_lab.cmd import lab
from fairness_lab.cmd import sim
from fairness_lab.evidence import claims
from fairness_lab.scenario import programs
from tests.fixtures import benchmark

MAINS = {'nova-fairness-lab': lab.main, 'nova-fairness-sim': sim.main}


def _commands(value):
    if isinstance(value, dict):
        for key, item in value.items():
            if key == 'command' and isinstance(item, str):
                yield item
            else:
                yield from _commands(item)
    elif isinstance(value, list):
        for item in value:
            yield from _commands(item)


def _recorded():
    found = {
        each.command
        for each in claims.read().claims
        if '-m pytest' not in each.command
    }
    for path in benchmark.RESULTS.rglob('*.json'):
        found.update(_commands(json.loads(path.read_text())))
    return sorted(found)


class _UnderstoodError(Exception):
    """A parser took the arguments; nothing is run."""


@pytest.fixture
def only_parsed(monkeypatch):
    original = argparse.ArgumentParser.parse_args

    def parsed(self, *given, **named):
        original(self, *given, **named)
        raise _UnderstoodError

    monkeypatch.setattr(argparse.ArgumentParser, 'parse_args', parsed)


def test_every_result_records_its_command():
    assert {shlex.split(command)[0] for command in _recorded()} == {
        'python',
        *MAINS,
    }


@pytest.mark.parametrize('command', _recorded())
def test_a_recorded_command_is_still_understood(
    command, only_parsed, monkeypatch
):
    program, *arguments = shlex.split(command)
    if program in MAINS:
        main = MAINS[program]
        monkeypatch.setattr(sys, 'argv', [program, *arguments])
        if program == 'nova-fairness-lab':
            assert arguments[1] in programs.LABORATORY.names()
    else:
        (option, name), rest = arguments[:2], arguments[2:]
        assert option == '-m'
        main = benchmark.load(name.removeprefix('benchmarks.')).main
        monkeypatch.setattr(sys, 'argv', [name, *rest])
    with pytest.raises(_UnderstoodError):
        main()
