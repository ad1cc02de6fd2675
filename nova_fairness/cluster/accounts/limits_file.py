# SPDX-License-Identifier: Apache-2.0

"""Reader of the file with nominal quotas and ceilings of projects."""

from collections.abc import Mapping
import json
import pathlib
from typing import Any

from nova_fairness import exception
from nova_fairness.cluster.accounts import fields
from nova_fairness.model import cluster

_PARTS = ('guaranteed', 'ceiling', 'preemptible')


def read(path: pathlib.Path) -> dict[str, cluster.Limits]:
    """Read the limits of projects from a file.

    :param path: JSON file: amounts by project, then by ``guaranteed``,
        ``ceiling`` or ``preemptible``, then by resource class.
    :raises ConfigurationError: if the file cannot be read or is invalid.
    """
    try:
        written = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, *exception.UNREADABLE) as error:
        raise exception.ConfigurationError(
            f'{path} cannot be read: {error}'
        ) from error
    if not isinstance(written, dict):
        raise exception.ConfigurationError(f'{path} must be an object of JSON')
    return {
        project: _parse_limits(f'{path}: {project}', parts)
        for project, parts in written.items()
    }


def _parse_limits(where: str, parts: Any) -> cluster.Limits:
    if not isinstance(parts, dict) or not parts.keys() <= set(_PARTS):
        raise exception.ConfigurationError(
            f'{where} must have {" and ".join(_PARTS)}, nothing else'
        )
    return cluster.Limits(
        *(
            _parse_amounts(f'{where}: {part}', parts.get(part, {}))
            for part in _PARTS
        )
    )


def _parse_amounts(where: str, written: Any) -> Mapping[str, int]:
    good = isinstance(written, dict) and all(
        type(amount) is int and 0 <= amount <= fields.LARGEST_AMOUNT
        for amount in written.values()
    )
    if not good:
        raise exception.ConfigurationError(
            f'{where} must be a map of resource classes to whole numbers from'
            f' 0 to {fields.LARGEST_AMOUNT:g}'
        )
    return dict(written)
