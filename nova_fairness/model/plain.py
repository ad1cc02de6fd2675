# SPDX-License-Identifier: Apache-2.0

"""Functions that make foreign text safe for logs and terminals.

Names of servers, projects, groups, hosts and plugins, and texts of other
services, may contain any characters: line breaks that imitate another log
entry, control sequences of terminals, marks that reverse the direction of
writing, and surrogates that cannot be encoded.
"""

import re

_TAGS = re.compile(
    r'\s*<[/!]?(?:a|address|b|body|br|center|div|doctype|h[1-6]|head|hr|html'
    r'|meta|p|pre|span|style|title)\b[^<>]*>\s*',
    re.IGNORECASE,
)
"""HTML tags of the error pages of proxies and services."""


def untagged(text: str) -> str:
    """Return a text without HTML tags."""
    if '<' not in text:
        return text
    return _TAGS.sub(' ', text).strip()


def line(text: object) -> str:
    """Return a text as one line; unprintable characters become escape
    sequences.
    """
    told = str(text)
    if told.isprintable():
        return told
    return ''.join(map(_escaped, told))


def lines(text: object) -> str:
    """Apply :func:`line` to each line of a text; line breaks remain."""
    told = str(text)
    return '\n'.join(map(line, told.split('\n')))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode('unicode_escape').decode('ascii')
