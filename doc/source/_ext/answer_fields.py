# SPDX-License-Identifier: Apache-2.0

"""The directive that lists the fields of an agent's answer."""

import ast
from collections.abc import Iterator
import inspect
import itertools
import pathlib
import re
import textwrap
from typing import NamedTuple

from docutils import nodes
from sphinx.util import docutils

from nova_fairness.rpc import answers

_CALL = re.compile(r'^\.\. answer-fields:: (\w+) (\w+)$', re.MULTILINE)
_KINDS = {
    'str': 'string',
    'int': 'integer',
    'float': 'number',
    'bool': 'boolean',
    'dict': 'object',
    'list': 'array',
}


class Field(NamedTuple):
    """A field of an answer.

    :ivar path: from the method on.
    :ivar kind: of JSON, such as ``array or null``.
    :ivar said: sentences; empty for the members of an object.
    """

    path: str
    kind: str
    said: str


def fields(method: str, answer: str) -> Iterator[Field]:
    """All fields of an answer, an outer one before its inner ones.

    :param method: where paths begin.
    :param answer: name of a class of the module of answers.
    """
    tree = ast.parse(inspect.getsource(getattr(answers, answer)))
    for field, said in itertools.pairwise(tree.body[0].body):
        if isinstance(field, ast.AnnAssign):
            yield from _of_type(
                f'{method}.{field.target.id}',
                field.annotation,
                ' '.join(said.value.value.split()),
            )


def _of_type(path: str, kind: ast.expr, said: str) -> Iterator[Field]:
    if isinstance(kind, ast.BinOp):
        first, *inner = _of_type(path, kind.left, said)
        yield first._replace(kind=f'{first.kind} or null')
        yield from inner
    elif isinstance(kind, ast.Name):
        yield Field(path, _KINDS.get(kind.id, 'object'), said)
        if kind.id not in _KINDS:
            yield from fields(path, kind.id)
    elif kind.value.id == 'list':
        yield Field(path, 'array', said)
        if kind.slice.id not in _KINDS:
            yield from fields(f'{path}[]', kind.slice.id)
    else:
        key, value = kind.slice.elts
        yield Field(path, 'object', said)
        name = key.id.removesuffix('Key').lower()
        yield from _of_type(f'{path}.<{name}>', value, '')


def text(method: str, answer: str) -> str:
    """Definition list of an answer; fields without a sentence are no items."""
    found = list(fields(method, answer))
    items = []
    for field, after in zip(found, [*found[1:], None], strict=True):
        kind = field.kind
        if after and after.path.startswith(f'{field.path}.<'):
            kind = f'object of {after.kind}s'.replace(' or nulls', 's or null')
        if field.said:
            said = textwrap.indent(textwrap.fill(field.said, 95), '    ')
            items.append(f'``{field.path}`` ({kind})\n{said}\n')
    return '\n'.join(items)


def documented(page: pathlib.Path) -> dict[str, str]:
    """Kinds of all fields that a page lists, by path."""
    return {
        field.path: field.kind
        for call in _CALL.findall(page.read_text('utf-8'))
        for field in fields(*call)
    }


class AnswerFields(docutils.SphinxDirective):
    """``.. answer-fields:: METHOD CLASS``."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        """The definition list."""
        return self.parse_text_to_nodes(text(*self.arguments))


def setup(app: object) -> dict[str, bool]:
    """Add the directive to Sphinx."""
    app.add_directive('answer-fields', AnswerFields)
    return {'parallel_read_safe': True}
