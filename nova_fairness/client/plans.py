# SPDX-License-Identifier: Apache-2.0

"""Commands ``openstack fairness plan``: migration plans."""

import argparse
from collections.abc import Mapping
import functools
from typing import Any

from nova_fairness.client import base
from nova_fairness.client import columns
from nova_fairness.client import resources


def _format_staying_server(each: Mapping[str, Any]) -> str:
    """Format a server that stays on its host, with the reason."""
    return (
        f'{each.get("name") or each.get("server")}: {each.get("explanation")}'
    )


_FORMS = {
    'empties': columns.Names,
    'promised': columns.Numbers,
    'won': columns.Numbers,
    'moves': columns.ObjectTree,
    'stays': functools.partial(columns.Entries, line=_format_staying_server),
}


_LISTED = {'explanation': columns.Text, 'since': columns.Moment}

_ENDS = ('done', 'partial')
"""States of a plan whose moves have ended."""


class ListPlan(base.ThingLister):
    """List migration plans, the newest first"""

    columns = (
        ('ID', 'uuid'),
        ('Goal', 'goal'),
        ('State', 'state'),
        ('Moves', 'moves_count'),
        ('Ended', 'ended_count'),
        ('Why', 'explanation'),
    )
    long_columns = (('Subject', 'subject'), ('Since', 'since'))

    def get_parser(self, prog_name: str) -> Any:
        """Add the options for the range of the list."""
        parser = super().get_parser(prog_name)
        base.add_range_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Read the plans and return them as a table."""
        found = self.read_list(parsed_args, self.api.plans)
        return base.table(self.chosen_columns(parsed_args), found, _LISTED)


class ShowPlan(base.ShowOne):
    """Show a migration plan, its expected and its actual gain"""

    is_one = True

    def get_parser(self, prog_name: str) -> Any:
        """Add one plan, or several for an action."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'plan',
            metavar='<plan>',
            nargs=None if self.is_one else '+',
            help='ID of the plan, as in "openstack fairness plan list"',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Read the plan, or run the action on each plan."""
        given = parsed_args.plan
        do = functools.partial(self._done, parsed_args)
        if self.is_one:
            return base.format_fields(do(given).answer, _FORMS)
        return self.run_for_each(
            given, lambda p: do(p).answer, lambda _: _FORMS
        )

    def _done(
        self, _parsed_args: argparse.Namespace, plan: str
    ) -> resources.PlanResource:
        return self.api.get_plan(plan)


class ApprovePlan(ShowPlan):
    """Approve a migration plan, so that its moves begin"""

    is_one = False

    def get_parser(self, prog_name: str) -> Any:
        """Add the plans and the option to wait."""
        parser = super().get_parser(prog_name)
        base.add_wait_option(
            parser, f'Wait until the plan is {" or ".join(_ENDS)}'
        )
        return parser

    def _done(
        self, parsed_args: argparse.Namespace, plan: str
    ) -> resources.PlanResource:
        found = self.api.approve_plan(plan)
        if not parsed_args.wait:
            return found
        base.wait_for_state(lambda: self.api.wait_for_plan(plan, _ENDS))
        return self.api.get_plan(plan)


class StopPlan(ShowPlan):
    """Stop a migration plan, or enable the host of a plan that ended in part

    Moves that have begun are completed.
    """

    is_one = False

    def _done(
        self, _parsed_args: argparse.Namespace, plan: str
    ) -> resources.PlanResource:
        return self.api.stop_plan(plan)


class CreatePlan(base.ShowOne):
    """Propose a migration plan that empties a host"""

    def get_parser(self, prog_name: str) -> Any:
        """Add the host."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--empty',
            metavar='<host>',
            required=True,
            help='name of the host that the plan empties and then disables',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Propose the plan and return its fields."""
        found = self.api.empty_host(parsed_args.empty)
        return base.format_fields(found.answer, _FORMS)
