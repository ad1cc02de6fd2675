# SPDX-License-Identifier: Apache-2.0

"""``openstack fairness group``: what is spent for servers."""

import argparse
from typing import Any

from nova_fairness.client import base
from nova_fairness.client import columns
from nova_fairness.client import resources

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
        found = self.listed(parsed_args, self.api.groups, 'all_projects')
        forms = {**_FORMS, 'project_id': self.named(parsed_args, 'projects')}
        return base.table(self.shown(parsed_args), found, forms)


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
        wanted = self._wanted(parsed_args)
        if given := parsed_args.project:
            wanted['project_id'] = self.directory.owner('project', given)
        whose = self.named(parsed_args, 'projects')
        return self.of_each(
            parsed_args.group,
            lambda name: self._ask(name, wanted).answer,
            lambda _: {**_FORMS, 'project_id': whose},
        )

    def _wanted(self, _parsed_args: argparse.Namespace) -> dict[str, Any]:
        return {}

    def _ask(self, name: str, wanted: Any) -> resources.GroupResource:
        return self.api.delete_group(name, **wanted)


class SetGroup(DeleteGroup):
    """Change what is spent for a group while its servers run"""

    _needs_rate = False

    def get_parser(self, prog_name: str) -> Any:
        """Take a group and what is spent for it."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--rate',
            type=float,
            metavar='<rate>',
            required=self._needs_rate,
            help='price that all its servers together pay for a CPU-hour,'
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

    def _wanted(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        given = {'rate': parsed_args.rate, 'count': parsed_args.count}
        return {key: each for key, each in given.items() if each is not None}

    def _ask(self, name: str, wanted: Any) -> resources.GroupResource:
        return self.api.set_group(name, **wanted)


class CreateGroup(SetGroup):
    """Say what is spent for servers that are in a group"""

    _needs_rate = True

    def _ask(self, name: str, wanted: Any) -> resources.GroupResource:
        return self.api.create_group(name, **wanted)
