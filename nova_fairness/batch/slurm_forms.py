# SPDX-License-Identifier: Apache-2.0

"""Forms of Slurm's JSON, and values as these forms write them.

Slurm 22.05 writes ``openapi/v0.0.38``. Later versions write what one of their
``data_parser`` plugins says, several in each version. Forms that are not known
here are refused: fields of one name have other values there.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import json
import math
import re
from typing import Any

from nova_fairness import exception
from nova_fairness.batch import entries

Json = Mapping[str, Any]

SILENT = 45
"""It does not tell which jobs want whole nodes."""

BEST_FIRST = (44, 43, 42, 41, 40, 39, 38, SILENT)
"""Numbers of the forms that are read: 44 of ``v0.0.44``."""

KNOWN = 'v0.0.38 to v0.0.45, of Slurm 22.05 to 26.05'

_NAME = re.compile(
    r'(?:(?:openapi|data_parser)/)?v0\.0\.([0-9]{1,4})(?:\+.*)?'
)
_PLUGIN = re.compile(r'\bdata_parser/v0\.0\.([0-9]{1,4})\b')
_PATH = re.compile(r'/slurm/v0\.0\.([0-9]{1,4})/nodes/?')


def plugins(text: str) -> frozenset[int]:
    """Forms that a command of Slurm lists when asked for ``--json=list``."""
    return frozenset(map(int, _PLUGIN.findall(text)))


def paths(text: str) -> frozenset[int]:
    """Forms that slurmrestd tells nodes in, by its OpenAPI specification.

    :raises BatchUnreadable: if it is none.
    """
    try:
        found = map(_PATH.fullmatch, json.loads(text)['paths'])
        return frozenset(int(each[1]) for each in found if each)
    except exception.UNREADABLE as error:
        raise exception.BatchUnreadable(
            f'slurmrestd gave no list of its paths: {text[:100]!r}'
        ) from error


def best(offered: Iterable[int]) -> int:
    """Choose a form.

    :raises BatchUnreadable: if none of them is known here.
    """
    given = sorted(offered)
    for form in BEST_FIRST:
        if form in given:
            return form
    names = ', '.join(map(title, given)) or 'none'
    raise exception.BatchUnreadable(
        f'Slurm offers no form of JSON that is known here: it offers {names},'
        f' and known are {KNOWN}; install a newer nova-fairness, or an older'
        ' data_parser plugin of Slurm'
    )


def title(form: int) -> str:
    """Name of a form, as Slurm's options and paths have it."""
    return f'v0.0.{form}'


def form_of(written: Json) -> int:
    """Form of an answer, by what it says of itself.

    :raises BatchUnreadable: if it is not known here.
    :raises LookupError: if the answer does not say, as of what is none.
    """
    meta = written['meta']
    # Commands of 23.02 have several in one.
    plugin = meta['plugins'] if 'plugins' in meta else meta['plugin']
    name = str(plugin.get('data_parser') or plugin['type'])
    match = _NAME.fullmatch(name)
    if match is None or int(match[1]) not in BEST_FIRST:
        raise exception.BatchUnreadable(
            f'Slurm wrote the form {name:.100}, and known are {KNOWN}'
        )
    return int(match[1])


def number(entry: Json, key: str) -> float:
    """A number of an entry.

    :raises KeyError: if it is missing.
    :raises ValueError: if it is not set, or not >= 0 and finite.
    """
    found = maybe(entry[key])
    if found is None or found == math.inf:
        raise ValueError(
            f'{key} is not set' if found is None else f'{key} is infinite'
        )
    return found


def maybe(value: object) -> float | None:
    """A number >= 0, which ``{set, infinite, number}`` may wrap.

    :returns: infinity for what Slurm calls so; ``None`` for what is not set.
    :raises KeyError: if a part of it is missing.
    :raises ValueError: if it is another number.
    """
    if isinstance(value, Mapping):
        if value['infinite']:
            return math.inf
        value = value['number'] if value['set'] else None
    if value == 'Infinity':
        return math.inf
    return None if value is None else entries.number(value)


def words(value: object) -> frozenset[str]:
    """A word or a list of words, in capitals; nothing for what is not set."""
    if value is None or not value:
        return frozenset()
    each = value if isinstance(value, list) else [value]
    return frozenset(entries.text(word).upper() for word in each)
