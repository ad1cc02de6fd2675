# SPDX-License-Identifier: Apache-2.0

"""Commands that show the heaviness of users and projects."""

import argparse
from typing import Any

from nova_fairness.client import base
from nova_fairness.client import columns

_SORT_KEYS = ('id', 'heaviness_quotas', 'instances_count')

_FORMS = {
    'heaviness_quotas': columns.Number,
    'shadow_heaviness_quotas': columns.Number,
    'usage_quotas': columns.Numbers,
    'hosts': columns.Names,
}

_SHADOW = ('Shadow Heaviness', 'shadow_heaviness_quotas')
_SHADOW_METRIC = ('Shadow Metric', 'shadow_metric')
"""Columns that are shown only if a host has a shadow metric."""


class _List(base.ThingLister):
    noun = ''
    columns: tuple[tuple[str, str], ...] = (
        ('ID', 'id'),
        ('Heaviness', 'heaviness_quotas'),
        ('VMs', 'instances_count'),
        ('Usage', 'usage_quotas'),
    )
    long_columns: tuple[tuple[str, str], ...] = (('Hosts', 'hosts'),)

    def get_parser(self, prog_name: str) -> Any:
        """Add the options for sorting and for the range of the list."""
        parser = super().get_parser(prog_name)
        base.add_sort_options(parser, _SORT_KEYS)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Query the agents of all hosts and return a table."""
        plural, order = f'{self.noun}s', base.sort_parameters(parsed_args)
        found = self.read_list(parsed_args, getattr(self.api, plural), **order)
        forms = {**_FORMS, 'id': self.id_format(parsed_args, plural)}
        if any(item.get('shadow_metric') for item in found):
            self.columns = _with_shadow(self.columns)
            self.long_columns = (*self.long_columns, _SHADOW_METRIC)
        return base.table(self.chosen_columns(parsed_args), found, forms)


def _with_shadow(
    shown: tuple[tuple[str, str], ...],
) -> tuple[tuple[str, str], ...]:
    """Return columns with the heaviness by the shadow metric."""
    keys = [key for _, key in shown]
    place = keys.index('heaviness_quotas') + 1
    return (*shown[:place], _SHADOW, *shown[place:])


class ListUser(_List):
    """List users and their heaviness"""

    noun = 'user'


class ListProject(_List):
    """List projects and their heaviness"""

    noun = 'project'


class _Show(base.ShowOne):
    noun = ''

    def get_parser(self, prog_name: str) -> Any:
        """Add the ID or name of the user or project."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'id',
            metavar=f'<{self.noun}>',
            help=f'Name or ID of the {self.noun}; "me" for the {self.noun} of'
            ' the token',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Query the heaviness of the owner and return its fields."""
        uuid = self.directory.owner(self.noun, parsed_args.id)
        found = getattr(self.api, f'get_{self.noun}')(uuid)
        return base.format_fields(found.answer, _FORMS)


class ShowUser(_Show):
    """Show the heaviness of a user"""

    noun = 'user'


class ShowProject(_Show):
    """Show the heaviness of a project"""

    noun = 'project'
