# SPDX-License-Identifier: Apache-2.0

"""Reader of the file that lists hosts between batch system and cloud, and
the calendar of their number.
"""

from collections.abc import Mapping
import dataclasses
import pathlib
import re

import yaml

from nova_fairness import exception
from nova_fairness.cluster.accounts import fields
from nova_fairness.model import border
from nova_fairness.model import duration
from nova_fairness.model import pledge
from nova_fairness.model import wording
from nova_fairness.planners.border import calendars
from nova_fairness.runtime import watched_file
from nova_fairness.runtime import yaml_file

MOST = 10_000
"""Largest number of hosts, and of entries of each other list."""

_HOST = ('name', 'batch', 'cloud', 'cores', 'fixed')
_WINDOW = ('begins', 'lasts', 'zone', 'hosts')
_GROUP = ('account', 'batch')
_WORDS = {'true': True, 'false': False}
_LARGEST_CORES = 1e6
_HOSTS = re.compile('[0-9]{1,6}')
_NAME = re.compile('[A-Za-z0-9:][A-Za-z0-9._:-]*')


@dataclasses.dataclass(frozen=True, slots=True)
class BorderFile:
    """Content of the file of hosts.

    :ivar hosts: hosts that are known to both batch system and cloud.
    :ivar windows: times at which the cloud has a fixed number of hosts.
    :ivar groups: groups with one pledge for batch system and cloud.
    """

    hosts: tuple[border.SharedHost, ...]
    windows: tuple[calendars.CalendarWindow, ...] = ()
    groups: tuple[pledge.PledgeGroup, ...] = ()


def open_watched_file(
    path: pathlib.Path,
) -> watched_file.WatchedFile[BorderFile]:
    """Read a file, and read it again whenever it changes.

    :param path: path of the file.
    :raises BadPartition: if the file is invalid or cannot be read.
    """
    made = watched_file.WatchedFile(
        path,
        read,
        BorderFile(()),
        (exception.BadPartition,),
        'hosts stay as they were described',
        lambda found: (
            f'{path} names {wording.counted(len(found.hosts), "host")} now'
        ),
    )
    made.load()
    return made


def read(path: pathlib.Path) -> BorderFile:
    """Read hosts, calendar windows and groups from a file.

    :param path: path of a YAML file. It contains a list ``hosts``, each with
        ``name``, ``cores`` and, if these differ from the name, ``batch`` and
        ``cloud``; and ``fixed``. A list ``windows``, each with ``begins``,
        ``lasts``, ``hosts`` and ``zone``, may follow, and a list ``groups``,
        each with ``account`` and, if that differs from the account, ``batch``.
    :raises BadPartition: if the file is invalid; the error contains the fault
        and the number of the line.
    """
    file = yaml_file.YamlFile(path, exception.BadPartition)
    root = file.read_root()
    given = file.parse_mapping(root, ('hosts', 'windows', 'groups'))
    listed = given.get('hosts')
    if not isinstance(listed, yaml.SequenceNode) or len(listed.value) > MOST:
        raise file.node_error(root, f'hosts must be a list, {MOST} at most')
    windows, groups = (
        _require_list(file, given, key) for key in ('windows', 'groups')
    )
    hosts = tuple(_parse_host(file, each) for each in listed.value)
    try:
        nodes = tuple(border.BorderHost(each) for each in hosts)
        border.Snapshot(nodes, None, None)
    except exception.BadPartition as error:
        raise file.file_error(str(error)) from None
    return BorderFile(
        hosts,
        tuple(_parse_window(file, each) for each in windows),
        _parse_groups(file, groups),
    )


def _require_list(
    file: yaml_file.YamlFile, given: Mapping[str, yaml.Node], key: str
) -> list[yaml.Node]:
    node = given.get(key)
    if node is None:
        return []
    if not isinstance(node, yaml.SequenceNode) or len(node.value) > MOST:
        raise file.node_error(node, f'{key} must be a list, {MOST} at most')
    found: list[yaml.Node] = node.value
    return found


def _parse_groups(
    file: yaml_file.YamlFile, nodes: list[yaml.Node]
) -> tuple[pledge.PledgeGroup, ...]:
    found: list[pledge.PledgeGroup] = []
    for node in nodes:
        parts = {
            key: file.parse_text(each)
            for key, each in file.parse_mapping(node, _GROUP).items()
        }
        if not parts.get('account'):
            raise file.node_error(node, 'a group must have an account')
        batch = parts.get('batch', parts['account'])
        if not _NAME.fullmatch(batch):
            raise file.node_error(
                node,
                'batch must be of letters, digits, dots, colons, dashes and'
                f' underscores, got {batch!r}',
            )
        for each in found:
            if parts['account'] == each.account or batch == each.batch:
                raise file.node_error(
                    node, f'account {each.account} stands for another group'
                )
        found.append(pledge.PledgeGroup(parts['account'], batch))
    return tuple(found)


def _parse_host(
    file: yaml_file.YamlFile, node: yaml.Node
) -> border.SharedHost:
    given = file.parse_mapping(node, _HOST)
    parts = {key: file.parse_text(each) for key, each in given.items()}
    if not {'name', 'cores'} <= parts.keys():
        raise file.node_error(node, 'a host must have name and cores')
    try:
        cores = float(parts['cores'])
    except ValueError:
        cores = 0.0
    if not 0 < cores <= _LARGEST_CORES:
        raise file.node_error(
            given['cores'],
            f'cores must be a number above 0, up to {_LARGEST_CORES:g}, got'
            f' {parts["cores"]!r}',
        )
    fixed = parts.get('fixed', 'false')
    if fixed not in _WORDS:
        raise file.node_error(
            given['fixed'], f'fixed must be true or false, got {fixed!r}'
        )
    name = parts['name']
    if not _NAME.fullmatch(name):
        raise file.node_error(
            given['name'],
            'name must be of letters, digits, dots, colons, dashes and'
            f' underscores, got {name!r}',
        )
    return border.SharedHost(
        name,
        parts.get('batch', name),
        parts.get('cloud', name),
        cores,
        _WORDS[fixed],
    )


def _parse_window(
    file: yaml_file.YamlFile, node: yaml.Node
) -> calendars.CalendarWindow:
    given = file.parse_mapping(node, _WINDOW)
    parts = {key: file.parse_text(each) for key, each in given.items()}
    if not {'begins', 'lasts', 'hosts'} <= parts.keys():
        raise file.node_error(
            node, 'a window must have begins, lasts and hosts'
        )
    if not _HOSTS.fullmatch(parts['hosts']):
        raise file.node_error(
            given['hosts'],
            f'hosts must be a whole number of at least 0, got'
            f' {parts["hosts"]!r:.40}',
        )
    try:
        found = fields.window(
            parts['begins'],
            duration.parse_seconds(parts['lasts']),
            parts.get('zone', 'UTC'),
        )
    except ValueError as error:
        raise file.node_error(node, str(error)) from None
    return calendars.CalendarWindow(
        found.begins, found.lasts_s, int(parts['hosts']), found.zone
    )
