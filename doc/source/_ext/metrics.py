# SPDX-License-Identifier: Apache-2.0

"""The directive that lists metrics for Prometheus."""

import textwrap

from docutils import nodes
from sphinx.util import docutils

from nova_fairness.observe import families
from nova_fairness.observe import metric_definitions


def text(group: str) -> str:
    """Definition list of a group of metrics."""
    return '\n'.join(_item(each) for each in metric_definitions.GROUPS[group])


def _item(each: metric_definitions.MetricDefinition) -> str:
    suffix = '_total' if each.kind == 'counter' else ''
    kind = '; '.join(filter(None, (each.kind, ', '.join(each.labels))))
    said = textwrap.indent(each.described, '    ')
    return f'``{families.PREFIX}{each.name}{suffix}`` ({kind})\n{said}\n'


class Metrics(docutils.SphinxDirective):
    """``.. metrics:: GROUP``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The definition list."""
        return self.parse_text_to_nodes(text(self.arguments[0]))


def setup(app: object) -> dict[str, bool]:
    """Add the directive to Sphinx."""
    app.add_directive('metrics', Metrics)
    return {'parallel_read_safe': True}
