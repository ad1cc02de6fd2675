# SPDX-License-Identifier: Apache-2.0

"""Base classes of the commands."""

import argparse
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import itertools
import logging
from typing import Any

from openstack import exceptions as sdk_exceptions
from osc_lib import exceptions
from osc_lib.command import command

from nova_fairness import exception
from nova_fairness.client import columns as columns_module
from nova_fairness.client import directory as directory_module
from nova_fairness.client import http
from nova_fairness.client import naming
from nova_fairness.client import resources
from nova_fairness.model import plain

LOG = logging.getLogger(__name__)

INCOMPLETE = 1
"""Exit code if some hosts did not answer, or refused."""

_DIRECTIONS = ('asc', 'desc')

_PAGE = ('limit', 'marker')

_TEXTS = ('advice', 'explanation', 'fault', 'status', 'summary')
"""Texts of answers that may name servers, projects and users by their IDs."""

ALL = 'all'
"""Every host of the domain."""

_NO_COLUMN = 'No recognized column names'

TABLE = 'table'
"""The form of answers for people."""

PLAIN = 'value'
"""The form of answers without anything but the values."""

ESCAPING = frozenset({'json', 'yaml'})
"""Forms for programs, which write by themselves what cannot be printed as
escape sequences."""

Table = tuple[Sequence[str], list[tuple[Any, ...]]]
Fields = tuple[tuple[str, ...], tuple[Any, ...]]
"""Keys of one thing, and their values."""


