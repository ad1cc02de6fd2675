# SPDX-License-Identifier: Apache-2.0

"""``openstack fairness price``: what all servers of hosts spend."""

import argparse
from typing import Any

from nova_fairness.client import base
from nova_fairness.client import columns
from nova_fairness.client import http

_FORMS = {
    'price': columns.Number,
    'capacity': columns.Number,
    'at': columns.Moment,
}


class ListPrice(base.ThingLister):
    """List what all servers of each host spend"""

    columns = (
        ('Host', 'host'),
        ('Class', 'resource_class'),
        ('Price', 'price'),
        ('Capacity', 'capacity'),
        ('At', 'at'),
    )

    def get_parser(self, prog_name: str) -> Any:
        """Take how many."""
        parser = super().get_parser(prog_name)
        base.add_limit(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask for them."""
        listed = self.api.pages(
            'prices',
            limit=parsed_args.limit,
            below=self._below(parsed_args),
            marker=parsed_args.marker,
        )
        return base.table(self.shown(parsed_args), listed.items, _FORMS)

    def _below(self, _parsed_args: argparse.Namespace) -> str:
        return ''


class ListPriceHistory(ListPrice):
    """List what all servers of a host spent, the newest first"""

    def get_parser(self, prog_name: str) -> Any:
        """Take a host."""
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>', help='name of the host')
        return parser

    def _below(self, parsed_args: argparse.Namespace) -> str:
        return f'/hosts/{http.quoted(parsed_args.host)}'
