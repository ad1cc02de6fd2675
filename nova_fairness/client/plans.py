# SPDX-License-Identifier: Apache-2.0

"""``openstack fairness plan``: servers that are to move."""

import argparse
from typing import Any

from nova_fairness.client import base
from nova_fairness.client import columns
from nova_fairness.client import http

_FORMS = {
    'empties': columns.Names,
    'promised': columns.Numbers,
    'won': columns.Numbers,
    'moves': columns.ObjectTree,
    'stays': columns.Stays,
}


class ListPlan(base.Lister):
    """List plans of moves, the newest first"""

    _columns = (
        ('ID', 'uuid'),
        ('Goal', 'goal'),
        ('Subject', 'subject'),
        ('State', 'state'),
        ('Since', 'since'),
        ('Moves', 'moves_count'),
        ('Ended', 'ended_count'),
        ('Why', 'explanation'),
    )

    def get_parser(self, prog_name: str) -> Any:
        """Take how many."""
        parser = super().get_parser(prog_name)
        base.add_limit(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask for them."""
        query = {'limit': parsed_args.limit, 'marker': parsed_args.marker}
        listed = self.api.pages('plans', **query)
        return base.table(self._columns, listed.items, _FORMS)


class ShowPlan(base.ShowOne):
    """Show a plan of moves, what it promises and what it brought"""

    action = ''

    def get_parser(self, prog_name: str) -> Any:
        """Take a plan."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'plan', metavar='<plan>', help='ID of the plan; the list has it'
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it, or act on it."""
        path = f'/plans/{http.quoted(parsed_args.plan)}'
        if self.action:
            found = self.api.ask_for_plan(
                f'{path}/action', {self.action: None}
            )
        else:
            found = self.api.one('plan', path)
        return base.fields(found, _FORMS)


class ApprovePlan(ShowPlan):
    """Let a plan of moves begin"""

    action = 'approve'


class StopPlan(ShowPlan):
    """End a plan of moves, or open the host of one that ended in part

    Moves that have begun are completed.
    """

    action = 'stop'


class CreatePlan(base.ShowOne):
    """Propose a plan that empties a host"""

    def get_parser(self, prog_name: str) -> Any:
        """Take a host."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--empty',
            metavar='<host>',
            required=True,
            help='name of the host that is to be emptied, and disabled then',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        wanted = {'empty': parsed_args.empty}
        return base.fields(self.api.ask_for_plan('/plans', wanted), _FORMS)
