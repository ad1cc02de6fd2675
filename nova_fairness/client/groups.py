# SPDX-License-Identifier: Apache-2.0

"""Commands ``openstack fairness group``: groups of servers with a spending
rate.
"""

import argparse
from typing import Any

from nova_fairness.client import base
from nova_fairness.client import columns
from nova_fairness.client import resources

_FORMS = {'rate': columns.Number, 'server_rate': columns.Number}


class ListGroup(base.ThingLister):
    """List groups of servers and their spending rates"""

    columns = (
        ('Name', 'name'),
        ('Project', 'project_id'),
        ('Rate', 'rate'),
        ('Count', 'count'),
        ('Servers', 'servers_count'),
        ('Server Rate', 'server_rate'),
    )

    def get_parser(self, prog_name: str) -> Any:
        """Add the options for projects and for the range of the list."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--all-projects',
            action='store_true',
            help='groups of all projects (operators only)',
        )
        base.add_range_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Read the groups and return them as a table."""
        found = self.read_list(parsed_args, self.api.groups, 'all_projects')
        forms = {
            **_FORMS,
            'project_id': self.id_format(parsed_args, 'projects'),
        }
        return base.table(self.chosen_columns(parsed_args), found, forms)


class DeleteGroup(base.ShowOne):
    """Delete a group: its servers get the lowest rate"""

    def get_parser(self, prog_name: str) -> Any:
        """Add the groups and their project."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'group', nargs='+', metavar='<group>', help='name of the group'
        )
        parser.add_argument(
            '--project',
            metavar='<project>',
            help='name or ID of the project (default: project of the token)',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Change or delete each group."""
        group_fields = self._group_fields(parsed_args)
        if given := parsed_args.project:
            group_fields['project_id'] = self.directory.owner('project', given)
        project_format = self.id_format(parsed_args, 'projects')
        return self.run_for_each(
            parsed_args.group,
            lambda name: self._send(name, group_fields).answer,
            lambda _: {**_FORMS, 'project_id': project_format},
        )

    def _group_fields(
        self, _parsed_args: argparse.Namespace
    ) -> dict[str, Any]:
        return {}

    def _send(self, name: str, wanted: Any) -> resources.GroupResource:
        return self.api.delete_group(name, **wanted)


class SetGroup(DeleteGroup):
    """Change the spending rate of a group while its servers run"""

    _needs_rate = False

    def get_parser(self, prog_name: str) -> Any:
        """Add the rate and the number of servers."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--rate',
            type=float,
            metavar='<rate>',
            required=self._needs_rate,
            help='currency that all servers of the group together spend for a'
            ' CPU-hour, from 0.001 to 1000000',
        )
        parser.add_argument(
            '--count',
            type=int,
            metavar='<count>',
            help='number of servers that share the rate; with more servers,'
            ' each gets a smaller part',
        )
        return parser

    def _group_fields(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        given = {'rate': parsed_args.rate, 'count': parsed_args.count}
        return {key: each for key, each in given.items() if each is not None}

    def _send(self, name: str, wanted: Any) -> resources.GroupResource:
        return self.api.set_group(name, **wanted)


class CreateGroup(SetGroup):
    """Create a group of servers with a spending rate"""

    _needs_rate = True

    def _send(self, name: str, wanted: Any) -> resources.GroupResource:
        return self.api.create_group(name, **wanted)
