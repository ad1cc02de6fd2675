# SPDX-License-Identifier: Apache-2.0

"""Readers of fields in Nova's messages; their errors contain names, but no
values.
"""

from collections.abc import Mapping
import re
from typing import Any

from nova_fairness import exception

_VERSIONS = {'Instance': '2.'}
"""Versions of classes other than version 1."""

_UUID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_LONGEST_NAME = 255
_YES = frozenset({'1', 'true', 'yes', 'on', 't', 'y'})
MANY = 2**63
_UNWRITABLE = re.compile('[\0\ud800-\udfff]')
"""Characters that JSON can contain and no database stores."""


def object_fields(value: object, class_name: str) -> Mapping[str, Any]:
    """Return the fields of a serialized object of Nova.

    :param value: object as ``oslo.versionedobjects`` serializes it.
    :param class_name: name of its class.
    :raises Unreadable: if it is another object, or of an unknown version.
    """
    if (
        not isinstance(value, dict)
        or value.get('nova_object.name') != class_name
    ):
        raise exception.Unreadable(f'an object {class_name} of Nova is needed')
    known = _VERSIONS.get(class_name, '1.')
    if not str(value.get('nova_object.version')).startswith(known):
        raise exception.Unreadable(
            f'an object {class_name} must be of version {known}x'
        )
    fields = value.get('nova_object.data')
    if not isinstance(fields, dict):
        raise exception.Unreadable(f'an object {class_name} has no fields')
    return fields


def mapping_field(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a field with a mapping; empty if the field is missing or empty.

    :raises Unreadable: if the field has another type.
    """
    value = fields.get(name) or {}
    if not isinstance(value, dict):
        raise exception.Unreadable(f'{name} must be a JSON object')
    return value


def list_field(fields: Mapping[str, Any], name: str) -> list[Any]:
    """Return a field with a list; empty if the field is missing or empty.

    :raises Unreadable: if the field has another type.
    """
    value = fields.get(name) or []
    if not isinstance(value, list):
        raise exception.Unreadable(f'{name} must be a list')
    return value


def name_list_field(fields: Mapping[str, Any], name: str) -> list[str]:
    """Return a field with a list of names; Nova serializes sets as lists, too.

    :raises Unreadable: if the field has another type.
    """
    found = list_field(fields, name)
    for each in found:
        _check_name(each, name)
    return found


def text_field(fields: Mapping[str, Any], name: str) -> str:
    """Return a field with a name; '' if the field is missing.

    :raises Unreadable: if the field has another type.
    """
    value = fields.get(name)
    if value is None:
        return ''
    _check_name(value, name)
    return str(value)


def required_text_field(fields: Mapping[str, Any], name: str) -> str:
    """Return a field with a name that must not be empty.

    :raises Unreadable: if the field is missing or not a name.
    """
    value = text_field(fields, name)
    if not value:
        raise exception.Unreadable(f'{name} is missing')
    return value


def uuid_field(fields: Mapping[str, Any], name: str) -> str:
    """Return a field with a UUID in lower case with dashes.

    :raises Unreadable: if the field has another form.
    """
    value = required_text_field(fields, name)
    if not _UUID.fullmatch(value):
        raise exception.Unreadable(f'{name} must be a UUID')
    return value


def count_field(fields: Mapping[str, Any], name: str) -> int:
    """Return a field with a whole number >= 0; 0 if the field is missing.

    :raises Unreadable: if the field has another type.
    """
    value = fields.get(name)
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise exception.Unreadable(f'{name} must be a number of at least 0')
    return value


def parse_decimal(value: object) -> int | None:
    """Return the number in a text of decimal digits; ``None`` for other text.

    :returns: at most :data:`MANY`, because Python does not read thousands of
        digits.
    """
    digits = str(value)
    if not digits.isdecimal():
        return None
    return int(digits) if len(digits) < len(str(MANY)) else MANY


def means_yes(value: object) -> bool:
    """Return whether a value of metadata means yes; unknown words do not."""
    return str(value).lower() in _YES


def _check_name(value: object, name: str) -> None:
    """Check that a value is a name that databases can store.

    :raises Unreadable: if it is not.
    """
    if (
        not isinstance(value, str)
        or len(value) > _LONGEST_NAME
        or _UNWRITABLE.search(value)
    ):
        raise exception.Unreadable(
            f'{name} must be text of at most {_LONGEST_NAME} characters, '
            'without NUL and without halves of surrogate pairs'
        )
