# SPDX-License-Identifier: Apache-2.0

"""``openstack fairness group``: what is spent for servers."""

import argparse
from typing import Any

from nova_fairness.client import base
from nova_fairness.client import columns

_FORMS = {'rate': columns.Number, 'server_rate': columns.Number}


class ListGroup(base.ThingLister):
    """List groups of servers, and what is spent for them"""

    columns = (
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
        forms = {**_FORMS, 'project_id': self.named(parsed_args, 'projects')}
        return base.table(self.shown(parsed_args), listed.items, forms)


class DeleteGroup(base.ShowOne):
    """Take a group away: its servers have the lowest rate"""

    def get_parser(self, prog_name: str) -> Any:
        """Take groups."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'group', nargs='+', metavar='<group>', help='name of the group'
        )
        parser.add_argument(
            '--project',
            metavar='<project>',
            help='name or id, if it is not that of the token',
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
        if given := parsed_args.project:
            project = self.directory.owner('project', given)
            wanted = {'project_id': project, **wanted}
        return self.of_each(
            parsed_args.group,
            lambda name: self.api.set_group({'name': name, **wanted}, new=new),
            lambda _: self._forms(parsed_args),
        )

    def _forms(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        return {**_FORMS, 'project_id': self.named(parsed_args, 'projects')}


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
