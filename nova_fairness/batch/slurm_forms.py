# SPDX-License-Identifier: Apache-2.0

"""Forms of Slurm's JSON, and values as these forms write them.

Slurm 22.05 writes ``openapi/v0.0.38``. Later versions write the forms of their
``data_parser`` plugins, several in each version. Forms that are not known here
are refused: their fields may have other values under the same names.
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
"""Number of the form that does not tell which jobs want whole nodes."""

BEST_FIRST = (44, 43, 42, 41, 40, 39, 38, SILENT)
"""Numbers of the forms that can be read, the best first: 44 stands for
``v0.0.44``.
"""

KNOWN = 'v0.0.38 to v0.0.45, of Slurm 22.05 to 26.05'

_NAME = re.compile(
    r'(?:(?:openapi|data_parser)/)?v0\.0\.([0-9]{1,4})(?:\+.*)?'
)
_PLUGIN = re.compile(r'\bdata_parser/v0\.0\.([0-9]{1,4})\b')
_PATH = re.compile(r'/slurm/v0\.0\.([0-9]{1,4})/nodes/?')


def form_numbers_of_plugins(text: str) -> frozenset[int]:
    """Return the form numbers in the output of ``--json=list``."""
    return frozenset(map(int, _PLUGIN.findall(text)))


def form_numbers_of_paths(text: str) -> frozenset[int]:
    """Return the form numbers in the OpenAPI specification of slurmrestd.

    :raises BatchUnreadable: if the text is no such specification.
    """
    try:
        found = map(_PATH.fullmatch, json.loads(text)['paths'])
        return frozenset(int(each[1]) for each in found if each)
    except exception.UNREADABLE as error:
        raise exception.BatchUnreadable(
            f'slurmrestd gave no list of its paths: {text[:100]!r}'
        ) from error


def choose_form(form_numbers: Iterable[int]) -> int:
    """Return the best of the offered forms.

    :raises BatchUnreadable: if no offered form is known here.
    """
    given = sorted(form_numbers)
    for form in BEST_FIRST:
        if form in given:
            return form
    names = ', '.join(map(form_name, given)) or 'none'
    raise exception.BatchUnreadable(
        f'Slurm offers no form of JSON that is known here: it offers {names},'
        f' and known are {KNOWN}; install a newer nova-fairness, or an older'
        ' data_parser plugin of Slurm'
    )


def form_name(form: int) -> str:
    """Return the name of a form, as in options and paths of Slurm."""
    return f'v0.0.{form}'


def form_of_answer(answer: Json) -> int:
    """Return the number of the form that an answer names.

    :raises BatchUnreadable: if the form is not known here.
    :raises LookupError: if the answer names no form.
    """
    meta = answer['meta']
    # Commands of 23.02 have several plugins in one answer.
    plugin = meta['plugins'] if 'plugins' in meta else meta['plugin']
    name = str(plugin.get('data_parser') or plugin['type'])
    match = _NAME.fullmatch(name)
    if match is None or int(match[1]) not in BEST_FIRST:
        raise exception.BatchUnreadable(
            f'Slurm wrote the form {name:.100}, and known are {KNOWN}'
        )
    return int(match[1])


def number(entry: Json, key: str) -> float:
    """Return the number of a key of an entry.

    :raises KeyError: if it is missing.
    :raises ValueError: if it is not set, or not >= 0 and finite.
    """
    found = optional_number(entry[key])
    if found is None or found == math.inf:
        raise ValueError(
            f'{key} is not set' if found is None else f'{key} is infinite'
        )
    return found


def optional_number(value: object) -> float | None:
    """Return a number >= 0; ``{set, infinite, number}`` may wrap it.

    :returns: infinity if Slurm says so; ``None`` if the value is not set.
    :raises KeyError: if a part of the value is missing.
    :raises ValueError: if the number is < 0.
    """
    if isinstance(value, Mapping):
        if value['infinite']:
            return math.inf
        value = value['number'] if value['set'] else None
    if value == 'Infinity':
        return math.inf
    return None if value is None else entries.checked_number(value)


def upper_words(value: object) -> frozenset[str]:
    """Return words in capitals, from a word, a list or an unset value."""
    if value is None or not value:
        return frozenset()
    each = value if isinstance(value, list) else [value]
    return frozenset(entries.checked_text(word).upper() for word in each)
