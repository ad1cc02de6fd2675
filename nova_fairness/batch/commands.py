# SPDX-License-Identifier: Apache-2.0

"""Commands of a batch system, with a time limit."""

import subprocess

from nova_fairness import exception


def output(
    command: tuple[str, ...],
    timeout_s: float,
    failed: type[exception.BatchError] = exception.BatchAway,
    with_messages: bool = False,
) -> str:
    """Run a command, and return its output.

    :param timeout_s: seconds after which the command counts as without answer.
    :param failed: error to raise if the command ends with another code than 0.
    :param with_messages: whether its error output is returned, too.
    :raises BatchAway: if the command is not installed, or takes too long.
    """
    title = ' '.join(command[:2])
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors='replace',
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise exception.BatchAway(
            f'{title} gave no answer within {timeout_s:g} s'
        ) from None
    except OSError as error:
        raise exception.BatchAway(f'{title} cannot run: {error}') from error
    if done.returncode:
        said = ' '.join(done.stderr.split()) or 'it says nothing'
        raise failed(f'{title} ended with {done.returncode}: {said[:500]}')
    return done.stdout + (done.stderr if with_messages else '')
