# SPDX-License-Identifier: Apache-2.0

"""The page of thresholds names each fraction of the code that judges."""

import ast
from collections.abc import Iterator
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[3]
PAGE = ROOT / 'doc/source/contributor/thresholds.rst'
ROOMS = ('measure', 'decide', 'shares', 'agent')
ROW = re.compile(r'^   \* - ``([\w.]+)``\n     - ([\d.e+-]+)$', re.MULTILINE)


def _fractions() -> Iterator[tuple[str, float]]:
    """Name and value of each constant that is part of something."""
    product = ROOT / 'nova_fairness'
    for room in ROOMS:
        for path in sorted((product / room).rglob('*.py')):
            module = '.'.join(path.relative_to(product).with_suffix('').parts)
            for name, value in _constants(path):
                yield f'{module}.{name}', value


def _constants(path: pathlib.Path) -> Iterator[tuple[str, float]]:
    for item in ast.parse(path.read_text()).body:
        if isinstance(item, ast.Assign) and _is_arithmetic(item.value):
            code = compile(ast.Expression(item.value), str(path), 'eval')
            value, name = eval(code), ast.unparse(item.targets[0])
            # Seconds are durations; what is tiny only guards a division.
            is_part = isinstance(value, float) and 1e-5 < value < 2
            if is_part and not name.endswith('_S'):
                yield name, value


def _is_arithmetic(value: ast.expr) -> bool:
    allowed = ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator
    return all(
        isinstance(node, allowed | ast.unaryop) for node in ast.walk(value)
    )


def test_the_page_has_each_fraction_with_its_value():
    told = {name: float(value) for name, value in ROW.findall(_page())}
    assert told == {name: float(f'{value:g}') for name, value in _fractions()}


def test_the_page_names_each_fraction_once():
    names = [name for name, _ in ROW.findall(_page())]
    assert len(names) == len(set(names))


def _page() -> str:
    return PAGE.read_text()
