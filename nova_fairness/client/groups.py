# SPDX-License-Identifier: Apache-2.0

"""``openstack fairness group``: what is spent for servers."""

import argparse
from typing import Any

from nova_fairness.client import base
from nova_fairness.client import columns

_FORMS = {'rate': columns.Number, 'server_rate': columns.Number}


class ListGroup(base.Lister):
    """List groups of servers, and what is spent for them"""

    _columns = (
        ('Name', 'name'),
        ('Project', 'project_id'),
        ('Rate', 'rate'),
        ('Count', 'count'),
        ('Servers', 'servers_count'),
        ('Server Rate', 'server_rate'),
    )

    def get_parser(self, prog_name: str) -> Any:
        """Take whose, and how many."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--all-projects',
            action='store_true',
            help='groups of all projects, for those who may see them',
        )
        base.add_limit(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask for them."""
        query = {'limit': parsed_args.limit, 'marker': parsed_args.marker}
        if parsed_args.all_projects:
            query['all_projects'] = 'true'
        listed = self.api.pages('groups', **query)
        return base.table(self._columns, listed.items, _FORMS)


class DeleteGroup(base.ShowOne):
    """Take a group away: its servers have the lowest rate"""

    def get_parser(self, prog_name: str) -> Any:
        """Take a group."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'group', metavar='<group>', help='name of the group'
        )
        parser.add_argument(
            '--project',
            metavar='<project-id>',
            help='if it is not that of the token',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        return self._asked(parsed_args, {'rate': None})

    def _asked(
        self,
        parsed_args: argparse.Namespace,
        wanted: dict[str, Any],
        *,
        new: bool = False,
    ) -> base.Fields:
        whole = {
            'name': parsed_args.group,
            'project_id': parsed_args.project,
        }
        whole = {key: value for key, value in whole.items() if value}
        found = self.api.set_group({**whole, **wanted}, new=new)
        return base.fields(found, _FORMS)


class SetGroup(DeleteGroup):
    """Change what is spent for a group while its servers run"""

    _is_new = False

    def get_parser(self, prog_name: str) -> Any:
        """Take a group and what is spent for it."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--rate',
            type=float,
            metavar='<rate>',
            required=self._is_new,
            help='currency for a CPU-hour, of all its servers together,'
            ' from 0.001 to 1000000',
        )
        parser.add_argument(
            '--count',
            type=int,
            metavar='<count>',
            help='servers that the rate is for; if there are more, each has'
            ' less',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        given = {'rate': parsed_args.rate, 'count': parsed_args.count}
        wanted = {
            key: value for key, value in given.items() if value is not None
        }
        return self._asked(parsed_args, wanted, new=self._is_new)


class CreateGroup(SetGroup):
    """Say what is spent for servers that are in a group"""

    _is_new = True
