# SPDX-License-Identifier: Apache-2.0

"""The directive that lists settings by the docstring of a data class."""

import dataclasses
import importlib
import inspect
import re

from docutils import nodes
from sphinx.util import docutils

_IVAR = re.compile(r'^:ivar (\w+): ((?:.+\n?)(?:^ +.+\n?)*)', re.MULTILINE)


def text(place: str, names: list[str]) -> str:
    """Definition list of settings, with their defaults.

    :param place: a data class, such as ``fairness_lab.scenario.values.Vm``.
    :param names: of its fields, in this order.
    """
    module, _, name = place.rpartition('.')
    cls = getattr(importlib.import_module(module), name)
    said = dict(_IVAR.findall(inspect.getdoc(cls)))
    defaults = {each.name: each.default for each in dataclasses.fields(cls)}
    return '\n'.join(
        f'``{each}``{_default(defaults[each])}\n    {_line(said[each])}\n'
        for each in names
    )


def _default(value: object) -> str:
    if value is dataclasses.MISSING or value in (None, '', False, ()):
        return ''
    return f' ({value:g})'


def _line(said: str) -> str:
    line = ' '.join(said.split())
    return line[0].upper() + line[1:]


class Settings(docutils.SphinxDirective):
    """``.. settings:: CLASS FIELD...``."""

    required_arguments = 2
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The definition list."""
        place, names = self.arguments
        return self.parse_text_to_nodes(text(place, names.split()))


def setup(app: object) -> dict[str, bool]:
    """Add the directive to Sphinx."""
    app.add_directive('settings', Settings)
    return {'parallel_read_safe': True}
