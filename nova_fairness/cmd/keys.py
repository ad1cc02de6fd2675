# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""``nova-fairness-keys``: whose messages are believed."""

import argparse
import collections
from collections.abc import Sequence
import json
import pathlib
import sys

from nova_fairness import exception
from nova_fairness.messaging import allow_list
from nova_fairness.messaging import key_admin
from nova_fairness.messaging import key_files

DONE = 0
FAULTS = 1
BAD_USAGE = 2

DIRECTORY = pathlib.Path('/etc/nova-fairness/keys')
LIST_VERSION = 1

_COPY = f'Copy {key_files.LIST_NAME} to every node.'
_EPILOG = """\
A keys directory holds the allow-list allowed.json, which is the same on every
node, and NAME.secret with the key pair of NAME, which is on NAME only. A node
reads a changed allow-list within seconds, and a changed pair when it starts.

exit codes:
  0  done
  1  check found something wrong
  2  wrong usage, or keys that are not as expected; nothing was changed
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    :param arguments: without the program; ``None`` for those of the process.
    :returns: the exit code.
    """
    options = _parser().parse_args(arguments)
    try:
        return int(options.do(options))
    except exception.KeysError as error:
        sys.stderr.write(f'nova-fairness-keys: {error}\n')
        return BAD_USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='nova-fairness-keys',
        description='Make the keys with which nodes prove who they are, and '
        'say whose keys are good.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        '--directory',
        type=pathlib.Path,
        default=DIRECTORY,
        metavar='DIR',
        help='keys directory (default: %(default)s)',
    )
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    _add_make(commands)
    _add_list(commands)
    _add_rotate(commands)
    _add_revoke(commands)
    _add_allow(commands)
    _add_check(commands)
    return parser


_Commands = argparse._SubParsersAction  # noqa: SLF001


def _add_make(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'make',
        help='make a key pair and allow it',
        description='Make a key pair for NAME in NAME.secret and put its '
        'public key on the allow-list.',
    )
    parser.add_argument(
        'name', metavar='NAME', help='the [fairness] host of the node'
    )
    parser.add_argument(
        '--role',
        choices=allow_list.ROLES,
        default=allow_list.ROLES[0],
        help='node: may report and ask; controller: may also change settings '
        '(default: %(default)s)',
    )
    parser.set_defaults(do=_make)


def _add_list(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'list', help='show the allow-list', description='Show all keys.'
    )
    parser.add_argument('--json', action='store_true', help='for programs')
    parser.set_defaults(do=_list)


def _add_rotate(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'rotate',
        help='make a new pair for a name; the old key stays good',
        description='Make a new key pair for NAME. The old key stays good '
        'until you revoke it, so that nobody is cut off while files are '
        'copied.',
    )
    parser.add_argument('name', metavar='NAME', help='a name on the list')
    parser.set_defaults(do=_rotate)


def _add_revoke(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'revoke',
        help='revoke a key, or all keys of a name, for good',
        description='Revoke one key, or all keys of a name, for good. Where '
        'the new allow-list is, sessions of the key are closed within a '
        'minute.',
    )
    parser.add_argument(
        'name_or_key',
        metavar='NAME|KEY',
        help='a name, or a public key in single quotes (after -- if it '
        'begins with a hyphen)',
    )
    parser.set_defaults(do=_revoke)


def _add_allow(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'allow',
        help='allow a public key that was made elsewhere',
        description='Put a public key that was made elsewhere on the '
        'allow-list. Other keys of NAME stay good.',
    )
    parser.add_argument('name', metavar='NAME', help='whose key it is')
    parser.add_argument(
        'public',
        metavar='PUBLIC',
        help='40 characters, in single quotes (after -- if they begin with a '
        'hyphen)',
    )
    parser.add_argument(
        '--role',
        choices=allow_list.ROLES,
        help="default: that of the name's other keys, or node",
    )
    parser.set_defaults(do=_allow)


def _add_check(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'check',
        help='look for mistakes in the keys directory',
        description='Look for broken files, files that others can read or '
        'change, and secrets whose key is not good.',
    )
    parser.set_defaults(do=_check)


def _make(options: argparse.Namespace) -> int:
    entry = key_admin.make(options.directory, options.name, options.role)
    _say_new(options.directory, entry)
    _say(f'{_COPY} Then copy the secret to {entry.name} only.')
    return DONE


def _rotate(options: argparse.Namespace) -> int:
    entry = key_admin.rotate(options.directory, options.name)
    _say_new(options.directory, entry)
    _say(
        f'1. {_COPY}\n'
        f'2. Copy the secret to {entry.name} and restart what uses it.\n'
        '3. End the overlap, and copy the list once more:'
    )
    present = key_admin.entries(options.directory)
    for old in allow_list.good(present, entry.name):
        if old.public != entry.public:
            _say(f"     {_command(options)} revoke -- '{old.public}'")
    return DONE


def _command(options: argparse.Namespace) -> str:
    if options.directory == DIRECTORY:
        return 'nova-fairness-keys'
    return f'nova-fairness-keys --directory {options.directory}'


def _say_new(directory: pathlib.Path, entry: allow_list.Entry) -> None:
    _say(
        f'name    {entry.name}\n'
        f'role    {entry.role}\n'
        f'public  {entry.public}\n'
        f'secret  in {directory / (entry.name + key_files.SUFFIX)}'
    )


def _revoke(options: argparse.Namespace) -> int:
    for entry in key_admin.revoke(options.directory, options.name_or_key):
        _say(f'revoked {entry.public} of {entry.name}')
    _say(_COPY)
    return DONE


def _allow(options: argparse.Namespace) -> int:
    entry = key_admin.allow(
        options.directory, options.name, options.public, options.role
    )
    _say(f'allowed {entry.public} of {entry.name} as {entry.role}')
    _say(_COPY)
    return DONE


def _list(options: argparse.Namespace) -> int:
    entries = key_admin.entries(options.directory)
    if options.json:
        document = {
            'version': LIST_VERSION,
            'keys': [_listed(entry) for entry in entries],
        }
        _say(json.dumps(document, indent=2))
        return DONE
    rows = [('NAME', 'ROLE', 'STATE', 'PUBLIC KEY', 'CREATED', 'REVOKED')]
    rows += [
        (
            entry.name,
            entry.role,
            'revoked' if entry.revoked else 'good',
            entry.public,
            entry.created,
            entry.revoked_at,
        )
        for entry in sorted(entries, key=lambda e: (e.name, e.created))
    ]
    _say(_table(rows))
    return DONE


def _listed(entry: allow_list.Entry) -> dict[str, str | bool | None]:
    return {
        'name': entry.name,
        'role': entry.role,
        'public': entry.public,
        'created': entry.created,
        'revoked': entry.revoked,
        'revoked_at': entry.revoked_at or None,
    }


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return '\n'.join(
        '  '.join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    )


def _check(options: argparse.Namespace) -> int:
    faults = list(key_admin.faults(options.directory))
    for fault in faults:
        _say(f'wrong: {fault}')
    if faults:
        return FAULTS
    entries = key_admin.entries(options.directory)
    for name, count in key_admin.overlaps(entries).items():
        _say(f'note: {name} has {count} good keys; revoke those not in use')
    counts = collections.Counter(
        'revoked' if entry.revoked else entry.role for entry in entries
    )
    listed = ', '.join(f'{n} {what}' for what, n in sorted(counts.items()))
    _say(f'{options.directory} is in order: {listed}')
    return DONE


def _say(text: str) -> None:
    sys.stdout.write(text + '\n')


if __name__ == '__main__':
    sys.exit(main())
