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


_LISTED = {'explanation': columns.Text, 'since': columns.Moment}

_ENDS = ('done', 'partial')
"""States of a plan whose moves have ended."""


class ListPlan(base.ThingLister):
    """List plans of moves, the newest first"""

    columns = (
        ('ID', 'uuid'),
        ('Goal', 'goal'),
        ('State', 'state'),
        ('Moves', 'moves_count'),
        ('Ended', 'ended_count'),
        ('Why', 'explanation'),
    )
    more = (('Subject', 'subject'), ('Since', 'since'))

    def get_parser(self, prog_name: str) -> Any:
        """Take how many."""
        parser = super().get_parser(prog_name)
        base.add_limit(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask for them."""
        query = {'limit': parsed_args.limit, 'marker': parsed_args.marker}
        listed = self.api.pages('plans', **query)
        return base.table(self.shown(parsed_args), listed.items, _LISTED)


class ShowPlan(base.ShowOne):
    """Show a plan of moves, what it promises and what it brought"""

    action = ''

    def get_parser(self, prog_name: str) -> Any:
        """Take a plan, or several to act on."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'plan',
            metavar='<plan>',
            nargs='+' if self.action else None,
            help='ID of the plan; the list has it',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it, or act on it."""
        if self.action:
            return self.of_each(
                parsed_args.plan, self._acted, lambda _: _FORMS
            )
        found = self.api.one('plan', _path(parsed_args.plan))
        return base.fields(found, _FORMS)

    def _acted(self, plan: str) -> http.Answer:
        wanted = {self.action: None}
        return self.api.ask_for_plan(f'{_path(plan)}/action', wanted)


class ApprovePlan(ShowPlan):
    """Let a plan of moves begin"""

    action = 'approve'

    def get_parser(self, prog_name: str) -> Any:
        """Take plans, and whether to wait."""
        parser = super().get_parser(prog_name)
        base.add_wait(parser, f'Wait until it is {" or ".join(_ENDS)}')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it, and wait."""
        self._is_waiting = parsed_args.wait
        return super().take_action(parsed_args)

    def _acted(self, plan: str) -> http.Answer:
        found = super()._acted(plan)
        if not self._is_waiting:
            return found
        proxy = self.api.proxy
        base.waited(lambda: proxy.wait_for_plan(plan, _ENDS))
        return self.api.one('plan', _path(plan))


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


def _path(plan: str) -> str:
    return f'/plans/{http.quoted(plan)}'
