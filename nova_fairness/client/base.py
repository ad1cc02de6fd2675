# SPDX-License-Identifier: Apache-2.0

"""Base classes of the commands ``openstack fairness``."""

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
"""Exit code if some hosts did not answer, or refused the action."""

_DIRECTIONS = ('asc', 'desc')

_PAGE = ('limit', 'marker')

_TEXTS = ('advice', 'explanation', 'fault', 'status', 'summary')
"""Fields with texts that may contain IDs of servers, projects and users."""

ALL = 'all'
"""Name that stands for all hosts of the domain."""

_NO_COLUMN = 'No recognized column names'

TABLE = 'table'
"""Output format for people: a table."""

PLAIN = 'value'
"""Output format that contains only the values."""

ESCAPING = frozenset({'json', 'yaml'})
"""Output formats for programs, which escape unprintable characters themselves.
"""

Table = tuple[Sequence[str], list[tuple[Any, ...]]]
Fields = tuple[tuple[str, ...], tuple[Any, ...]]
"""Keys of one object, and their formatted values."""


class _ApiCommand(command.Command):
    """Base class of commands that read answers of the API.

    Answers may come from another release than the client.

    :ivar is_complete: whether every requested object was found or changed.
    :ivar is_list: whether a table shows names without IDs to save space.
    """

    is_complete = True
    is_list = False

    @property
    def api(self) -> http.FairnessApi:
        """Return the client of the fairness API of the client manager."""
        manager: Any = self.app.client_manager
        made: http.FairnessApi = manager.fairness
        return made

    @property
    def directory(self) -> directory_module.Directory:
        """Return the directory of names and IDs in Nova and Keystone."""
        return directory_module.Directory(self.app.client_manager)

    def names_by_id(
        self, parsed_args: argparse.Namespace, *plurals: str
    ) -> Mapping[str, str]:
        """Return names by ID for a table. Other formats show IDs, so there the
        mapping is empty.

        :param plurals: kinds of objects, as of :meth:`.Directory.names`.
        """
        is_table = parsed_args.formatter == TABLE
        return self.directory.names(plurals) if is_table else {}

    def id_format(
        self,
        parsed_args: argparse.Namespace,
        *plurals: str,
        known: Mapping[str, str] | None = None,
    ) -> functools.partial[columns_module.Named]:
        """Return the format of IDs, which shows their names in a table.

        :param plurals: kinds of objects, as of :meth:`.Directory.names`.
        :param known: names by ID of further objects.
        """
        return functools.partial(
            columns_module.Named,
            names={**(known or {}), **self.names_by_id(parsed_args, *plurals)},
            is_short=self.is_list and not getattr(parsed_args, 'long', True),
        )

    def formats_with_names(
        self,
        parsed_args: argparse.Namespace,
        forms: Mapping[str, Callable[[Any], Any]],
        keys: Sequence[str],
        *plurals: str,
        known: Mapping[str, str] | None = None,
    ) -> dict[str, Callable[[Any], Any]]:
        """Return formats by key, including those for IDs and for texts with
        IDs.

        :param forms: formats of the other values and of texts, by key.
        :param keys: keys of the IDs.
        :param plurals: kinds of objects, as of :meth:`.Directory.names`.
        :param known: names by ID of further objects.
        """
        id_format = self.id_format(parsed_args, *plurals, known=known)
        names = id_format.keywords['names']
        texts = {
            key: functools.partial(
                _named_text, forms.get(key, columns_module.Text), names.get
            )
            for key in (_TEXTS if names else ())
        }
        return {**forms, **texts, **dict.fromkeys(keys, id_format)}

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command and return its exit code.

        :raises CommandError: if the answer has an unexpected form.
        """
        try:
            code = super().run(parsed_args)
        except exception.UNREADABLE as error:
            if _NO_COLUMN in str(error):
                # cliff raises it after the command has been executed.
                cause = str(error).rstrip('.')
                raise exceptions.CommandError(
                    f'{cause}; the command was executed, only its output is'
                    ' missing'
                ) from error
            raise exceptions.CommandError(
                'the answer of nova-api cannot be parsed:'
                f' {type(error).__name__}; use the client of the same release'
                ' as nova-api'
            ) from error
        return code or (0 if self.is_complete else INCOMPLETE)


def _named_text(
    form: Callable[[Any], Any], find: naming.Find, value: Any
) -> Any:
    """Format a text, or a list of texts, with names in place of known IDs."""
    if isinstance(value, list):
        return form([naming.sentence(str(each), find) for each in value])
    return form(value and naming.sentence(str(value), find))


class Lister(_ApiCommand, command.Lister):
    """Base class of commands that print a table, and fail if hosts are missing
    in it.
    """

    is_list = True

    def produce_output(
        self, parsed_args: Any, column_names: Any, data: Any
    ) -> Any:
        """Write the table in the requested format."""
        if parsed_args.formatter not in ESCAPING:
            data = [tuple(map(columns_module.safe, row)) for row in data]
        if parsed_args.formatter == PLAIN:
            data = [tuple(map(columns_module.plain_line, row)) for row in data]
        if parsed_args.formatter == TABLE:
            data = [tuple(map(columns_module.cell, row)) for row in data]
            data = columns_module.fit_to_width(column_names, data)
        return super().produce_output(parsed_args, column_names, data)

    def log_missing(self, what: str, hosts: Mapping[str, str]) -> None:
        """Log the hosts that are missing in the answer, each with the reason.

        :param what: what happened to the hosts, such as ``was not reached``.
        """
        for host, reason in hosts.items():
            LOG.error('%s', plain.line(f'{host} {what}: {reason}'))
            self.is_complete = False


class ThingLister(Lister):
    """Base class of lists of objects, with few columns or with all columns.

    :ivar not_reached: reason by host, for hosts that did not answer.
    """

    not_reached: Mapping[str, str] = {}

    columns: tuple[tuple[str, str], ...] = ()
    """Titles and keys of the columns that fit a terminal."""

    long_columns: tuple[tuple[str, str], ...] = ()
    """Titles and keys of the columns that only ``--long`` and formats for
    programs show.
    """

    def get_parser(self, prog_name: str) -> Any:
        """Add the option for all columns."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--long',
            action='store_true',
            help='Show all columns, and IDs in addition to names',
        )
        return parser

    def read_list(
        self,
        parsed_args: argparse.Namespace,
        find: Callable[..., resources.PagedList[Any]],
        *names: str,
        **parameters: Any,
    ) -> list[resources.Answer]:
        """Read the requested number of objects, and log hosts that are
        missing.

        :param find: method of the API that lists the objects.
        :param names: arguments of the command that are parameters of the
            method, besides those of every list.
        :param parameters: further parameters; empty ones are omitted.
        """
        given = {name: getattr(parsed_args, name) for name in (*_PAGE, *names)}
        given |= parameters
        found = find(**{key: each for key, each in given.items() if each})
        things = list(itertools.islice(found.answers, parsed_args.limit))
        self.not_reached = found.not_reached
        self.log_missing('was not reached', found.not_reached)
        self.is_complete = self.is_complete and not found.partial
        return things

    def chosen_columns(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, str], ...]:
        """Return the titles and keys of the columns to show."""
        is_all = (
            parsed_args.long
            or parsed_args.columns
            or parsed_args.formatter != TABLE
        )
        return self.columns + (self.long_columns if is_all else ())


