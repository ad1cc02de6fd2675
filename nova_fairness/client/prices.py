# SPDX-License-Identifier: Apache-2.0

"""``openstack fairness price``: what all servers of hosts spend."""

import argparse
from collections.abc import Callable
import functools
from typing import Any

from nova_fairness.client import base
from nova_fairness.client import columns
from nova_fairness.client import resources

_FORMS = {
    'price': columns.Number,
    'capacity': columns.Number,
    'at': columns.Moment,
}


_Find = Callable[..., resources.PagedList[resources.PriceResource]]


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
        found = self.listed(parsed_args, self._find(parsed_args))
        return base.table(self.shown(parsed_args), found, _FORMS)

    def _find(self, _parsed_args: argparse.Namespace) -> _Find:
        return self.api.prices


class ListPriceHistory(ListPrice):
    """List what all servers of a host spent, the newest first"""

    def get_parser(self, prog_name: str) -> Any:
        """Take a host."""
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>', help='name of the host')
        return parser

    def _find(self, parsed_args: argparse.Namespace) -> _Find:
        return functools.partial(self.api.price_history, parsed_args.host)
