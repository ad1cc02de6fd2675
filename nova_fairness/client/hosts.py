# SPDX-License-Identifier: Apache-2.0

"""Commands for hosts: state of their agents, pause, resume and reset."""

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
    """List hosts with an agent, and the state of each agent"""

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
    long_columns = (
        ('Epoch', 'epoch'),
        ('Peers', 'peers_count'),
        ('Left Out', 'left_out_count'),
        ('Round', 'round'),
        ('Refused', 'refused'),
    )

    def get_parser(self, prog_name: str) -> Any:
        """Add the options for sorting and for the range of the list."""
        parser = super().get_parser(prog_name)
        base.add_sort_options(parser, _SORT_KEYS)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Query the agents of all hosts and return a table."""
        order = base.sort_parameters(parsed_args)
        found = self.read_list(parsed_args, self.api.hosts, **order)
        forms = dict.fromkeys(('duration_s', 'age_s'), columns.Number)
        rows = [{**item, 'state': 'up'} for item in found]
        rows += [
            {'name': name, 'state': 'down'}
            for name in sorted(self.not_reached)
        ]
        return base.table(self.chosen_columns(parsed_args), rows, forms)


class ShowHost(base.ShowOne):
    """Show the state of the agent of a host"""

    def get_parser(self, prog_name: str) -> Any:
        """Add the name of the host."""
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>', help='Name of the host')
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """Query the agent of the host and return its fields."""
        found = self.api.get_host(parsed_args.host).answer
        return tuple(found), tuple(map(_format_detail, found.values()))


def _format_detail(value: Any) -> Any:
    if isinstance(value, dict | list):
        return columns.ObjectTree(value)
    return columns.Number(value) if isinstance(value, float) else value


class PreviewHost(base.ThingLister):
    """Show CPU time that users would gain or lose if a host enforced weights

    Numbers are means of the last five minutes. A change that is smaller than
    its spread is noise.
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
        """Add the host, the metric and the choice of servers."""
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>', help='Name of the host')
        parser.add_argument(
            '--metric',
            metavar='<metric>',
            help='Show the preview for this metric only',
        )
        parser.add_argument(
            '--servers',
            action='store_true',
            help='Show servers instead of their owners',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Query the preview of the host and return a table."""
        found = self.api.get_preview(parsed_args.host)
        chosen = [
            each
            for each in found.get('metrics') or ()
            if parsed_args.metric in (None, each.get('metric'))
        ]
        self._warn(found, chosen)
        self.columns, key, rows = (
            (self._servers, 'uuid', _server_rows(chosen))
            if parsed_args.servers
            else (self._users, 'id', _user_rows(chosen))
        )
        self.long_columns = (('ID', key),)
        shown = self.chosen_columns(parsed_args)
        keys = (*(key for _, key in self._amounts), 'weight_ratio')
        return base.table(shown, rows, dict.fromkeys(keys, columns.Number))

    def _warn(
        self, found: Mapping[str, Any], chosen: Sequence[Mapping[str, Any]]
    ) -> None:
        if not chosen and found.get('metrics'):
            names = ', '.join(
                str(each.get('metric')) for each in found.get('metrics') or ()
            )
            raise exceptions.CommandError(
                plain.line(
                    f'host {found.get("name")}: metric not found; choose one'
                    f' of: {names}'
                )
            )
        if found.get('enforced'):
            LOG.warning(
                'Host already enforces weights; the preview shows the present'
                ' state.'
            )
        if found.get('not_foreseen'):
            LOG.warning(
                'Servers also compete for resources that the preview does not'
                ' include: %s',
                plain.line(', '.join(found['not_foreseen'])),
            )
        for each in chosen:
            name = str(each.get('metric'))
            if each.get('problem'):
                self.log_missing('has no preview', {name: each['problem']})
            elif not each.get('settled', True):
                LOG.warning(
                    'Metric %s: the weights never become constant; the'
                    ' preview is a mean',
                    plain.line(name),
                )


def _user_rows(chosen: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [
        {'metric': metric.get('metric'), 'id': name, **gains}
        for metric in chosen
        for name, gains in (metric.get('users') or {}).items()
    ]


def _server_rows(chosen: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [
        {'metric': metric.get('metric'), **vm}
        for metric in chosen
        for vm in metric.get('instances') or ()
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
        """Add the hosts."""
        parser = super().get_parser(prog_name)
        base.add_hosts_argument(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Run the action on each host and return a table."""
        hosts = [base.ALL] if parsed_args.all else parsed_args.hosts
        return self.act_on_each(hosts, self.action)


class PauseHost(_Pause):
    """Restore all controls of a host, and stop changing them"""

    action = 'pause'


class ResumeHost(_Pause):
    """Let a paused host change weights again"""

    action = 'resume'


class ResetHost(_Pause):
    """Set all weights of a host to neutral and start again"""

    action = 'reset'
    columns = (('Host', 'name'), ('From Round', 'from_round'))
