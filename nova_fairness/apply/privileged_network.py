# SPDX-License-Identifier: Apache-2.0

"""Changes traffic control as root, by one ``tc -batch``.

:func:`run_as_root` runs in a separate process with the capability
    CAP_NET_ADMIN only, which it passes to ``tc`` and ``ip``. No command line
    comes from outside: an operation has a name and fields, each field is
    validated, and the command is built here. Only taps, uplinks of VMs and the
    agent's own interfaces are changed. Objects of other programs are never
    removed or replaced.
"""

from collections.abc import Sequence
import itertools
import re
import shutil
import subprocess
import threading

from oslo_config import cfg
from oslo_privsep import capabilities
from oslo_privsep import priv_context

from nova_fairness.apply import privileged_client
from nova_fairness.apply.network import commands
from nova_fairness.apply.network import devices
from nova_fairness.apply.network import kernel as network_kernel
from nova_fairness.apply.network import state

SECTION = privileged_client.NETWORK_SECTION
"""Configuration section with oslo.privsep's options for the helper."""

SYS = devices.SYS
"""Directory where the kernel lists its interfaces."""

MAX_OPERATIONS = 200_000
"""Largest number of operations in one call."""

_TIMEOUT_S = 20.0
_PATH = '/usr/sbin:/sbin:/usr/bin:/bin'
_FAILED = re.compile(r'Command failed -:(\d+)')

context = priv_context.PrivContext(
    __name__,
    cfg_section=SECTION,
    pypath=f'{__name__}.context',
    capabilities=privileged_client.KEPT[f'{__name__}.context'],
    timeout=_TIMEOUT_S + 5.0,
)
# Root without capabilities may still write what belongs to root.
# The one who is nobody, by number: the name of the group differs.
for _option in ('user', 'group'):
    cfg.CONF.set_default(_option, '65534', group=SECTION)
client = privileged_client.PrivilegedClient(context)


def run(operations: Sequence[commands.Operation]) -> list[str]:
    """Run operations in sequence, in one call of the helper.

    :returns: per operation an error message, empty if it succeeded.
    :raises ControlUnavailable: if the helper cannot be started or does not
        answer; then it is unknown what was done.
    """
    if not operations:
        return []
    return list(client.call(run_as_root, [list(item) for item in operations]))


@context.entrypoint
def run_as_root(operations: Sequence[Sequence[str | int]]) -> list[str]:
    """Validate and run each operation; runs in the helper.

    :returns: as :func:`run`.
    """
    if len(operations) > MAX_OPERATIONS:
        return [f'more than {MAX_OPERATIONS} operations'] * len(operations)
    refused = [
        commands.validation_error(item) or devices.device_error(item, SYS)
        for item in operations
    ]
    if any(item and item[0] in commands.GUARDED for item in operations):
        _refuse_foreign_removals(operations, refused)
    places = [place for place, why in enumerate(refused) if not why]
    parts = itertools.groupby(
        places,
        key=lambda place: operations[place][0] in commands.LINKS,
    )
    for is_link, part in parts:
        _run_part('ip' if is_link else 'tc', operations, list(part), refused)
    return refused


def _has_only_our_filters(
    kernel: state.Kernel, item: Sequence[str | int]
) -> bool:
    """Check whether a removal affects only objects of this agent."""
    device = str(item[1])
    if item[0] == 'no-clsact':
        return state.is_our_clsact(kernel.ingress(device))
    return kernel.redirects.get(device, ('', 1))[1] == 0


def _refuse_foreign_removals(
    operations: Sequence[Sequence[str | int]], refused: list[str]
) -> None:
    """Refuse to remove objects of other programs.

    A tree needs no check: it is removed by its handle, and the kernel refuses
    to add a second one.
    """
    with network_kernel.KernelConnection() as reader:
        kernel = reader.read()
    for place, item in enumerate(operations):
        if (
            not refused[place]
            and item[0] in commands.GUARDED
            and not _has_only_our_filters(kernel, item)
        ):
            refused[place] = f'{item[1]} has filters that others made'


def _run_part(
    tool: str,
    operations: Sequence[Sequence[str | int]],
    places: Sequence[int],
    errors: list[str],
) -> None:
    """Run operations of one tool; store failures in ``errors``."""
    lines: list[str] = []
    place_of: list[int] = []
    for place in places:
        made = commands.command_lines(operations[place])
        lines += made
        place_of += [place] * len(made)
    for number, why in _parse_failures(_run_with_capability(tool, lines)):
        # A line number after the last one means that the tool never started.
        if number <= len(place_of):
            errors[place_of[number - 1]] = why
        else:
            for place in places:
                errors[place] = why


def _run_with_capability(tool: str, lines: Sequence[str]) -> str:
    """Run a tool that has CAP_NET_ADMIN and no other capability.

    It runs on its own thread, because a thread passes such a capability to all
    its later child processes.

    :returns: error output of the tool.
    """
    said: list[str] = []
    text = '\n'.join([*lines, ''])

    def run_tool() -> None:
        try:
            privileged_client.pass_capabilities((capabilities.CAP_NET_ADMIN,))
            done = subprocess.run(
                [_program(tool), '-force', '-batch', '-'],
                input=text,
                capture_output=True,
                text=True,
                check=False,
                timeout=_TIMEOUT_S,
                errors='replace',
            )
            said.append(done.stderr)
        except (OSError, subprocess.SubprocessError) as error:
            whole = len(lines) + 1
            said.append(f'{tool}: {error}\nCommand failed -:{whole}\n')

    thread = threading.Thread(target=run_tool)
    thread.start()
    thread.join()
    return said[0] if said else ''


def _program(tool: str) -> str:
    return shutil.which(tool, path=_PATH) or tool


def _parse_failures(said: str) -> list[tuple[int, str]]:
    """Return the number, from 1, and the cause of each line that failed."""
    found: list[tuple[int, str]] = []
    reason: list[str] = []
    for line in said.splitlines():
        match = _FAILED.match(line)
        if match is None:
            reason.append(line.strip())
            continue
        told = [text for text in reason if text and text != _CONSEQUENCE]
        found.append((int(match[1]), '; '.join(told) or 'it failed'))
        reason = []
    return found


_CONSEQUENCE = 'We have an error talking to the kernel'
