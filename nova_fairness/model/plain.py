# SPDX-License-Identifier: Apache-2.0

"""Text of others as it may be written into a log or on a terminal.

Names of servers, projects, groups, hosts and plugins, and what other services
say, may hold anything: ends of lines that begin what looks like another entry,
sequences that a terminal obeys, marks that turn the direction of writing, and
halves of characters that cannot be encoded.
"""

import re

_TAGS = re.compile(
    r'\s*<[/!]?(?:a|address|b|body|br|center|div|doctype|h[1-6]|head|hr|html'
    r'|meta|p|pre|span|style|title)\b[^<>]*>\s*',
    re.IGNORECASE,
)
"""Tags of pages that proxies and services answer to programs, too."""


def untagged(text: str) -> str:
    """The same without tags of HTML."""
    if '<' not in text:
        return text
    return _TAGS.sub(' ', text).strip()


def line(text: object) -> str:
    """One line: what cannot be printed is written as an escape sequence."""
    told = str(text)
    if told.isprintable():
        return told
    return ''.join(map(_written, told))


def lines(text: object) -> str:
    """The same line by line; ends of lines stay."""
    told = str(text)
    return '\n'.join(map(line, told.split('\n')))


def _written(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode('unicode_escape').decode('ascii')
