# SPDX-License-Identifier: Apache-2.0

"""Commands that show the effect of a change: ``--dry-run``, and previews of
orders.
"""

import argparse
from collections.abc import Callable
from collections.abc import Mapping
import functools
import math
from typing import Any

from osc_lib import exceptions

from nova_fairness.client import base
from nova_fairness.client import columns

_ONE = '--dry-run: it accepts one account only; name one account per command'


class AccountChange(base.ShowOne):
    """Base class of commands that change accounts, or show the effect of a
    change.
    """

    def get_parser(self, prog_name: str) -> Any:
        """Add the accounts and ``--dry-run``."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'account',
            nargs='+',
            metavar='<account>',
            help='<project> or <project>/<user>, by names or ids, or another'
            ' name of the share tree',
        )
        parser.add_argument(
            '--dry-run',
            action='store_true',
            help='Change nothing, and show which requests would start next',
        )
        return parser

    def change_each(
        self,
        parsed_args: argparse.Namespace,
        do: Callable[..., Mapping[str, Any]],
        forms: Mapping[str, Any],
    ) -> base.Fields:
        """Change each account, or show the effect of the change of one
        account.

        :param do: changes an account; gets its ID and ``dry_run``.
        :param forms: formats of values, by key.
        :raises CommandError: if a dry run is requested for several accounts.
        """
        accounts = [
            self.directory.account(each) for each in parsed_args.account
        ]
        if not parsed_args.dry_run:
            account_format = self.id_format(parsed_args, 'projects', 'users')
            return self.run_for_each(
                accounts,
                functools.partial(do, dry_run=False),
                lambda _: {**forms, 'account': account_format},
            )
        if len(accounts) > 1:
            raise exceptions.CommandError(_ONE)
        answer = dict(do(accounts[0], dry_run=True))
        found = answer.pop('dry_run')
        return _dry_run_fields(self, parsed_args, {**answer, **found}, forms)


class PreviewOrder(base.ShowOne):
    """Show which requests would start next with another order of the queue

    Nothing is changed. The order in use is an option of the service.
    """

    def get_parser(self, prog_name: str) -> Any:
        """Add the order and its parameters."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'order', metavar='<order>', help='Name of an installed order'
        )
        parser.add_argument(
            '--parameter',
            action='append',
            default=[],
            type=_number,
            metavar='<name=number>',
            help='Parameter of the order; can be repeated; other parameters'
            ' have their defaults',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Query the preview and return its fields."""
        numbers = dict(parsed_args.parameter)
        found = self.api.preview_order(parsed_args.order, **numbers)
        return _dry_run_fields(self, parsed_args, found, {})


def _number(text: str) -> tuple[str, str]:
    name, _, number = text.partition('=')
    try:
        is_number = math.isfinite(float(number))
    except ValueError:
        is_number = False
    if not name or ',' in name or not is_number:
        raise argparse.ArgumentTypeError(f'expected NAME=NUMBER, got {text!r}')
    return name, number


def _dry_run_fields(
    command: base.ShowOne,
    parsed_args: argparse.Namespace,
    found: Mapping[str, Any],
    forms: Mapping[str, Any],
) -> base.Fields:
    """Format the result of a dry run; a table shows names of servers and
    projects.
    """
    names = command.names_by_id(parsed_args, 'servers', 'projects')
    shown = {
        'requests': functools.partial(
            columns.Entries, line=functools.partial(columns.forecast, names)
        ),
        'past_waits': functools.partial(columns.PastWaits, names=names),
    }
    return base.format_fields(found, {**forms, **shown})
