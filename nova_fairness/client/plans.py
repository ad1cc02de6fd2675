# SPDX-License-Identifier: Apache-2.0

"""``openstack fairness plan``: servers that are to move."""

import argparse
from collections.abc import Mapping
import functools
from typing import Any

from nova_fairness.client import base
from nova_fairness.client import columns
from nova_fairness.client import resources


def _stay(each: Mapping[str, Any]) -> str:
    """Write which server stays where it is, and why."""
    return (
        f'{each.get("name") or each.get("server")}: {each.get("explanation")}'
    )


_FORMS = {
    'empties': columns.Names,
    'promised': columns.Numbers,
    'won': columns.Numbers,
    'moves': columns.ObjectTree,
    'stays': functools.partial(columns.Entries, line=_stay),
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
        found = self.listed(parsed_args, self.api.plans)
        return base.table(self.shown(parsed_args), found, _LISTED)


class ShowPlan(base.ShowOne):
    """Show a plan of moves, what it promises and what it brought"""

    is_one = True

    def get_parser(self, prog_name: str) -> Any:
        """Take a plan, or several to act on."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'plan',
            metavar='<plan>',
            nargs=None if self.is_one else '+',
            help='ID of the plan; the list has it',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it, or act on it."""
        given = parsed_args.plan
        do = functools.partial(self._done, parsed_args)
        if self.is_one:
            return base.fields(do(given).answer, _FORMS)
        return self.of_each(given, lambda p: do(p).answer, lambda _: _FORMS)

    def _done(
        self, _parsed_args: argparse.Namespace, plan: str
    ) -> resources.PlanResource:
        return self.api.get_plan(plan)


class ApprovePlan(ShowPlan):
    """Let a plan of moves begin"""

    is_one = False

    def get_parser(self, prog_name: str) -> Any:
        """Take plans, and whether to wait."""
        parser = super().get_parser(prog_name)
        base.add_wait(parser, f'Wait until it is {" or ".join(_ENDS)}')
        return parser

    def _done(
        self, parsed_args: argparse.Namespace, plan: str
    ) -> resources.PlanResource:
        found = self.api.approve_plan(plan)
        if not parsed_args.wait:
            return found
        base.waited(lambda: self.api.wait_for_plan(plan, _ENDS))
        return self.api.get_plan(plan)


class StopPlan(ShowPlan):
    """End a plan of moves, or open the host of one that ended in part

    Moves that have begun are completed.
    """

    is_one = False

    def _done(
        self, _parsed_args: argparse.Namespace, plan: str
    ) -> resources.PlanResource:
        return self.api.stop_plan(plan)


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
        found = self.api.empty_host(parsed_args.empty)
        return base.fields(found.answer, _FORMS)
