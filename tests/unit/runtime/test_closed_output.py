# SPDX-License-Identifier: Apache-2.0

"""Programs end quietly when the reader of their output has gone."""

import subprocess
import sys

import pytest

from nova_fairness.runtime import closed_output

PRINTER = """
import sys
from nova_fairness.runtime import closed_output

with closed_output.exit_if_closed():
    sys.stdout.write('x' * {count})
"""


def run_with_closed_reader(*arguments):
    """Run a program whose output is closed from the beginning."""
    with subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.close()
        said = process.stderr.read()
    return process.returncode, said


@pytest.mark.parametrize('count', [1, 1_000_000])
def test_a_program_whose_reader_is_gone_exits_without_a_traceback(count):
    code, said = run_with_closed_reader('-c', PRINTER.format(count=count))
    assert (code, said) == (closed_output.CLOSED, '')


@pytest.mark.parametrize('module', ['sim', 'lab'])
def test_a_list_that_is_not_read_ends_quietly(module):
    name = f'fairness_lab.cmd.{module}'
    code, said = run_with_closed_reader('-m', name, 'list')
    assert (code, said) == (closed_output.CLOSED, '')


def test_a_program_whose_output_is_read_keeps_its_result(capsys):
    with closed_output.exit_if_closed():
        sys.stdout.write('all\n')
    assert capsys.readouterr().out == 'all\n'