class ShowOne(_ApiCommand, command.ShowOne):
    """Base class of commands that show one object, or the outcome for
    several.
    """

    def run_for_each(
        self,
        names: Sequence[str],
        do: Callable[[str], Mapping[str, Any]],
        forms: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    ) -> Fields:
        """Run an action for each named object.

        The result for one object has all its fields. The result for several
        has one field per object. An object whose action fails is logged, and
        the remaining actions are still run.

        :param do: action; gets a name and returns the fields of the object
            after the action.
        :param forms: gets the fields of an object and returns formats by key.
        """
        if len(names) == 1:
            found = do(names[0])
            return format_fields(found, forms(found))
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
        """Write the fields in the requested format."""
        if parsed_args.formatter not in ESCAPING:
            column_names = tuple(map(columns_module.safe, column_names))
            data = tuple(map(columns_module.safe, data))
        if parsed_args.formatter == PLAIN:
            data = tuple(map(columns_module.plain, data))
        if parsed_args.formatter == TABLE:
            data = tuple(map(columns_module.cell, data))
            data = columns_module.wrap_cells(column_names, data)
        return super().produce_output(parsed_args, column_names, data)


class HostCommand(Lister):
    """Base class of actions on one host, several hosts or all hosts."""

    columns: tuple[tuple[str, str], ...] = ()
    """Titles and keys of the fields in a host's answer."""

    def act(self, host: str, action: str, argument: Any = None) -> Table:
        """Run an action on one host or on all hosts.

        :param host: its name or :data:`ALL`.
        """
        return table(self.columns, self._done(host, action, argument))

    def act_on_each(
        self, hosts: Sequence[str], action: str, argument: Any = None
    ) -> Table:
        """Run an action on several hosts, one after the other.

        A failure of a host is logged.

        :raises CommandError: if the action fails on the only host.
        """
        done: list[Any] = []
        for host in hosts:
            try:
                done += self._done(host, action, argument)
            except exceptions.CommandError as error:
                if len(hosts) == 1:
                    raise
                self.log_missing('was not changed', {host: str(error)})
        return table(self.columns, done)

    def _done(
        self, host: str, action: str, argument: Any
    ) -> Sequence[Mapping[str, Any]]:
        """Run the action; log hosts without an answer, and return the other
        answers.
        """
        answer = self.api.act_on_host(host, action, argument)
        away, refused = answer.get('not_reached'), answer.get('refused')
        self.log_missing('was not reached', resources.reasons_by_host(away))
        self.log_missing('refused', resources.reasons_by_host(refused))
        for item in answer.get('hosts', ()):
            if item.get('problem'):
                text = f'{item.get("name")}: {item["problem"]}'
                LOG.warning('%s', plain.line(text))
        warnings = (item.get('warning') for item in answer.get('hosts', ()))
        for text in dict.fromkeys(warnings):
            if text:
                LOG.warning('%s', plain.line(text))
        return list(answer.get('hosts', ()))


