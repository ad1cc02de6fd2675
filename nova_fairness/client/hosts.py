# SPDX-License-Identifier: Apache-2.0

"""Hosts: how their agents are, and pausing them."""

import argparse
from collections.abc import Mapping
from collections.abc import Sequence
import logging
from typing import Any

from osc_lib import exceptions

from nova_fairness.client import base
from nova_fairness.client import columns
from nova_fairness.model import plain

LOG = logging.getLogger(__name__)

_SORT_KEYS = (
    'name',
    'metric',
    'policy',
    'paused',
    'instances_count',
    'duration_s',
)


class ListHost(base.ThingLister):
    """List hosts with an agent, and how they are"""

    columns = (
        ('Name', 'name'),
        ('State', 'state'),
        ('Metric', 'metric'),
        ('Policy', 'policy'),
        ('Paused', 'paused'),
        ('Enforce', 'enforce'),
        ('VMs', 'instances_count'),
        ('Users', 'users_count'),
        ('Duration (s)', 'duration_s'),
        ('Age (s)', 'age_s'),
    )
    more = (
        ('Epoch', 'epoch'),
        ('Peers', 'peers_count'),
        ('Left Out', 'left_out_count'),
        ('Round', 'round'),
        ('Refused', 'refused'),
    )

    def get_parser(self, prog_name: str) -> Any:
        """Take how to sort."""
        parser = super().get_parser(prog_name)
        base.add_page(parser, _SORT_KEYS)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask all hosts."""
        order = base.order(parsed_args)
        found = self.listed(parsed_args, self.api.hosts, **order)
        forms = dict.fromkeys(('duration_s', 'age_s'), columns.Number)
        rows = [{**item, 'state': 'up'} for item in found]
        rows += [
            {'name': name, 'state': 'down'}
            for name in sorted(self.not_reached)
        ]
        return base.table(self.shown(parsed_args), rows, forms)


class ShowHost(base.ShowOne):
    """Show how the agent of a host is"""

    def get_parser(self, prog_name: str) -> Any:
        """Take a host."""
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>', help='Name of the host')
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """Ask it."""
        found = self.api.get_host(parsed_args.host).answer
        return tuple(found), tuple(map(_formed, found.values()))


def _formed(value: Any) -> Any:
    if isinstance(value, dict | list):
        return columns.ObjectTree(value)
    return columns.Number(value) if isinstance(value, float) else value


class PreviewHost(base.ThingLister):
    """Show who would gain or lose how much if a host enforced

    Numbers are means of the last five minutes; a change that is below its
    spread is noise.
    """

    _amounts = (
        ('Gets (CPU)', 'gets_cpus'),
        ('Wants', 'wants_cpus'),
        ('Would Get', 'would_get_cpus'),
        ('Change', 'change_cpus'),
        ('Spread', 'change_spread_cpus'),
    )
    _users = (
        ('Metric', 'metric'),
        ('User', 'name'),
        ('VMs', 'instances_here_count'),
        *_amounts,
    )
    _servers = (
        ('Metric', 'metric'),
        ('Name', 'name'),
        ('User', 'user_name'),
        *_amounts,
        ('CPU Weight', 'weight_ratio'),
    )

    def get_parser(self, prog_name: str) -> Any:
        """Take a host, and of what."""
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>', help='Name of the host')
        parser.add_argument(
            '--metric', metavar='<metric>', help='This metric only'
        )
        parser.add_argument(
            '--servers',
            action='store_true',
            help='Show servers instead of their owners',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask it."""
        found = self.api.get_preview(parsed_args.host)
        chosen = [
            told
            for told in found.get('metrics') or ()
            if parsed_args.metric in (None, told.get('metric'))
        ]
        self._warn(found, chosen)
        self.columns, key, rows = (
            (self._servers, 'uuid', _server_rows(chosen))
            if parsed_args.servers
            else (self._users, 'id', _user_rows(chosen))
        )
        self.more = (('ID', key),)
        shown = self.shown(parsed_args)
        keys = (*(key for _, key in self._amounts), 'weight_ratio')
        return base.table(shown, rows, dict.fromkeys(keys, columns.Number))

    def _warn(
        self, found: Mapping[str, Any], chosen: Sequence[Mapping[str, Any]]
    ) -> None:
        if not chosen and found.get('metrics'):
            names = ', '.join(
                str(told.get('metric')) for told in found.get('metrics') or ()
            )
            raise exceptions.CommandError(
                plain.line(
                    f'no such metric on {found.get("name")}; installed:'
                    f' {names}'
                )
            )
        if found.get('enforced'):
            LOG.warning('This host enforces already: weights are at work.')
        if found.get('not_foreseen'):
            LOG.warning(
                'Servers compete for more, which is not foreseen: %s',
                plain.line(', '.join(found['not_foreseen'])),
            )
        for told in chosen:
            name = str(told.get('metric'))
            if told.get('problem'):
                self.miss('is not foreseen', {name: told['problem']})
            elif not told.get('settled', True):
                LOG.warning(
                    'With %s weights never stand still',
                    plain.line(name),
                )


def _user_rows(chosen: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [
        {'metric': told.get('metric'), 'id': name, **one}
        for told in chosen
        for name, one in (told.get('users') or {}).items()
    ]


def _server_rows(chosen: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [
        {'metric': told.get('metric'), **vm}
        for told in chosen
        for vm in told.get('instances') or ()
    ]


class _Pause(base.HostCommand):
    action = ''
    columns: tuple[tuple[str, str], ...] = (
        ('Host', 'name'),
        ('Paused', 'paused'),
        ('From Round', 'from_round'),
        ('Persistent', 'persistent'),
    )

    def get_parser(self, prog_name: str) -> Any:
        """Take hosts, or all."""
        parser = super().get_parser(prog_name)
        base.add_whom(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Do it."""
        hosts = [base.ALL] if parsed_args.all else parsed_args.hosts
        return self.act_on_each(hosts, self.action)


class PauseHost(_Pause):
    """Restore every control of a host, and leave it alone"""

    action = 'pause'


class ResumeHost(_Pause):
    """Let a paused host steer again"""

    action = 'resume'


class ResetHost(_Pause):
    """Begin again with neutral weights"""

    action = 'reset'
    columns = (('Host', 'name'), ('From Round', 'from_round'))