class _Reader(command.Command):
    """Reads answers, which may be of another release than the client.

    :ivar is_complete: whether all that was asked for was done or found.
    :ivar is_list: whether names may stand in place of ids to save room.
    """

    is_complete = True
    is_list = False

    @property
    def api(self) -> http.FairnessApi:
        """The interface that answers; the manager has it by its name."""
        manager: Any = self.app.client_manager
        made: http.FairnessApi = manager.fairness
        return made

    @property
    def directory(self) -> directory_module.Directory:
        """Names and ids of what Nova and Keystone have."""
        return directory_module.Directory(self.app.client_manager)

    def names(
        self, parsed_args: argparse.Namespace, *plurals: str
    ) -> Mapping[str, str]:
        """Names by id for a table; none for programs, which read ids.

        :param plurals: of :meth:`.Directory.names`.
        """
        is_table = parsed_args.formatter == TABLE
        return self.directory.names(plurals) if is_table else {}

    def named(
        self,
        parsed_args: argparse.Namespace,
        *plurals: str,
        known: Mapping[str, str] | None = None,
    ) -> functools.partial[columns_module.Named]:
        """Class of values that are ids, with their names in a table.

        :param plurals: of :meth:`.Directory.names`.
        :param known: names by id, for ids that are in none of these lists.
        """
        return functools.partial(
            columns_module.Named,
            names={**(known or {}), **self.names(parsed_args, *plurals)},
            is_short=self.is_list and not getattr(parsed_args, 'long', True),
        )

    def named_forms(
        self,
        parsed_args: argparse.Namespace,
        forms: Mapping[str, Callable[[Any], Any]],
        keys: Sequence[str],
        *plurals: str,
        known: Mapping[str, str] | None = None,
    ) -> dict[str, Callable[[Any], Any]]:
        """Forms with those of ids, and of texts that may name some.

        :param forms: of the other values, and of texts.
        :param keys: of the ids.
        :param plurals: of :meth:`.Directory.names`.
        :param known: as of :meth:`named`.
        """
        whose = self.named(parsed_args, *plurals, known=known)
        names = whose.keywords['names']
        texts = {
            key: functools.partial(
                _named_text, forms.get(key, columns_module.Text), names.get
            )
            for key in (_TEXTS if names else ())
        }
        return {**forms, **texts, **dict.fromkeys(keys, whose)}

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; give its exit code.

        :raises CommandError: if the answer has another form than it should.
        """
        try:
            code = super().run(parsed_args)
        except exception.UNREADABLE as error:
            if _NO_COLUMN in str(error):
                # Of cliff, once all is done.
                told = str(error).rstrip('.')
                raise exceptions.CommandError(
                    f'{told}; only the output is missing'
                ) from error
            raise exceptions.CommandError(
                'the answer of nova-api cannot be understood:'
                f' {type(error).__name__}; use the client of its release'
            ) from error
        return code or (0 if self.is_complete else INCOMPLETE)


def _named_text(
    form: Callable[[Any], Any], find: naming.Find, value: Any
) -> Any:
    """A text, or a list of texts, with names in place of known ids."""
    if isinstance(value, list):
        return form([naming.sentence(str(each), find) for each in value])
    return form(value and naming.sentence(str(value), find))


class Lister(_Reader, command.Lister):
    """Makes a table, and fails if hosts are missing in it."""

    is_list = True

    def produce_output(
        self, parsed_args: Any, column_names: Any, data: Any
    ) -> Any:
        """Write it; plain text where that was asked for."""
        if parsed_args.formatter not in ESCAPING:
            data = [tuple(map(columns_module.safe, row)) for row in data]
        if parsed_args.formatter == PLAIN:
            data = [tuple(map(columns_module.plain_line, row)) for row in data]
        if parsed_args.formatter == TABLE:
            data = [tuple(map(columns_module.cell, row)) for row in data]
            data = columns_module.fitted(column_names, data)
        return super().produce_output(parsed_args, column_names, data)

    def miss(self, what: str, hosts: Mapping[str, str]) -> None:
        """Say on standard error which hosts are missing."""
        for host, reason in hosts.items():
            LOG.error('%s', plain.line(f'{host} {what}: {reason}'))
            self.is_complete = False


class ThingLister(Lister):
    """Lists things: the columns that fit a terminal, or all of them.

    :ivar not_reached: why hosts are missing in the list, by host.
    """

    not_reached: Mapping[str, str] = {}

    columns: tuple[tuple[str, str], ...] = ()
    """Titles and keys."""

    more: tuple[tuple[str, str], ...] = ()
    """Those that are shown on demand, and to programs."""

    def get_parser(self, prog_name: str) -> Any:
        """Take whether all columns are shown."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--long',
            action='store_true',
            help='Show all columns, and ids beside names',
        )
        return parser

    def listed(
        self,
        parsed_args: argparse.Namespace,
        find: Callable[..., resources.PagedList[Any]],
        *names: str,
        **more: Any,
    ) -> list[resources.Answer]:
        """As many things as were asked for; hosts that are missing are said.

        :param find: method of the interface that lists them.
        :param names: arguments that are parameters of it, beside those of
            every list.
        :param more: its other parameters; those that are empty are left out.
        """
        given = {name: getattr(parsed_args, name) for name in (*_PAGE, *names)}
        given |= more
        found = find(**{key: each for key, each in given.items() if each})
        things = list(itertools.islice(found.answers, parsed_args.limit))
        self.not_reached = found.not_reached
        self.miss('was not reached', found.not_reached)
        self.is_complete = self.is_complete and not found.partial
        return things

    def shown(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, str], ...]:
        """Columns that were asked for."""
        is_all = (
            parsed_args.long
            or parsed_args.columns
            or parsed_args.formatter != TABLE
        )
        return self.columns + (self.more if is_all else ())


class ShowOne(_Reader, command.ShowOne):
    """Shows one thing, or the outcome for several."""

    def of_each(
        self,
        names: Sequence[str],
        do: Callable[[str], Mapping[str, Any]],
        forms: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    ) -> Fields:
        """Do something with each thing that was named.

        One is shown with all its fields. Of several each is a field; those
        that fail are said on standard error, and the others are done.

        :param do: is given a name; gives the thing as it is then.
        :param forms: is given a thing; gives classes of its values, by key.
        """
        if len(names) == 1:
            found = do(names[0])
            return fields(found, forms(found))
        done: dict[str, Any] = {}
        for name in names:
            try:
                done[name] = columns_module.Outcome(dict(do(name)))
            except exceptions.CommandError as error:
                LOG.error('%s', plain.line(f'{name}: {error}'))
                self.is_complete = False
        return tuple(done), tuple(done.values())

    def produce_output(
        self, parsed_args: Any, column_names: Any, data: Any
    ) -> Any:
        """Write it; plain text where that was asked for."""
        if parsed_args.formatter not in ESCAPING:
            column_names = tuple(map(columns_module.safe, column_names))
            data = tuple(map(columns_module.safe, data))
        if parsed_args.formatter == PLAIN:
            data = tuple(map(columns_module.plain, data))
        if parsed_args.formatter == TABLE:
            data = tuple(map(columns_module.cell, data))
            data = columns_module.wrapped(column_names, data)
        return super().produce_output(parsed_args, column_names, data)


