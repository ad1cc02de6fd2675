# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Servers: why one gets what it gets."""

import argparse
from collections.abc import Mapping
from typing import Any
import uuid

from osc_lib import exceptions

from nova_fairness.client import base
from nova_fairness.client import columns

_FORMS = {
    'heaviness': columns.Tree,
    'endowment': columns.Numbers,
    'quota': columns.Numbers,
    'usage': columns.Numbers,
    'owner_usage': columns.Numbers,
    'waiting': columns.Names,
    'contended': columns.Names,
    'weights': columns.Numbers,
    'weights_last_hour': columns.History,
    'advice': columns.Sentences,
}


class ShowServer(base.ShowOne):
    """Show why a server gets what it gets, and what would change it"""

    def get_parser(self, prog_name: str) -> Any:
        """Take a server."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'server', metavar='<server>', help='Server (name or ID)'
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """Ask for it."""
        found = self.api.one(
            'instance', f'/instances/{self._id(parsed_args.server)}'
        )
        order = _advice_first(found)
        return tuple(order), tuple(
            base.formed(value, key, _FORMS) for key, value in order.items()
        )

    def _id(self, given: str) -> str:
        """Find the id of a server by its name."""
        try:
            return str(uuid.UUID(given))
        except ValueError:
            compute = self.app.client_manager.sdk_connection.compute
            server = compute.find_server(given, ignore_missing=True)
        if server is None:
            raise exceptions.CommandError(f'no server {given!r}')
        return str(server.id)


def _advice_first(found: Mapping[str, Any]) -> dict[str, Any]:
    """Begin with what most people want to know."""
    first = ('name', 'uuid', 'host', 'advice')
    return {
        **{key: found[key] for key in first if key in found},
        **found,
    }
