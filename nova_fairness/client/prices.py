# SPDX-License-Identifier: Apache-2.0

"""Commands ``openstack fairness price``: prices of hosts."""

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
    """List the price of each host: the spending rate of all its servers"""

    columns = (
        ('Host', 'host'),
        ('Class', 'resource_class'),
        ('Price', 'price'),
        ('Capacity', 'capacity'),
        ('At', 'at'),
    )

    def get_parser(self, prog_name: str) -> Any:
        """Add the options for the range of the list."""
        parser = super().get_parser(prog_name)
        base.add_range_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Read the prices and return them as a table."""
        found = self.read_list(parsed_args, self._find(parsed_args))
        return base.table(self.chosen_columns(parsed_args), found, _FORMS)

    def _find(self, _parsed_args: argparse.Namespace) -> _Find:
        return self.api.prices


class ListPriceHistory(ListPrice):
    """List the past prices of a host, the newest first"""

    def get_parser(self, prog_name: str) -> Any:
        """Add the host."""
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>', help='name of the host')
        return parser

    def _find(self, parsed_args: argparse.Namespace) -> _Find:
        return functools.partial(self.api.price_history, parsed_args.host)
