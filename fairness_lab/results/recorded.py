# SPDX-License-Identifier: Apache-2.0

"""Parts of a recording that are JSON: the agents' rounds, fio's results."""

from collections.abc import Iterator
from collections.abc import Mapping
import json
import pathlib
from typing import Any

from fairness_lab.results import tables

RECORD_VERSION = 1


def rounds_by_node(
    folder: pathlib.Path, name: str
) -> Mapping[str, tuple[Mapping[str, Any], ...]]:
    """Read the agents' rounds.

    :param folder: in which each node has a directory.
    :param name: of the file in it.
    :raises LabError: if one cannot be understood.
    """
    return {
        path.parent.name: tuple(_rounds(path))
        for path in sorted(folder.glob(f'*/{name}'))
    }


def _rounds(path: pathlib.Path) -> Iterator[Mapping[str, Any]]:
    whole, _, _cut_off = tables.text(path).rpartition('\n')
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            entry = json.loads(line)
        except json.JSONDecodeError as error:
            raise tables.wrong(path, number, f'no JSON: {error.msg}') from None
        if not isinstance(entry, dict) or 'instances' not in entry:
            raise tables.wrong(
                path, number, 'expected a round with its instances'
            )
        if entry.get('version') != RECORD_VERSION:
            raise tables.wrong(
                path,
                number,
                f'expected version {RECORD_VERSION} of the record, '
                f'got {entry.get("version")!r}',
            )
        yield entry


def fio(path: pathlib.Path) -> Mapping[str, Mapping[str, float]]:
    """Read what fio moved, by VM; nothing if it was not asked to.

    :raises LabError: if it cannot be understood.
    """
    if not path.is_file():
        return {}
    try:
        found = json.loads(tables.text(path))
        return {
            str(vm): {str(k): float(v) for k, v in values.items()}
            for vm, values in found.items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise tables.wrong(
            path, 1, f'expected numbers by VM: {error}'
        ) from None
