# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness import exception
from nova_fairness.batch import commands


def test_output_of_a_command_is_returned():
    assert commands.output(('printf', 'a\nb'), 60.0) == 'a\nb'


def test_command_gives_standard_error_as_output_if_asked_for():
    command = 'sh', '-c', 'echo a; echo b >&2'
    assert commands.output(command, 60.0) == 'a\n'
    assert commands.output(command, 60.0, with_messages=True) == 'a\nb\n'


@pytest.mark.parametrize(
    ('command', 'timeout_s', 'message'),
    [
        (('/nowhere/sinfo', '--json'), 60.0, '/nowhere/sinfo --json cannot'),
        (('false',), 60.0, 'false ended with 1: it says nothing'),
        (('ls', '/nowhere'), 60.0, 'ls /nowhere ended with 2: ls: cannot'),
        (('sleep', '600'), 0.01, 'sleep 600 gave no answer within 0.01 s'),
    ],
)
def test_a_failing_batch_command_counts_as_unavailable(
    command, timeout_s, message
):
    with pytest.raises(exception.BatchAway, match=message):
        commands.output(command, timeout_s)
