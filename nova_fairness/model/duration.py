# SPDX-License-Identifier: Apache-2.0

"""Parser of spans of time such as ``90``, ``30m`` or ``7d``."""

import re

_UNITS_S = {
    '': 1.0,
    's': 1.0,
    'm': 60.0,
    'h': 3600.0,
    'd': 86400.0,
    'w': 604800.0,
}
_FORM = re.compile(r'(\d{1,12}(?:\.\d{1,6})?)\s*([smhdw]?)', re.ASCII)

FORM = 'seconds, or a number with s, m, h, d or w, such as 12h'
"""Description of the expected form."""


def parse_seconds(text: str) -> float:
    """Parse a span of time into seconds.

    :raises ValueError: if the text is not a span of time.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'expected {FORM}, got {text[:40]!r}')
    return float(found[1]) * _UNITS_S[found[2]]
