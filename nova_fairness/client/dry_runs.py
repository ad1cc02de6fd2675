# SPDX-License-Identifier: Apache-2.0

"""The effect of changes: ``--dry-run``, and previews of orders."""

import argparse
from collections.abc import Callable
from collections.abc import Mapping
import functools
import math
from typing import Any

from osc_lib import exceptions

from nova_fairness.client import base
from nova_fairness.client import columns

_ONE = '--dry-run: it shows one change at a time; name one account'


class AccountChange(base.ShowOne):
    """Changes something of accounts, or shows the effect."""

    def get_parser(self, prog_name: str) -> Any:
        """Take accounts, and whether nothing is changed."""
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
            help='Change nothing, and show who would start next',
        )
        return parser

    def change_each(
        self,
        parsed_args: argparse.Namespace,
        do: Callable[..., Mapping[str, Any]],
        forms: Mapping[str, Any],
    ) -> base.Fields:
        """Do it with each account, or show the effect of one change.

        :param do: is given the id of an account and ``dry_run``.
        :param forms: classes of values, by key.
        :raises CommandError: if a dry run is asked for of several.
        """
        named = [self.directory.account(each) for each in parsed_args.account]
        if not parsed_args.dry_run:
            whose = self.named(parsed_args, 'projects', 'users')
            return self.of_each(
                named,
                functools.partial(do, dry_run=False),
                lambda _: {**forms, 'account': whose},
            )
        if len(named) > 1:
            raise exceptions.CommandError(_ONE)
        answer = dict(do(named[0], dry_run=True))
        found = answer.pop('dry_run')
        return _fields(self, parsed_args, {**answer, **found}, forms)


class PreviewOrder(base.ShowOne):
    """Show who would start next by another order of the queue

    Nothing is changed. The order in use is an option of the service.
    """

    def get_parser(self, prog_name: str) -> Any:
        """Take an order and its numbers."""
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
            help='Parameter of the order; repeatable; others have defaults',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        numbers = dict(parsed_args.parameter)
        found = self.api.preview_order(parsed_args.order, **numbers)
        return _fields(self, parsed_args, found, {})


def _number(text: str) -> tuple[str, str]:
    name, _, number = text.partition('=')
    try:
        is_number = math.isfinite(float(number))
    except ValueError:
        is_number = False
    if not name or ',' in name or not is_number:
        raise argparse.ArgumentTypeError(f'expected NAME=NUMBER, got {text!r}')
    return name, number


def _fields(
    command: base.ShowOne,
    parsed_args: argparse.Namespace,
    found: Mapping[str, Any],
    forms: Mapping[str, Any],
) -> base.Fields:
    """A dry run; servers and projects have their names in a table."""
    names = command.names(parsed_args, 'servers', 'projects')
    shown = {
        'requests': functools.partial(
            columns.Entries, line=functools.partial(columns.forecast, names)
        ),
        'past_waits': functools.partial(columns.PastWaits, names=names),
    }
    return base.fields(found, {**forms, **shown})
