# SPDX-License-Identifier: Apache-2.0

"""Command line of ``nova-fairness-keys``."""

import argparse
import pathlib

from oslo_messaging_zmq.keys import allow_list

DIRECTORY = pathlib.Path('/etc/nova-fairness/keys')

_EPILOG = """\
A keys directory contains the allow-list allowed.json, which is the same on
every node, and NAME.secret with the key pair of NAME, which exists on NAME
only. A node reads a changed allow-list within seconds, and a changed key pair
when it starts.

exit codes:
  0  the command was executed
  1  check found errors
  2  wrong usage, or invalid keys; nothing was changed
"""


def parser() -> argparse.ArgumentParser:
    """Create the parser; ``command`` of its result is the name of a
    command.
    """
    made = argparse.ArgumentParser(
        prog='nova-fairness-keys',
        description='Create the keys that authenticate nodes, and manage the '
        'list of valid keys.',
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
        help='create a key pair and add it to the allow-list',
        description='Create a key pair for NAME in NAME.secret and add its '
        'public key to the allow-list.',
    )
    parser.add_argument(
        'name',
        metavar='NAME',
        help='name of the node: its option [fairness] host',
    )
    parser.add_argument(
        '--role',
        choices=allow_list.ROLES,
        default=allow_list.ROLES[0],
        help='permissions of the key; node: send reports and queries; '
        'controller: also change settings (default: %(default)s)',
    )
    parser.set_defaults(command='make')


def _add_list(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'list',
        help='show the allow-list',
        description='Show all keys of the allow-list.',
    )
    parser.add_argument(
        '--json', action='store_true', help='print the list as JSON'
    )
    parser.set_defaults(command='list')


def _add_rotate(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'rotate',
        help='create a new key pair for a name; the old key stays valid',
        description='Create a new key pair for NAME. The old key stays valid '
        'until you revoke it, so that no host is disconnected while you '
        'copy the files.',
    )
    parser.add_argument('name', metavar='NAME', help='name on the allow-list')
    parser.set_defaults(command='rotate')


def _add_revoke(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'revoke',
        help='revoke a key, or all keys of a name, permanently',
        description='Revoke one key, or all keys of a name, permanently. '
        'Nodes with the new allow-list close sessions of the key within a '
        'minute.',
    )
    parser.add_argument(
        'name_or_key',
        metavar='NAME|KEY',
        help='name on the allow-list, or public key in single quotes (after '
        '-- if it begins with a hyphen)',
    )
    parser.set_defaults(command='revoke')


def _add_allow(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'allow',
        help='add a public key that was created on another machine',
        description='Add a public key that was created on another machine to '
        'the allow-list. Other keys of NAME stay valid.',
    )
    parser.add_argument('name', metavar='NAME', help='owner of the key')
    parser.add_argument(
        'public',
        metavar='PUBLIC',
        help='public key: 40 characters, in single quotes (after -- if it '
        'begins with a hyphen)',
    )
    parser.add_argument(
        '--role',
        choices=allow_list.ROLES,
        help="permissions of the key (default: role of the name's other keys, "
        'or node)',
    )
    parser.add_argument(
        '--signs',
        default='',
        metavar='PUBLIC',
        help='public signing key of a controller, as the command make prints '
        'it',
    )
    parser.set_defaults(command='allow')


def _add_serves(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'serves',
        help='set the further servers for which a name may answer',
        description='Set the servers for which the keys of NAME may answer in '
        'addition to the server NAME. Without a SERVER, the keys may answer '
        'for NAME only.',
    )
    parser.add_argument('name', metavar='NAME', help='name on the allow-list')
    parser.add_argument(
        'servers',
        metavar='SERVER',
        nargs='*',
        help='name of a server, as its clients use it',
    )
    parser.set_defaults(command='serves')


def _add_check(commands: '_Commands[argparse.ArgumentParser]') -> None:
    parser = commands.add_parser(
        'check',
        help='check the keys directory for errors',
        description='Check for broken files, files that other users can read '
        'or change, and secrets whose key is not valid.',
    )
    parser.set_defaults(command='check')
