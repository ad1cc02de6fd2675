# SPDX-License-Identifier: Apache-2.0

"""The directive that lists the alerts of a file of rules of Prometheus."""

import pathlib
import re

from docutils import nodes
from sphinx.util import docutils
import yaml

TOP = pathlib.Path(__file__).resolve().parents[3]
_LABEL = re.compile(r'{{ \$labels\.(\w+) }}')


def text(place: str) -> str:
    """Definition list of the alerts, with the texts that people are sent."""
    groups = yaml.safe_load((TOP / place).read_text('utf-8'))['groups']
    items = []
    for rule in (rule for group in groups for rule in group['rules']):
        said = _LABEL.sub(r'*\1*', ' '.join(rule['annotations'].values()))
        items.append(f'``{rule["alert"]}``\n    {said}\n')
    return '\n'.join(items)


class Alerts(docutils.SphinxDirective):
    """``.. alerts:: FILE``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The definition list."""
        place = self.arguments[0]
        self.env.note_dependency(str(TOP / place))
        return self.parse_text_to_nodes(text(place))


def setup(app: object) -> dict[str, bool]:
    """Add the directive to Sphinx."""
    app.add_directive('alerts', Alerts)
    return {'parallel_read_safe': True}
