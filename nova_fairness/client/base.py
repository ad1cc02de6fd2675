# SPDX-License-Identifier: Apache-2.0

"""Base classes of the commands."""

import argparse
from collections.abc import Mapping
from collections.abc import Sequence
import logging
from typing import Any

from osc_lib import exceptions
from osc_lib.command import command

from nova_fairness import exception
from nova_fairness.client import columns as columns_module
from nova_fairness.client import http
from nova_fairness.model import plain

LOG = logging.getLogger(__name__)

INCOMPLETE = 1
"""Exit code if some hosts did not answer, or refused."""

ALL = 'all'
"""Every host of the domain."""

PLAIN = 'value'
"""The form of answers without anything but the values."""

ESCAPING = frozenset({'json', 'yaml'})
"""Forms for programs, which write by themselves what cannot be printed as
escape sequences."""

Table = tuple[Sequence[str], list[tuple[Any, ...]]]
Fields = tuple[tuple[str, ...], tuple[Any, ...]]
"""Keys of one thing, and their values."""


class _Reader(command.Command):
    """Reads answers, which may be of another release than the client."""

    @property
    def api(self) -> http.FairnessApi:
        """The HTTP interface that answers; the manager has it by its name."""
        manager: Any = self.app.client_manager
        made: http.FairnessApi = manager.fairness
        return made

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; give its exit code.

        :raises CommandError: if the answer has another form than it should.
        """
        try:
            return super().run(parsed_args) or 0
        except exception.UNREADABLE as error:
            raise exceptions.CommandError(
                'the answer of nova-api cannot be understood:'
                f' {type(error).__name__}; use the client of its release'
            ) from error


class Lister(_Reader, command.Lister):
    """Makes a table, and fails if hosts are missing in it."""

    is_complete = True

    def produce_output(
        self, parsed_args: Any, column_names: Any, data: Any
    ) -> Any:
        """Write it; plain text where that was asked for."""
        if parsed_args.formatter not in ESCAPING:
            data = [tuple(map(columns_module.safe, row)) for row in data]
        if parsed_args.formatter == PLAIN:
            data = [tuple(map(columns_module.plain_line, row)) for row in data]
        return super().produce_output(parsed_args, column_names, data)

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; give its exit code."""
        code = super().run(parsed_args)
        return code or (0 if self.is_complete else INCOMPLETE)

    def miss(self, what: str, hosts: Mapping[str, str]) -> None:
        """Say on standard error which hosts are missing."""
        for host, reason in hosts.items():
            LOG.error('%s', plain.line(f'{host} {what}: {reason}'))
            self.is_complete = False


class ShowOne(_Reader, command.ShowOne):
    """Shows one thing."""

    def produce_output(
        self, parsed_args: Any, column_names: Any, data: Any
    ) -> Any:
        """Write it; plain text where that was asked for."""
        if parsed_args.formatter not in ESCAPING:
            column_names = tuple(map(columns_module.safe, column_names))
            data = tuple(map(columns_module.safe, data))
        if parsed_args.formatter == PLAIN:
            data = tuple(map(columns_module.plain, data))
        return super().produce_output(parsed_args, column_names, data)


class HostCommand(Lister):
    """Lets a host, or all, do something, and lists those that do it."""

    columns: tuple[tuple[str, str], ...] = ()
    """Titles and keys of what a host answers."""

    def act(self, host: str, action: str, argument: Any = None) -> Table:
        """Do it.

        :param host: its name or :data:`ALL`.
        """
        answer = self.api.act(host, action, argument)
        self.miss('was not reached', http.reasons(answer.get('not_reached')))
        self.miss('refused', http.reasons(answer.get('refused')))
        for item in answer.get('hosts', ()):
            if item.get('problem'):
                said = f'{item.get("name")}: {item["problem"]}'
                LOG.warning('%s', plain.line(said))
        told = (item.get('warning') for item in answer.get('hosts', ()))
        for text in dict.fromkeys(told):
            if text:
                LOG.warning('%s', plain.line(text))
        return table(self.columns, answer.get('hosts', ()))


def table(
    columns: Sequence[tuple[str, str]],
    items: Sequence[Mapping[str, Any]],
    forms: Mapping[str, Any] | None = None,
) -> Table:
    """Arrange things as a table.

    :param columns: titles and keys.
    :param forms: classes of columns, by key.
    """
    titles = [title for title, _ in columns]
    return titles, [
        tuple(formed(item.get(key), key, forms or {}) for _, key in columns)
        for item in items
    ]


def fields(found: Mapping[str, Any], forms: Mapping[str, Any]) -> Fields:
    """Keys of one thing, and their values as they are shown.

    :param forms: classes of values, by key.
    """
    return tuple(found), tuple(
        formed(value, key, forms) for key, value in found.items()
    )


def formed(value: Any, key: str, forms: Mapping[str, Any]) -> Any:
    """Form of a value in a table."""
    return forms[key](value) if key in forms else value


def add_whom(parser: argparse.ArgumentParser) -> None:
    """Take a host or all of them, as an argument."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument(
        'host', nargs='?', metavar='<host>', help='Name of the host'
    )
    group.add_argument(
        '--all', action='store_true', help='Every host of the domain'
    )


def whom(parsed_args: argparse.Namespace) -> str:
    """Say what was given."""
    return ALL if parsed_args.all else str(parsed_args.host)


def add_page(parser: argparse.ArgumentParser, keys: Sequence[str]) -> None:
    """Take how a list is to be sorted and where it ends."""
    parser.add_argument(
        '--sort-key', choices=keys, help=f'Sort by this (default: {keys[0]})'
    )
    parser.add_argument(
        '--sort-dir', choices=('asc', 'desc'), help='Direction (default: asc)'
    )
    add_limit(parser)


def add_limit(parser: argparse.ArgumentParser) -> None:
    """Take how many entries, and where they begin."""
    parser.add_argument(
        '--limit', type=count, metavar='<count>', help='Most entries'
    )
    parser.add_argument(
        '--marker', metavar='<last>', help='Begin after this entry'
    )


def page(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Say what was given, as parameters of a list."""
    return {
        'limit': parsed_args.limit,
        'marker': parsed_args.marker,
        'sort_key': parsed_args.sort_key,
        'sort_dir': parsed_args.sort_dir,
    }


def count(text: str) -> int:
    """Read how many at most."""
    most = int(text)
    if most < 1:
        raise argparse.ArgumentTypeError(f'expected 1 or more, got {text}')
    return most
