# SPDX-License-Identifier: Apache-2.0

"""Users and projects: how heavy they are."""

import argparse
from typing import Any

from nova_fairness.client import base
from nova_fairness.client import columns

_SORT_KEYS = ('id', 'heaviness_quotas', 'instances_count')

_FORMS = {
    'heaviness_quotas': columns.Number,
    'usage_quotas': columns.Numbers,
    'hosts': columns.Names,
}


class _List(base.ThingLister):
    noun = ''
    columns = (
        ('ID', 'id'),
        ('Heaviness', 'heaviness_quotas'),
        ('VMs', 'instances_count'),
        ('Usage', 'usage_quotas'),
    )
    more = (('Hosts', 'hosts'),)

    def get_parser(self, prog_name: str) -> Any:
        """Take how to sort."""
        parser = super().get_parser(prog_name)
        base.add_page(parser, _SORT_KEYS)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask all hosts."""
        plural, order = f'{self.noun}s', base.order(parsed_args)
        found = self.listed(parsed_args, getattr(self.api, plural), **order)
        forms = {**_FORMS, 'id': self.named(parsed_args, plural)}
        return base.table(self.shown(parsed_args), found, forms)


class ListUser(_List):
    """List users and how heavy they are"""

    noun = 'user'


class ListProject(_List):
    """List projects and how heavy they are"""

    noun = 'project'


class _Show(base.ShowOne):
    noun = ''

    def get_parser(self, prog_name: str) -> Any:
        """Take an id or a name."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'id',
            metavar=f'<{self.noun}>',
            help=f'Name or id of the {self.noun}; "me" for that of the token',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        uuid = self.directory.owner(self.noun, parsed_args.id)
        found = getattr(self.api, f'get_{self.noun}')(uuid)
        return base.fields(found.answer, _FORMS)


class ShowUser(_Show):
    """Show how heavy a user is"""

    noun = 'user'


class ShowProject(_Show):
    """Show how heavy a project is"""

    noun = 'project'
