# SPDX-License-Identifier: Apache-2.0

"""Hosts that move between batch and cloud."""

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
        help='name of the host; the list has it',
        **more,
    )


class ListPartition(base.ThingLister):
    """List hosts that move between batch and cloud"""

    columns = (
        ('Host', 'name'),
        ('State', 'state'),
        ('Bound For', 'bound_for'),
        ('Since', 'since'),
        ('Until', 'until'),
        ('Why', 'explanation'),
    )
    more = (('Cause', 'cause'), ('Fixed', 'fixed'))

    def get_parser(self, prog_name: str) -> Any:
        """Take how many."""
        parser = super().get_parser(prog_name)
        base.add_limit(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask for them."""
        found = self.listed(parsed_args, self.api.border_hosts)
        return base.table(self.shown(parsed_args), found, _LISTED)


class ShowPartition(base.ShowOne):
    """Show what batch and cloud have and want, or one host"""

    def get_parser(self, prog_name: str) -> Any:
        """Take a host, or none."""
        parser = super().get_parser(prog_name)
        _add_host(parser, nargs='?')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        host = parsed_args.host
        found = (
            self.api.get_border()
            if host is None
            else self.api.get_border_host(host).answer
        )
        return base.fields(found, _FORMS)


class MovePartition(base.ShowOne):
    """Send a host to the other side"""

    action = 'move'

    def get_parser(self, prog_name: str) -> Any:
        """Take hosts."""
        parser = super().get_parser(prog_name)
        _add_host(parser, nargs='+')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        return self.of_each(
            parsed_args.host,
            lambda host: self.api.act_on_border_host(host, self.action).answer,
            lambda _: _FORMS,
        )


class CancelPartition(MovePartition):
    """Let a host stay that is on its way"""

    action = 'cancel'


class TargetPartition(base.ShowOne):
    """Say how many hosts the cloud is to have"""

    def get_parser(self, prog_name: str) -> Any:
        """Take a number, or a word."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'hosts',
            metavar='<hosts>',
            type=_target,
            help=f'number of hosts, or {_DEMAND}: calendar and demand decide',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        found = self.api.set_border_target(parsed_args.hosts)
        return base.fields(found, _FORMS)


def _target(text: str) -> int | None:
    if text == _DEMAND:
        return None
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(
            f'expected a number of hosts, or {_DEMAND}, got {text!r}'
        )
    return int(text)
