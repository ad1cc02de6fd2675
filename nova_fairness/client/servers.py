# SPDX-License-Identifier: Apache-2.0

"""Commands that show usage, weights and advice for servers."""

import argparse
from collections.abc import Iterator
from collections.abc import Mapping
import itertools
from typing import Any

from osc_lib import exceptions

from nova_fairness.client import base
from nova_fairness.client import columns

DEFAULT_LIMIT = 100
"""Default of ``--limit``. Each server costs one HTTP request."""

_FORMS = {
    'usage': columns.Amounts,
    'weights': columns.Weights,
    'heaviness': columns.ObjectTree,
    'endowment': columns.Amounts,
    'quota': columns.Amounts,
    'owner_usage': columns.Amounts,
    'waiting': columns.Names,
    'contended': columns.Names,
    'weights_last_hour': columns.WeightColumns,
    'advice': columns.Sentences,
}

_FIRST = (
    'summary',
    'name',
    'uuid',
    'host',
    'request_id',
    'user_name',
    'user_id',
    'project_name',
    'project_id',
    'usage',
    'weights',
)
"""Fields that most users need, in this order."""


_OWNER = (('user_id', 'user_name'), ('project_id', 'project_name'))
"""Fields with IDs, and the fields with their names, which only agents send."""


class ShowServer(base.ShowOne):
    """Show the usage and the weights of a server, with causes and advice"""

    def get_parser(self, prog_name: str) -> Any:
        """Add the server and the option for all fields."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'server', metavar='<server>', help='Server (name or ID)'
        )
        parser.add_argument(
            '--long', action='store_true', help='Show all fields'
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Read the server and return its fields."""
        server = self.directory.server_of_request(parsed_args.server)
        found = self.api.get_server(server).answer
        order = _ordered(found, everything=parsed_args.long)
        nameless = [
            key for key, name in _OWNER if key in order and name not in order
        ]
        forms = self.formats_with_names(
            parsed_args, _FORMS, nameless, 'projects', 'users'
        )
        return base.format_fields(order, forms)


class ListServer(base.ThingLister):
    """List servers with their CPU use and a summary"""

    columns = (
        ('Name', 'name'),
        ('ID', 'id'),
        ('Status', 'status'),
        ('CPU', 'cpu'),
        ('Summary', 'summary'),
    )
    long_columns = (('CPU Weight', 'weight'),)

    def get_parser(self, prog_name: str) -> Any:
        """Add the options for all projects and for the number of servers."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--all-projects',
            action='store_true',
            help='Servers of all projects (operators only)',
        )
        parser.add_argument(
            '--limit',
            type=base.positive_count,
            default=DEFAULT_LIMIT,
            metavar='<count>',
            help=f'Largest number of servers (default: {DEFAULT_LIMIT})',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """List servers in Nova, and query the usage of each."""
        forms: dict[str, Any] = {
            **dict.fromkeys(('cpu', 'weight'), columns.Number),
            'summary': columns.Text,
        }
        rows = list(self._rows(parsed_args))
        return base.table(self.chosen_columns(parsed_args), rows, forms)

    def _rows(self, parsed_args: argparse.Namespace) -> Iterator[Any]:
        compute = self.app.client_manager.sdk_connection.compute
        servers = compute.servers(all_projects=parsed_args.all_projects)
        for server in itertools.islice(servers, parsed_args.limit):
            yield {
                'name': server.name,
                'id': server.id,
                'status': server.status,
                **self._usage_fields(str(server.id)),
            }

    def _usage_fields(self, uuid: str) -> Mapping[str, Any]:
        try:
            found = self.api.get_server(uuid).answer
        except exceptions.CommandError as error:
            self.log_missing('has no data', {uuid: str(error)})
            return {}
        return {
            'cpu': (found.get('usage') or {}).get('cpu_time'),
            'weight': (found.get('weights') or {}).get('cpu'),
            'summary': _first_sentence(found.get('summary', '')),
        }


def _ordered(found: Mapping[str, Any], *, everything: bool) -> dict[str, Any]:
    """Return the fields that most users need, followed by all others on
    demand.
    """
    first = {key: found[key] for key in _FIRST if key in found}
    if 'summary' not in found and 'advice' in found:
        # An agent of an older release sends no summary.
        first = {'advice': found.get('advice'), **first}
    return {**first, **found} if everything else first


def _first_sentence(text: str) -> str:
    """Return the first sentence of a text."""
    first, point, _ = text.partition('. ')
    return first + point.strip()
