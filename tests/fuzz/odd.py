# SPDX-License-Identifier: Apache-2.0

"""Odd values, and documents in which some of them took places."""

import copy
import datetime as dt
import math

NESTED = [[[[[[[[]]]]]]]]
TEXTS = (
    '', 'x', '0', '-1', '...', 'None', 'nan', '\0', '\ud800', 'é' * 300,
    '../..', "' OR 1=1 --", 'a\nb', '%s{}', '1' * 5000, '0 0 1 1 * 0 2030',
    '@yearly', 'default', 'h1', 'true', '2038-01-19T03:14:08',
    '0001-01-01T00:00:00', '9999-12-31T23:59:59Z',
)  # fmt: skip
NUMBERS = (
    0, -1, 1, 2, 7, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64,
    10**30, -(2**63), 0.5, 1e-300, 1e308, -0.0, math.inf, -math.inf, math.nan,
)  # fmt: skip
OTHERS = (None, True, False, [], {}, [None], [[]], {'x': {}}, NESTED, [7, 'x'])


def value(rng):
    """Something that was not expected."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice(TEXTS)
    if kind == 1:
        return rng.choice(NUMBERS)
    if kind == 2:
        return copy.deepcopy(rng.choice(OTHERS))
    return rng.choice([rng.randrange(-9, 99), rng.random() * 1e6])


def number(rng):
    """A number, or what somebody may have taken for one."""
    return rng.choice([*NUMBERS, rng.random(), None, 'x', True])


def change_document(rng, document, times=None):
    """A document of JSON types with some odd values in it."""
    held = {'': copy.deepcopy(document)}
    for _ in range(times or rng.choice((1, 1, 1, 2, 3, 8))):
        _change(rng, held)
    return held['']


def _change(rng, held):
    places = list(_places(held))
    holder, key = rng.choice(places)
    what = rng.randrange(8)
    old = holder[key]
    if what == 0 and key != '':
        del holder[key]
    elif what == 1 and isinstance(old, dict | list) and old:
        _grow(rng, old)
    elif what == 2 and isinstance(old, str):
        holder[key] = old[: rng.randrange(len(old) + 1)] + rng.choice(TEXTS)
    elif what == 3:
        # What is right at one place is odd at another.
        other, name = rng.choice(places)
        holder[key] = copy.deepcopy(other[name])
    else:
        holder[key] = value(rng)


def _grow(rng, old):
    if isinstance(old, list):
        old.extend(copy.deepcopy(old[: rng.randrange(1, 4)]))
    else:
        old[rng.choice([*TEXTS[:5], *map(str, range(3))])] = value(rng)


def _places(node, most=4000):
    """Holder and key of all values, also of those deep within."""
    left = [node]
    while left and most:
        holder = left.pop()
        keys = holder if isinstance(holder, dict) else range(len(holder))
        for key in list(keys):
            most -= 1
            yield holder, key
            if isinstance(holder[key], dict | list):
                left.append(holder[key])


def cut(rng, text):
    """A text with some characters lost, doubled or replaced."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(text) + 1)
        to = min(at + rng.choice((0, 1, 1, 5, 40)), len(text))
        text = (
            text[:at] + rng.choice((*TEXTS[:14], text[at:to] * 2)) + text[to:]
        )
    return text


def zone(rng):
    """A zone of time, or none."""
    return rng.choice([dt.UTC, dt.timezone(dt.timedelta(hours=14)), None])
