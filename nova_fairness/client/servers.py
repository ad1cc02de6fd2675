# SPDX-License-Identifier: Apache-2.0

"""Servers: how they fare, and why."""

import argparse
from collections.abc import Iterator
from collections.abc import Mapping
import itertools
from typing import Any

from osc_lib import exceptions

from nova_fairness.client import base
from nova_fairness.client import columns

MOST = 100
"""Most servers in a list, unless ``--limit`` asks for more. Each is one HTTP
request."""

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
"""Fields that most people want to know, in this order."""


_OWNER = (('user_id', 'user_name'), ('project_id', 'project_name'))
"""Fields of ids, and those of their names, which only agents tell."""


class ShowServer(base.ShowOne):
    """Show how a server fares, why, and what would change it"""

    def get_parser(self, prog_name: str) -> Any:
        """Take a server."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'server', metavar='<server>', help='Server (name or ID)'
        )
        parser.add_argument(
            '--long', action='store_true', help='Show all that is known'
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        server = self.directory.server_of_request(parsed_args.server)
        found = self.api.get_server(server).answer
        order = _ordered(found, everything=parsed_args.long)
        nameless = [
            key for key, name in _OWNER if key in order and name not in order
        ]
        forms = self.named_forms(
            parsed_args, _FORMS, nameless, 'projects', 'users'
        )
        return base.fields(order, forms)


class ListServer(base.ThingLister):
    """List servers and how they fare"""

    columns = (
        ('Name', 'name'),
        ('ID', 'id'),
        ('Status', 'status'),
        ('CPU', 'cpu'),
        ('Summary', 'summary'),
    )
    more = (('CPU Weight', 'weight'),)

    def get_parser(self, prog_name: str) -> Any:
        """Take whose, and how many."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--all-projects',
            action='store_true',
            help='Servers of all projects, for those who may see them',
        )
        parser.add_argument(
            '--limit',
            type=base.count,
            default=MOST,
            metavar='<count>',
            help=f'Most servers (default: {MOST})',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask Nova for servers, and for each how it fares."""
        forms: dict[str, Any] = {
            **dict.fromkeys(('cpu', 'weight'), columns.Number),
            'summary': columns.Text,
        }
        rows = list(self._rows(parsed_args))
        return base.table(self.shown(parsed_args), rows, forms)

    def _rows(self, parsed_args: argparse.Namespace) -> Iterator[Any]:
        compute = self.app.client_manager.sdk_connection.compute
        servers = compute.servers(all_projects=parsed_args.all_projects)
        for server in itertools.islice(servers, parsed_args.limit):
            yield {
                'name': server.name,
                'id': server.id,
                'status': server.status,
                **self._fares(str(server.id)),
            }

    def _fares(self, uuid: str) -> Mapping[str, Any]:
        try:
            found = self.api.get_server(uuid).answer
        except exceptions.CommandError as error:
            self.miss('is not known', {uuid: str(error)})
            return {}
        return {
            'cpu': (found.get('usage') or {}).get('cpu_time'),
            'weight': (found.get('weights') or {}).get('cpu'),
            'summary': _beginning(found.get('summary', '')),
        }


def _ordered(found: Mapping[str, Any], *, everything: bool) -> dict[str, Any]:
    """Begin with what most people want to know, and end there or go on."""
    first = {key: found[key] for key in _FIRST if key in found}
    if 'summary' not in found and 'advice' in found:
        # Of an agent of an older release.
        first = {'advice': found.get('advice'), **first}
    return {**first, **found} if everything else first


def _beginning(text: str) -> str:
    """First sentence of a text."""
    first, point, _ = text.partition('. ')
    return first + point.strip()
