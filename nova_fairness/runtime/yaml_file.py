# SPDX-License-Identifier: Apache-2.0

"""YAML files, read with line numbers for error messages."""

from collections.abc import Mapping
from collections.abc import Sequence
import pathlib

import yaml

from nova_fairness import exception

LONGEST = 255
"""Largest number of characters of a text, as in names of Nova."""


class YamlFile:
    """A YAML file.

    :param path: of the file.
    :param error: class of the errors to raise.
    """

    def __init__(
        self, path: pathlib.Path, error: type[exception.FairnessError]
    ) -> None:
        self.path = path
        self._error = error

    def read_root(self) -> yaml.Node:
        """Return the root node; every scalar is text.

        :raises FairnessError: of the given class, if the file cannot be read.
        """
        path = self.path
        try:
            text = path.read_text('utf-8')
            node = compose(text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise self._error(
                f'{path}, line {mark.line + 1 if mark else 1}: expected YAML:'
                f' {error.problem}'
            ) from error
        except yaml.reader.ReaderError as error:
            line = text.count('\n', 0, error.position) + 1
            raise self._error(
                f'{path}, line {line}: expected YAML: {error.reason}'
            ) from error
        except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
            why = str(error).splitlines()[0]
            if isinstance(error, RecursionError):
                why = 'it is nested too deep'
            raise self._error(f'{path} cannot be read: {why}') from error
        if node is None:
            raise self._error(f'{path}, line 1: the file is empty')
        return node

    def parse_mapping(
        self, node: yaml.Node, keys: Sequence[str]
    ) -> Mapping[str, yaml.Node]:
        """Return the values of a mapping node by key.

        :param keys: allowed keys.
        :raises FairnessError: of the given class.
        """
        found: dict[str, yaml.Node] = {}
        if not isinstance(node, yaml.MappingNode):
            raise self.node_error(
                node, f'expected {", ".join(keys)} with values'
            )
        for key, value in node.value:
            name = key.value
            if name not in keys:
                raise self.node_error(
                    key, f'unknown key {name!r}, there is {", ".join(keys)}'
                )
            if name in found:
                raise self.node_error(key, f'the key {name} comes twice')
            found[name] = value
        return found

    def parse_text(self, node: yaml.Node) -> str:
        """Return the text of a scalar node.

        :raises FairnessError: of the given class.
        """
        text = str(node.value) if isinstance(node, yaml.ScalarNode) else ''
        most = LONGEST
        if not (text.strip() and text.isprintable() and len(text) <= most):
            raise self.node_error(
                node, f'expected a text of 1 to {most} printable characters'
            )
        return text

    def node_error(
        self, node: yaml.Node, what: str
    ) -> exception.FairnessError:
        """Return an error for a node, with its line."""
        line = node.start_mark.line + 1
        return self._error(f'{self.path}, line {line}: {what}')

    def file_error(self, what: str) -> exception.FairnessError:
        """Return an error for the whole file."""
        return self._error(f'{self.path}, {what}')


def compose(text: str) -> yaml.Node | None:
    """Return the root node of a YAML text; every scalar is text.

    :returns: ``None`` if the text is empty.
    :raises YAMLError: if it is no YAML.
    """
    # An ID of digits alone stays what it is.
    return yaml.compose(text, Loader=yaml.BaseLoader)