def table(
    columns: Sequence[tuple[str, str]],
    items: Sequence[Mapping[str, Any]],
    forms: Mapping[str, Any] | None = None,
) -> Table:
    """Return the titles and the rows of a table of objects.

    :param columns: titles and keys.
    :param items: fields of each object.
    :param forms: formats of columns, by key.
    """
    titles = [title for title, _ in columns]
    return titles, [
        tuple(
            format_value(item.get(key), key, forms or {}) for _, key in columns
        )
        for item in items
    ]


def format_fields(
    found: Mapping[str, Any], forms: Mapping[str, Any]
) -> Fields:
    """Return the keys and the formatted values of one object.

    :param forms: formats of values, by key.
    """
    return tuple(found), tuple(
        format_value(value, key, forms) for key, value in found.items()
    )


def format_value(value: Any, key: str, forms: Mapping[str, Any]) -> Any:
    """Format a value by the format of its key, if the key has one."""
    return forms[key](value) if key in forms else value


def add_wait_option(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add the option that makes the command wait.

    :param help_text: help text of the option.
    """
    parser.add_argument('--wait', action='store_true', help=help_text)


def wait_for_state(wait: Callable[[], Any]) -> None:
    """Wait until an object has reached a requested state.

    :param wait: waits, and raises an SDKException if it fails.
    :raises CommandError: if the object ended in another state.
    """
    try:
        wait()
    except sdk_exceptions.SDKException as error:
        raise exceptions.CommandError(plain.line(str(error))) from error


def add_hosts_argument(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for several hosts or all hosts."""
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


def host_or_all(parsed_args: argparse.Namespace) -> str:
    """Return the name of the host, or the name for all hosts."""
    return ALL if parsed_args.all else str(parsed_args.host)


def add_sort_options(
    parser: argparse.ArgumentParser, keys: Sequence[str]
) -> None:
    """Add the options for sorting and for the range of a list.

    :param keys: keys by which the list can be sorted, the default first.
    """
    parser.add_argument(
        '--sort',
        type=functools.partial(_sort, keys),
        metavar='<key>[:<direction>]',
        help=f'Sort by one of {", ".join(keys)}, asc or desc',
    )
    parser.add_argument(
        '--sort-key',
        choices=keys,
        help=f'Key by which the list is sorted (default: {keys[0]})',
    )
    parser.add_argument(
        '--sort-dir',
        choices=_DIRECTIONS,
        help='Direction of sorting (default: asc)',
    )
    add_range_options(parser)


def _sort(keys: Sequence[str], text: str) -> tuple[str, str]:
    """Parse a key and a direction, such as ``name:desc``."""
    key, _, direction = text.partition(':')
    direction = direction or 'asc'
    if key not in keys or direction not in _DIRECTIONS:
        raise argparse.ArgumentTypeError(
            f'expected one of {", ".join(keys)}, with :asc or :desc, got'
            f' {text!r}'
        )
    return key, direction


def add_range_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the number of entries and the first entry."""
    parser.add_argument(
        '--limit',
        type=positive_count,
        metavar='<count>',
        help='Largest number of entries',
    )
    parser.add_argument(
        '--marker',
        metavar='<last>',
        help='List the entries after this one, the last of the previous page',
    )


def sort_parameters(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the API that sort a list."""
    key, direction = parsed_args.sort or (None, None)
    return {
        'sort_key': key or parsed_args.sort_key,
        'sort_dir': direction or parsed_args.sort_dir,
    }


def positive_count(text: str) -> int:
    """Parse a number of at least 1.

    :raises ArgumentTypeError: if it is smaller.
    """
    most = int(text)
    if most < 1:
        raise argparse.ArgumentTypeError(f'expected 1 or more, got {text}')
    return most
