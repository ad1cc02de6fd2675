# SPDX-License-Identifier: Apache-2.0

"""Commands that list and select the metric and the policy."""

import argparse
from typing import Any

from nova_fairness.client import base
from nova_fairness.client import columns
from nova_fairness.client import resources


class _List(base.ThingLister):
    noun = ''

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Return the metrics or policies that agents have installed."""
        answer = self.api.get_plugins()
        found = [
            item.get(self.noun, {})
            for item in answer.get(f'{_plural(self)}', ())
        ]
        away = resources.reasons_by_host(answer.get('not_reached'))
        self.log_missing('was not reached', away)
        wanted = [('Name', 'name'), ('Description', 'description')]
        if any('in_force' in item for item in found):
            wanted.insert(1, ('In Force', 'in_force'))
        if any('hosts_without' in item for item in found):
            wanted.append(('Hosts Without', 'hosts_without'))
        self.columns = tuple(wanted)
        forms: dict[str, Any] = {
            'hosts_without': columns.Names,
            'description': columns.Text,
        }
        return base.table(self.chosen_columns(parsed_args), found, forms)


def _plural(command: _List) -> str:
    return {'metric': 'metrics', 'policy': 'policies'}[command.noun]


class ListMetric(_List):
    """List the metrics that agents have installed"""

    noun = 'metric'


class ListPolicy(_List):
    """List the policies that agents have installed"""

    noun = 'policy'


class _Set(base.HostCommand):
    noun = ''
    columns = (
        ('Host', 'name'),
        ('Metric', 'metric'),
        ('Policy', 'policy'),
        ('Epoch', 'epoch'),
        ('From Round', 'from_round'),
    )

    def get_parser(self, prog_name: str) -> Any:
        """Add the name of the plugin and the host that receives it."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'name', metavar=f'<{self.noun}>', help=f'Name of the {self.noun}'
        )
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument(
            '--host',
            metavar='<host>',
            help='Send the choice to this host; its reports carry it to the '
            'other hosts of the domain',
        )
        group.add_argument(
            '--all',
            action='store_true',
            help='Send the choice to every host of the domain at once',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Send the chosen metric or policy to the agents."""
        return self.act(
            base.host_or_all(parsed_args),
            f'set-{self.noun}',
            {'name': parsed_args.name},
        )


class SetMetric(_Set):
    """Select the metric that measures heaviness"""

    noun = 'metric'


class SetPolicy(_Set):
    """Select the policy that turns heaviness into weights"""

    noun = 'policy'
