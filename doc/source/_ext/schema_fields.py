# SPDX-License-Identifier: Apache-2.0

"""The directive that lists the fields that a JSON schema describes."""

from collections.abc import Iterator
import importlib
import json
import pathlib
import textwrap
from typing import Any

from docutils import nodes
from sphinx.util import docutils

TOP = pathlib.Path(__file__).resolve().parents[3]


def _below(path: str, schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, part in schema.get('properties', {}).items():
        inner = f'{path}.{name}' if path else name
        yield inner, part
        yield from _below(inner, part)
    if isinstance(part := schema.get('additionalProperties'), dict):
        inner = f'{path}.<{schema.get("x-key", "name")}>'
        if 'description' in part:
            yield inner, part
        yield from _below(inner, part)
    if isinstance(part := schema.get('items'), dict):
        yield from _below(f'{path}[]', part)


def _kind(part: dict[str, Any]) -> str:
    if 'const' in part:
        return str(part['const'])
    if 'enum' in part:
        return ', '.join(each or 'null' for each in part['enum'])
    kinds = part.get('type', 'object')
    return kinds if isinstance(kinds, str) else ' or '.join(kinds)


def text(place: str, path: str = '') -> str:
    """Definition list of the fields that a schema describes.

    :param place: of the schema: a file, from the top of the tree, or the name
        of a schema in ``api_ext.schemas``, such as ``share:ITEM``. After ``#``
        comes the key of one of the schemas of a file.
    :param path: of the object that it is for.
    """
    schema = _schema(place)
    items = []
    for name, part in _below(path, schema):
        if 'description' in part:
            said = textwrap.indent(part['description'], '    ')
            items.append(f'``{name}`` ({_kind(part)})\n{said}\n')
    return '\n'.join(items)


def _schema(place: str) -> Any:
    module, is_named, name = place.partition(':')
    if is_named:
        schemas = importlib.import_module(f'api_ext.schemas.{module}')
        return getattr(schemas, name)
    path, _, part = place.partition('#')
    found = json.loads((TOP / path).read_text('utf-8'))
    return found[part] if part else found


class SchemaFields(docutils.SphinxDirective):
    """``.. schema-fields:: SCHEMA [OBJECT]``."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The definition list."""
        place = self.arguments[0]
        if ':' not in place:
            self.env.note_dependency(str(TOP / place.partition('#')[0]))
        return self.parse_text_to_nodes(text(*self.arguments))


def setup(app: object) -> dict[str, bool]:
    """Add the directive to Sphinx."""
    app.add_directive('schema-fields', SchemaFields)
    return {'parallel_read_safe': True}
