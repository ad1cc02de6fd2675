# SPDX-License-Identifier: Apache-2.0

"""Files of YAML, read so that what is wrong is told with its line."""

from collections.abc import Mapping
from collections.abc import Sequence
import pathlib

import yaml

from nova_fairness import exception
from nova_fairness.rpc import protocol

Stamp = tuple[int, int, int]


class File:
    """A file of YAML.

    :param path: of the file.
    :param error: is raised if something is wrong with it.
    """

    def __init__(
        self, path: pathlib.Path, error: type[exception.ClusterError]
    ) -> None:
        self._path = path
        self._error = error

    def root(self) -> yaml.Node:
        """All of it; every scalar is text.

        :raises ClusterError: the one that was given, if it cannot be read.
        """
        path = self._path
        try:
            # An ID of digits alone stays what it is.
            text = path.read_text('utf-8')
            node = yaml.compose(text, Loader=yaml.BaseLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise self._error(
                f'{path}, line {mark.line + 1 if mark else 1}: expected YAML:'
                f' {error.problem}'
            ) from error
        except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
            why = str(error).splitlines()[0]
            if isinstance(error, RecursionError):
                why = 'it is nested too deep'
            raise self._error(f'{path} cannot be read: {why}') from error
        if node is None:
            raise self._error(f'{path} is empty')
        return node

    def section(
        self, node: yaml.Node, keys: Sequence[str]
    ) -> Mapping[str, yaml.Node]:
        """Values by key, each key once.

        :param keys: that there may be.
        :raises ClusterError: the one that was given.
        """
        found: dict[str, yaml.Node] = {}
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong(node, f'expected {", ".join(keys)} with values')
        for key, value in node.value:
            name = key.value
            if name not in keys:
                raise self.wrong(
                    key, f'unknown key {name!r}, there is {", ".join(keys)}'
                )
            if name in found:
                raise self.wrong(key, f'the key {name} comes twice')
            found[name] = value
        return found

    def text(self, node: yaml.Node) -> str:
        """One short text.

        :raises ClusterError: the one that was given.
        """
        text = str(node.value) if isinstance(node, yaml.ScalarNode) else ''
        most = protocol.LONGEST_NAME
        if not (text.strip() and text.isprintable() and len(text) <= most):
            raise self.wrong(
                node, f'expected a text of 1 to {most} printable characters'
            )
        return text

    def wrong(self, node: yaml.Node, what: str) -> exception.ClusterError:
        """The error to be raised for a part of the file."""
        line = node.start_mark.line + 1
        return self._error(f'{self._path}, line {line}: {what}')

    def failed(self, what: str) -> exception.ClusterError:
        """The error to be raised for all of it."""
        return self._error(f'{self._path}, {what}')


def stamp(path: pathlib.Path) -> Stamp | None:
    """Differs when a file does; ``None`` if it cannot be looked at."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
