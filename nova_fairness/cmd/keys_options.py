# SPDX-License-Identifier: Apache-2.0

"""Command line of ``nova-fairness-keys``."""

import argparse
import pathlib

from oslo_messaging_zmq.keys import allow_list

DIRECTORY = pathlib.Path('/etc/nova-fairness/keys')

_EPILOG = """\
A keys directory holds the allow-list allowed.json, which is the same on every
node, and NAME.secret with the key pair of NAME, which is on NAME only. A node
reads a changed allow-list within seconds, and a changed pair when it starts.

exit codes:
  0  done
  1  check found something wrong
  2  wrong usage, or keys that are not as expected; nothing was changed
"""


def parser() -> argparse.ArgumentParser:
    """Make the parser; ``command`` of its result is the name of a command."""
    made = argparse.ArgumentParser(
        prog='nova-fairness-keys',
        description='Make the keys with which nodes prove who they are, and '
        'say whose keys are good.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        '--directory',
        type=pathlib.Path,
        default=DIRECTORY,
        metavar='DIR',
        help='keys directory (default: %(default)s)',
    )
    commands = made.add_subparsers(required=True, metavar='COMMAND')
    _add_make(commands)
    _add_list(commands)
    _add_rotate(commands)
    _add_revoke(commands)
    _add_allow(commands)
    _add_serves(commands)
    _add_check(commands)
    return made


_Commands = argparse._SubParsersAction  # noqa: SLF001


def _add_make(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'make',
        help='make a key pair and allow it',
        description='Make a key pair for NAME in NAME.secret and put its '
        'public key on the allow-list.',
    )
    parser.add_argument(
        'name',
        metavar='NAME',
        help='of the server: the [fairness] host of the node',
    )
    parser.add_argument(
        '--role',
        choices=allow_list.ROLES,
        default=allow_list.ROLES[0],
        help='node: may report and ask; controller: may also change settings '
        '(default: %(default)s)',
    )
    parser.set_defaults(command='make')


def _add_list(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'list', help='show the allow-list', description='Show all keys.'
    )
    parser.add_argument('--json', action='store_true', help='for programs')
    parser.set_defaults(command='list')


def _add_rotate(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'rotate',
        help='make a new pair for a name; the old key stays good',
        description='Make a new key pair for NAME. The old key stays good '
        'until you revoke it, so that no host is cut off while '
        'files are copied.',
    )
    parser.add_argument('name', metavar='NAME', help='a name on the list')
    parser.set_defaults(command='rotate')


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
    parser.set_defaults(command='revoke')


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
    parser.add_argument(
        '--signs',
        default='',
        metavar='PUBLIC',
        help='public key of what a controller signs, as make shows it',
    )
    parser.set_defaults(command='allow')


def _add_serves(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'serves',
        help='say for which servers a name answers beside its own',
        description='Say for which servers the keys of NAME may answer beside '
        'the server that is called NAME; without any, for no others.',
    )
    parser.add_argument('name', metavar='NAME', help='a name on the list')
    parser.add_argument(
        'servers',
        metavar='SERVER',
        nargs='*',
        help='name of a server, as its clients call it',
    )
    parser.set_defaults(command='serves')


def _add_check(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'check',
        help='look for mistakes in the keys directory',
        description='Look for broken files, files that others can read or '
        'change, and secrets whose key is not good.',
    )
    parser.set_defaults(command='check')
