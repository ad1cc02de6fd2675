# SPDX-License-Identifier: Apache-2.0

"""The directive that lists the fractions by which the code judges."""

import ast
from collections.abc import Iterator
import itertools
import pathlib
import textwrap
from typing import NamedTuple

from docutils import nodes
from sphinx.util import docutils

PRODUCT = pathlib.Path(__file__).resolve().parents[3] / 'nova_fairness'
_ARITHMETIC = (
    ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop
)


class Fraction(NamedTuple):
    """A constant that is part of something.

    :ivar said: its docstring; empty without one.
    """

    module: str
    name: str
    value: float
    said: str


def fractions(room: str) -> Iterator[Fraction]:
    """All fractions of the modules of a folder, in the order of the code."""
    for path in sorted((PRODUCT / room).rglob('*.py')):
        module = '.'.join(path.relative_to(PRODUCT).with_suffix('').parts)
        body = ast.parse(path.read_text('utf-8')).body
        for item, after in itertools.pairwise([*body, None]):
            if isinstance(item, ast.Assign) and _is_arithmetic(item.value):
                name, value = ast.unparse(item.targets[0]), _value(item.value)
                # Seconds are durations; what is tiny only guards a division.
                is_part = isinstance(value, float) and 1e-5 < value < 2
                if is_part and not name.endswith('_S'):
                    yield Fraction(module, name, value, _text(after))


def _is_arithmetic(value: ast.expr) -> bool:
    return all(isinstance(node, _ARITHMETIC) for node in ast.walk(value))


def _value(value: ast.expr) -> object:
    # Numbers and operators alone: there is nothing to be called.
    code = compile(ast.Expression(value), 'fraction', 'eval')
    return eval(code)  # noqa: S307


def _text(item: ast.stmt | None) -> str:
    match item:
        case ast.Expr(ast.Constant(str(text))):
            return ' '.join(text.split())
    return ''


class Fractions(docutils.SphinxDirective):
    """``.. fractions:: FOLDER``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The definition list."""
        return self.parse_text_to_nodes(text(self.arguments[0]))


def text(room: str) -> str:
    """Definition list of the fractions of a folder."""
    return '\n'.join(
        f'``{each.module}.{each.name}`` = {each.value:g}\n'
        f'{textwrap.indent(each.said, "    ")}\n'
        for each in fractions(room)
    )


def setup(app: object) -> dict[str, bool]:
    """Add the directive to Sphinx."""
    app.add_directive('fractions', Fractions)
    return {'parallel_read_safe': True}
