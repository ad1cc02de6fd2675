# SPDX-License-Identifier: Apache-2.0

"""Reading what Nova wrote, field by field; errors show names, no values."""

from collections.abc import Mapping
import re
from typing import Any

from nova_fairness import exception

_VERSIONS = {'Instance': '2.'}
"""Of classes that are not of version 1."""

_UUID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_LONGEST_NAME = 255
_YES = frozenset({'1', 'true', 'yes', 'on', 't', 'y'})
MANY = 2**63
_UNWRITABLE = re.compile('[\0\ud800-\udfff]')
"""Characters that JSON can name and no database keeps."""


def versioned(value: object, name: str) -> Mapping[str, Any]:
    """The fields of an object of Nova.

    :param value: as ``oslo.versionedobjects`` writes it.
    :param name: of its class.
    :raises Unreadable: if it is none of the version known.
    """
    if not isinstance(value, dict) or value.get('nova_object.name') != name:
        raise exception.Unreadable(f'an object {name} of Nova is needed')
    known = _VERSIONS.get(name, '1.')
    if not str(value.get('nova_object.version')).startswith(known):
        raise exception.Unreadable(
            f'an object {name} must be of version {known}x'
        )
    fields = value.get('nova_object.data')
    if not isinstance(fields, dict):
        raise exception.Unreadable(f'an object {name} has no fields')
    return fields


def mapping(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A mapping; empty if it is missing or nothing.

    :raises Unreadable: if it is something else.
    """
    value = fields.get(name) or {}
    if not isinstance(value, dict):
        raise exception.Unreadable(f'{name} must be an object')
    return value


def listed(fields: Mapping[str, Any], name: str) -> list[Any]:
    """A list; empty if it is missing or nothing.

    :raises Unreadable: if it is something else.
    """
    value = fields.get(name) or []
    if not isinstance(value, list):
        raise exception.Unreadable(f'{name} must be a list')
    return value


def names(fields: Mapping[str, Any], name: str) -> list[str]:
    """A list of names; a set of Nova is written as a list, too.

    :raises Unreadable: if it is something else.
    """
    found = listed(fields, name)
    for each in found:
        _check_name(each, name)
    return found


def text(fields: Mapping[str, Any], name: str) -> str:
    """A name; '' if it is missing or nothing.

    :raises Unreadable: if it is something else.
    """
    value = fields.get(name)
    if value is None:
        return ''
    _check_name(value, name)
    return str(value)


def identity(fields: Mapping[str, Any], name: str) -> str:
    """A name that must be there.

    :raises Unreadable: if it is not.
    """
    value = text(fields, name)
    if not value:
        raise exception.Unreadable(f'{name} is missing')
    return value


def uuid(fields: Mapping[str, Any], name: str) -> str:
    """A UUID in small letters with dashes.

    :raises Unreadable: if it is something else.
    """
    value = identity(fields, name)
    if not _UUID.fullmatch(value):
        raise exception.Unreadable(f'{name} must be a UUID')
    return value


def number(fields: Mapping[str, Any], name: str) -> int:
    """A whole number >= 0; 0 if it is missing or nothing.

    :raises Unreadable: if it is something else.
    """
    value = fields.get(name)
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise exception.Unreadable(f'{name} must be a number of at least 0')
    return value


def whole(value: object) -> int | None:
    """The number in decimal digits; ``None`` if they are none.

    :returns: :data:`MANY` at most: Python does not read thousands of digits.
    """
    digits = str(value)
    if not digits.isdecimal():
        return None
    return int(digits) if len(digits) < len(str(MANY)) else MANY


def says_yes(value: object) -> bool:
    """Whether a word of metadata says yes; an unknown one does not."""
    return str(value).lower() in _YES


def _check_name(value: object, name: str) -> None:
    if (
        not isinstance(value, str)
        or len(value) > _LONGEST_NAME
        or _UNWRITABLE.search(value)
    ):
        raise exception.Unreadable(
            f'{name} must be text of at most {_LONGEST_NAME} characters, '
            'without NUL and without halves of surrogate pairs'
        )
