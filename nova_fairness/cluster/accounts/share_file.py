# SPDX-License-Identifier: Apache-2.0

"""Reader of the file that defines accounts and their shares of the cloud."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import pathlib
import re
from typing import Any

import yaml

from nova_fairness import exception
from nova_fairness.cluster.accounts import fields
from nova_fairness.model import cluster
from nova_fairness.model import duration
from nova_fairness.model import wording
from nova_fairness.runtime import watched_file
from nova_fairness.runtime import yaml_file
from nova_fairness.shares import tree

MOST = 100_000
"""Largest number of accounts in the file."""


def _parse_number(text: str) -> float:
    try:
        # float() also accepts digits of other scripts, and underscores.
        return float(text if text.isascii() and '_' not in text else '')
    except ValueError:
        raise ValueError(f'expected a number, got {text!r:.40}') from None


_NUMBERS: Mapping[str, tuple[str, Callable[[str], float]]] = {
    'share': ('share', _parse_number),
    'budget': ('budget_hours', _parse_number),
    'funds': ('funds', _parse_number),
    'time_limit': ('time_limit_s', duration.parse_seconds),
    'longest_wait': ('longest_wait_s', duration.parse_seconds),
}
"""By key of the file: the field of the account, and the function that
parses its value.
"""
_NESTED = ('windows', *fields.AMOUNTS)
_KEYS = ('name', 'parent', *_NUMBERS, *_NESTED)
_AMOUNT = re.compile('[0-9]{1,15}', re.ASCII)
_WINDOW = ('begins', 'lasts', 'zone')


def open_watched_file(
    path: pathlib.Path,
) -> watched_file.WatchedFile[tuple[cluster.Account, ...]]:
    """Return the share tree of a file, which is read again whenever the file
    changes.

    :param path: path of the file.
    :raises BadShares: if the file is not valid.
    """
    made = watched_file.WatchedFile[tuple[cluster.Account, ...]](
        path,
        read,
        (),
        (exception.BadShares,),
        'shares_file is not used, shares stay as they are',
        lambda accounts: (
            f'shares_file {path} has'
            f' {wording.counted(len(accounts), "account")} now'
        ),
    )
    made.load()
    return made


def read(path: pathlib.Path) -> tuple[cluster.Account, ...]:
    """Read the share tree from a file.

    :param path: YAML file: a list ``accounts``, each with ``name`` and,
        optionally, ``parent``, ``share``, times, ``budget``, ``windows``, and
        amounts: ``ceiling``, ``nominal``, ``borrowing_limit`` and
        ``lending_limit``.
    :raises BadShares: if the file is invalid; the error contains the number of
        the line.
    """
    file = yaml_file.YamlFile(path, exception.BadShares)
    node = file.read_root()
    listed = file.parse_mapping(node, ('accounts',)).get('accounts')
    if not isinstance(listed, yaml.SequenceNode) or len(listed.value) > MOST:
        raise file.node_error(node, f'accounts must be a list, {MOST} at most')
    accounts = tuple(_parse_account(file, each) for each in listed.value)
    wrong = tree.tree_faults(accounts) or list(_misplaced_users(accounts))
    if wrong:
        # If a name is used twice, the second use is the error.
        lines = {
            each.name: node.start_mark.line + 1
            for each, node in zip(accounts, listed.value, strict=True)
        }
        said = [f'line {lines[each.account]}: {each.what}' for each in wrong]
        raise file.file_error('; '.join(said))
    return accounts


def _parse_account(
    file: yaml_file.YamlFile, node: yaml.Node
) -> cluster.Account:
    given = file.parse_mapping(node, _KEYS)
    windows = given.get('windows')
    parts = {
        key: file.parse_text(each)
        for key, each in given.items()
        if key not in _NESTED
    }
    if 'name' not in parts:
        raise file.node_error(node, 'an account must have a name')
    numbers: dict[str, float] = {}
    what = ''
    try:
        for what in _NUMBERS:
            if what in parts:
                field, read_as = _NUMBERS[what]
                numbers[field] = read_as(parts[what])
    except ValueError as error:
        raise file.node_error(
            node, f'{what} of account {parts["name"]!r}: {error}'
        ) from None
    amounts = {
        key: _parse_amounts(file, key, given[key])
        for key in fields.AMOUNTS
        if key in given
    }
    return cluster.Account(
        parts['name'],
        parts.get('parent'),
        windows=_parse_windows(file, windows) if windows else (),
        **dict[str, Any]({**amounts, **numbers}),
    )


def _parse_amounts(
    file: yaml_file.YamlFile, what: str, node: yaml.Node
) -> tuple[tuple[str, int], ...]:
    """Return whole amounts by resource class of Placement; each class may
    occur once.
    """
    found: dict[str, int] = {}
    if not isinstance(node, yaml.MappingNode) or not node.value:
        raise file.node_error(node, f'{what} must give classes amounts')
    for key, value in node.value:
        name, text = file.parse_text(key), file.parse_text(value)
        try:
            fields.resource_class(name)
        except ValueError as error:
            raise file.node_error(key, str(error)) from None
        if name in found:
            raise file.node_error(key, f'the class {name} comes twice')
        if not _AMOUNT.fullmatch(text):
            raise file.node_error(
                value, f'expected a whole amount of {name}, got {text!r}'
            )
        found[name] = int(text)
    return tuple(sorted(found.items()))


def _parse_windows(
    file: yaml_file.YamlFile, node: yaml.Node
) -> tuple[cluster.Window, ...]:
    if not isinstance(node, yaml.SequenceNode) or not node.value:
        raise file.node_error(node, 'windows must be a list of at least one')
    return tuple(_parse_window(file, each) for each in node.value)


def _parse_window(file: yaml_file.YamlFile, node: yaml.Node) -> cluster.Window:
    parts = {
        key: file.parse_text(each)
        for key, each in file.parse_mapping(node, _WINDOW).items()
    }
    if not {'begins', 'lasts'} <= parts.keys():
        raise file.node_error(node, 'a window must have begins and lasts')
    try:
        lasts_s = duration.parse_seconds(parts['lasts'])
    except ValueError as error:
        raise file.node_error(node, f'"lasts" of a window: {error}') from None
    try:
        return fields.window(
            parts['begins'], lasts_s, parts.get('zone', 'UTC')
        )
    except ValueError as error:
        raise file.node_error(node, str(error)) from None


def _misplaced_users(
    accounts: Sequence[cluster.Account],
) -> Iterator[tree.TreeFault]:
    """Yield a fault for each account of a user that is not below the project
    in its name.

    The use of such a user would be charged to other accounts.
    """
    parents = {each.name: each.parent for each in accounts}
    for each in accounts:
        project, slash, _ = each.name.partition('/')
        above = each.parent
        while slash and above not in (project, None):
            above = parents[above]
        if slash and above is None:
            yield tree.TreeFault(
                each.name,
                f'account {each.name!r} is that of a user of project'
                f' {project!r} and must be below it',
            )