class HostCommand(Lister):
    """Lets a host, or all, do something, and lists those that do it."""

    columns: tuple[tuple[str, str], ...] = ()
    """Titles and keys of what a host answers."""

    def act(self, host: str, action: str, argument: Any = None) -> Table:
        """Do it.

        :param host: its name or :data:`ALL`.
        """
        return table(self.columns, self._done(host, action, argument))

    def act_on_each(
        self, hosts: Sequence[str], action: str, argument: Any = None
    ) -> Table:
        """Let several do it, one after the other.

        A host that fails is said on standard error.

        :raises CommandError: if all fail.
        """
        done: list[Any] = []
        for host in hosts:
            try:
                done += self._done(host, action, argument)
            except exceptions.CommandError as error:
                if len(hosts) == 1:
                    raise
                self.miss('did not do it', {host: str(error)})
        return table(self.columns, done)

    def _done(
        self, host: str, action: str, argument: Any
    ) -> Sequence[Mapping[str, Any]]:
        """Answers of the hosts that were reached."""
        answer = self.api.act_on_host(host, action, argument)
        away, refused = answer.get('not_reached'), answer.get('refused')
        self.miss('was not reached', resources.reasons(away))
        self.miss('refused', resources.reasons(refused))
        for item in answer.get('hosts', ()):
            if item.get('problem'):
                said = f'{item.get("name")}: {item["problem"]}'
                LOG.warning('%s', plain.line(said))
        told = (item.get('warning') for item in answer.get('hosts', ()))
        for text in dict.fromkeys(told):
            if text:
                LOG.warning('%s', plain.line(text))
        return list(answer.get('hosts', ()))


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


def add_wait(parser: argparse.ArgumentParser, what: str) -> None:
    """Take whether to wait."""
    parser.add_argument('--wait', action='store_true', help=what)


def waited(wait: Callable[[], Any]) -> None:
    """Wait until something is in a state that was asked for.

    :raises CommandError: if it ended in another one.
    """
    try:
        wait()
    except sdk_exceptions.SDKException as error:
        raise exceptions.CommandError(plain.line(str(error))) from error


def add_whom(parser: argparse.ArgumentParser) -> None:
    """Take hosts or all of them, as arguments."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument(
        'hosts',
        nargs='*',
        default=[],
        metavar='<host>',
        help='Names of the hosts',
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
        '--sort',
        type=functools.partial(_sort, keys),
        metavar='<key>[:<direction>]',
        help=f'Sort by one of {", ".join(keys)}, asc or desc',
    )
    parser.add_argument(
        '--sort-key', choices=keys, help=f'Sort by this (default: {keys[0]})'
    )
    parser.add_argument(
        '--sort-dir', choices=_DIRECTIONS, help='Direction (default: asc)'
    )
    add_limit(parser)


def _sort(keys: Sequence[str], text: str) -> tuple[str, str]:
    """Read a key and a direction, as ``name:desc``."""
    key, _, direction = text.partition(':')
    direction = direction or 'asc'
    if key not in keys or direction not in _DIRECTIONS:
        raise argparse.ArgumentTypeError(
            f'expected one of {", ".join(keys)}, with :asc or :desc, got'
            f' {text!r}'
        )
    return key, direction


def add_limit(parser: argparse.ArgumentParser) -> None:
    """Take how many entries, and where they begin."""
    parser.add_argument(
        '--limit',
        type=count,
        metavar='<count>',
        help='Largest number of entries',
    )
    parser.add_argument(
        '--marker', metavar='<last>', help='Begin after this entry'
    )


def order(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Say how a list is to be sorted, as parameters of it."""
    key, direction = parsed_args.sort or (None, None)
    return {
        'sort_key': key or parsed_args.sort_key,
        'sort_dir': direction or parsed_args.sort_dir,
    }


def count(text: str) -> int:
    """Read how many at most."""
    most = int(text)
    if most < 1:
        raise argparse.ArgumentTypeError(f'expected 1 or more, got {text}')
    return most
