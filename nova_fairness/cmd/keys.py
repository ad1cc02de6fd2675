# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-keys``: creates and lists the keys of hosts and
controllers.
"""

import argparse
import collections
from collections.abc import Callable
from collections.abc import Mapping
import json
import pathlib
import sys
from typing import Any

from nova_fairness.cmd import ctl_tables
from nova_fairness.cmd import keys_options
from nova_fairness.model import plain
from nova_fairness.runtime import closed_output
from oslo_messaging_zmq import errors
from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.keys import allow_list
from oslo_messaging_zmq.keys import files

DONE = 0
FAULTS = 1
BAD_USAGE = 2

LIST_VERSION = 1
_HEAD = (
    'NAME',
    'ROLE',
    'STATE',
    'PUBLIC KEY',
    'CREATED',
    'REVOKED',
    'SERVES TOO',
)

_COPY = f'Copy {files.LIST_NAME} to every node.'


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    :param arguments: arguments without the name of the program; ``None`` for
        the arguments of the process.
    :returns: the exit code.
    """
    options = keys_options.parser().parse_args(arguments)
    try:
        with closed_output.exit_if_closed():
            return _COMMANDS[options.command](options)
    except errors.KeysError as error:
        sys.stderr.write(plain.lines(f'nova-fairness-keys: {error}\n'))
        return BAD_USAGE


def _make(options: argparse.Namespace) -> int:
    entry = admin.make(options.directory, options.name, options.role)
    _print_new_key(options.directory, entry)
    _print_line(f'{_COPY} Then copy the secret to {entry.name} only.')
    return DONE


def _rotate(options: argparse.Namespace) -> int:
    entry = admin.rotate(options.directory, options.name)
    _print_new_key(options.directory, entry)
    _print_line(
        f'1. {_COPY}\n'
        f'2. Copy the secret to {entry.name} and restart its services.\n'
        '3. Revoke the old key, and copy the list again:'
    )
    present = admin.entries(options.directory)
    for old in allow_list.valid_keys(present, entry.name):
        if old.public != entry.public:
            _print_line(f"     {_command(options)} revoke -- '{old.public}'")
    return DONE


def _command(options: argparse.Namespace) -> str:
    if options.directory == keys_options.DIRECTORY:
        return 'nova-fairness-keys'
    return f'nova-fairness-keys --directory {options.directory}'


def _print_new_key(
    directory: pathlib.Path, entry: allow_list.AllowedKey
) -> None:
    _print_line(
        f'name    {entry.name}\n'
        f'role    {entry.role}\n'
        f'public  {entry.public}\n'
        + (f'signs   {entry.signs}\n' if entry.signs else '')
        + f'secret  in {directory / (entry.name + files.SUFFIX)}'
    )


def _revoke(options: argparse.Namespace) -> int:
    for entry in admin.revoke(options.directory, options.name_or_key):
        _print_line(f'revoked {entry.public} of {entry.name}')
    _print_line(_COPY)
    return DONE


def _allow(options: argparse.Namespace) -> int:
    entry = admin.allow(
        options.directory,
        options.name,
        options.public,
        options.role,
        options.signs,
    )
    _print_line(f'allowed {entry.public} of {entry.name} as {entry.role}')
    _print_line(_COPY)
    return DONE


def _serves(options: argparse.Namespace) -> int:
    present = admin.serves(options.directory, options.name, options.servers)
    others = ', '.join(present[-1].serves) or 'no other host'
    _print_line(f'{options.name} may answer for {options.name} and {others}')
    _print_line(_COPY)
    return DONE


def _list(options: argparse.Namespace) -> int:
    entries = admin.entries(options.directory)
    if options.json:
        document = {
            'version': LIST_VERSION,
            'keys': [_key_fields(entry) for entry in entries],
        }
        _print_line(json.dumps(document, indent=2))
        return DONE
    rows = [
        (
            entry.name,
            entry.role,
            'revoked' if entry.revoked else 'good',
            entry.public,
            entry.created,
            entry.revoked_at,
            ' '.join(entry.serves),
        )
        for entry in sorted(entries, key=lambda e: (e.name, e.created))
    ]
    sys.stdout.write(plain.lines(ctl_tables.align_columns(_HEAD, rows)))
    return DONE


def _key_fields(entry: allow_list.AllowedKey) -> dict[str, Any]:
    return {
        'name': entry.name,
        'role': entry.role,
        'public': entry.public,
        'created': entry.created,
        'revoked': entry.revoked,
        'revoked_at': entry.revoked_at or None,
        'serves': list(entry.serves),
        'signs': entry.signs or None,
    }


def _check(options: argparse.Namespace) -> int:
    faults = list(admin.faults(options.directory))
    for fault in faults:
        _print_line(f'error: {fault}')
    if faults:
        return FAULTS
    entries = admin.entries(options.directory)
    for name, count in admin.overlaps(entries).items():
        _print_line(
            f'note: {name} has {count} valid keys; revoke the unused ones'
        )
    for entry in entries:
        if entry.serves and not entry.revoked:
            others = ', '.join(entry.serves)
            _print_line(f'note: {entry.name} may also answer for {others}')
    counts = collections.Counter(
        'revoked' if entry.revoked else entry.role for entry in entries
    )
    listed = ', '.join(f'{n} {what}' for what, n in sorted(counts.items()))
    _print_line(f'{options.directory}: no errors found: {listed}')
    return DONE


def _print_line(text: str) -> None:
    sys.stdout.write(plain.lines(text + '\n'))


_COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    'make': _make,
    'list': _list,
    'rotate': _rotate,
    'revoke': _revoke,
    'allow': _allow,
    'serves': _serves,
    'check': _check,
}


if __name__ == '__main__':
    sys.exit(main())
