# SPDX-License-Identifier: Apache-2.0

"""Commands for hosts that move between batch system and cloud."""

import argparse
from typing import Any

from nova_fairness.client import base
from nova_fairness.client import columns

_FORMS = {
    'cores': columns.Number,
    'states': columns.Numbers,
    'batch': columns.ObjectTree,
    'cloud': columns.ObjectTree,
    'groups': columns.ObjectTree,
    'faults': columns.Sentences,
    'work': columns.ObjectTree,
    'history': columns.ObjectTree,
}

_LISTED = {
    'explanation': columns.Text,
    'since': columns.Moment,
    'until': columns.Moment,
}

_DEMAND = 'demand'


def _add_host(parser: argparse.ArgumentParser, **more: Any) -> None:
    parser.add_argument(
        'host',
        metavar='<host>',
        help='name of the host, as in "openstack fairness partition list"',
        **more,
    )


class ListPartition(base.ThingLister):
    """List hosts that move between batch system and cloud"""

    columns = (
        ('Host', 'name'),
        ('State', 'state'),
        ('Bound For', 'bound_for'),
        ('Since', 'since'),
        ('Until', 'until'),
        ('Why', 'explanation'),
    )
    long_columns = (('Cause', 'cause'), ('Fixed', 'fixed'))

    def get_parser(self, prog_name: str) -> Any:
        """Add the options for the range of the list."""
        parser = super().get_parser(prog_name)
        base.add_range_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Read the hosts and return them as a table."""
        found = self.read_list(parsed_args, self.api.border_hosts)
        return base.table(self.chosen_columns(parsed_args), found, _LISTED)


class ShowPartition(base.ShowOne):
    """Show supply and demand of batch system and cloud, or one host"""

    def get_parser(self, prog_name: str) -> Any:
        """Add the optional host."""
        parser = super().get_parser(prog_name)
        _add_host(parser, nargs='?')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Read the partition or the host and return its fields."""
        host = parsed_args.host
        found = (
            self.api.get_border()
            if host is None
            else self.api.get_border_host(host).answer
        )
        return base.format_fields(found, _FORMS)


class MovePartition(base.ShowOne):
    """Move a host from the batch system to the cloud, or back"""

    action = 'move'

    def get_parser(self, prog_name: str) -> Any:
        """Add the hosts."""
        parser = super().get_parser(prog_name)
        _add_host(parser, nargs='+')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Run the action on each host."""
        return self.run_for_each(
            parsed_args.host,
            lambda host: self.api.act_on_border_host(host, self.action).answer,
            lambda _: _FORMS,
        )


class CancelPartition(MovePartition):
    """Cancel the move of a host"""

    action = 'cancel'


class TargetPartition(base.ShowOne):
    """Set the number of hosts that the cloud is to have"""

    def get_parser(self, prog_name: str) -> Any:
        """Add the number of hosts, or the word for no fixed number."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'hosts',
            metavar='<hosts>',
            type=_target,
            help=f'number of hosts, or {_DEMAND}: calendar and demand decide',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Set the target and return it."""
        found = self.api.set_border_target(parsed_args.hosts)
        return base.format_fields(found, _FORMS)


def _target(text: str) -> int | None:
    if text == _DEMAND:
        return None
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(
            f'expected a number of hosts, or {_DEMAND}, got {text!r}'
        )
    return int(text)
