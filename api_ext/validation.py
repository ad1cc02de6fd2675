# SPDX-License-Identifier: Apache-2.0

"""Validation of external input by JSON schemas."""

from collections.abc import Mapping
import functools
import itertools
import json
import math
import re
from typing import Any
import urllib.parse

import jsonschema

from api_ext import faults
from api_ext.schemas import patterns

Schema = Mapping[str, Any]

_LONGEST_SHOWN = 300
_MOST_PARAMETERS = 20
_SURROGATE = re.compile('[\ud800-\udfff]')
_HAS_SURROGATE = (
    'contains a lone surrogate (half of a character), expected valid Unicode'
)


class SchemaValidator:
    """Validates values by one schema.

    :param schema: schema of JSON Schema 2020-12.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._validator = jsonschema.Draft202012Validator(schema)

    def check(self, value: Any, what: str) -> None:
        """Validate a value.

        :param what: name of the value in errors.
        :raises BadRequest: if it does not follow the schema; the error has the
            place and the expected value.
        """
        try:
            error = jsonschema.exceptions.best_match(
                self._validator.iter_errors(value)
            )
            if error is None:
                return
            place = '.'.join(map(str, error.absolute_path)) or what
            message = f'{place}: {_error_text(error)[:_LONGEST_SHOWN]}'
        except RecursionError:
            message = f'{what} is nested too deeply'
        raise faults.BadRequest(message)


def _error_text(error: jsonschema.exceptions.ValidationError) -> str:
    """Return the text of an error with the expected value, without a
    pattern.
    """
    expected = patterns.MEANINGS.get(str(error.validator_value))
    if error.validator == 'pattern' and expected:
        return f'{error.instance!r} is not a valid {expected}'
    if error.validator in ('anyOf', 'oneOf'):
        needed = [each.get('required') for each in error.validator_value]
        if all(needed):
            names = itertools.chain.from_iterable(needed)
            return f'expected at least one of {", ".join(names)}'
    return str(error.message)


class AnswerReader:
    """Parses answers of another process, possibly of another release.

    Properties that the schema does not name are removed at every level: a
    newer release may have more, and no permission is defined for them.
    Properties of the schema may be missing, except those in ``needs``. Values
    must follow the schema, but values of an enumeration may be unknown,
    because a newer release may have more of them.

    :param schema: schema of JSON Schema 2020-12.
    :param needs: required properties, which identify the answer and determine
        who may read it.
    """

    def __init__(self, schema: Schema, *needs: str) -> None:
        self._schema = schema
        self._judge = SchemaValidator({**_lenient(schema), 'required': needs})

    def read(self, value: Any, what: str) -> Any:
        """Return the part of a value that the schema names.

        :param what: name of the value in errors.
        :raises BadRequest: if it does not follow the schema; the error has the
            place and the expected value.
        """
        self._judge.check(value, what)
        return _pruned(value, self._schema)


_TYPES = {str: 'string', bool: 'boolean', int: 'integer', type(None): 'null'}


def _lenient(schema: Any) -> Any:
    """Return a schema that permits unknown and missing properties."""
    if isinstance(schema, list):
        return [_lenient(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {
        key: _lenient(each)
        for key, each in schema.items()
        if not (key == 'additionalProperties' and each is False)
        and key not in ('enum', 'required', 'minProperties')
    }
    if 'enum' in schema and 'type' not in schema:
        made['type'] = sorted({_TYPES[type(each)] for each in schema['enum']})
    properties = schema.get('properties')
    if isinstance(properties, Mapping):
        # Names of properties are not keywords of a schema.
        made['properties'] = {
            name: _lenient(each) for name, each in properties.items()
        }
    return made


def _pruned(value: Any, schema: Schema) -> Any:
    """Return the part of a value that a schema names.

    :raises BadRequest: if it contains a number that JSON does not allow.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise faults.BadRequest(f'{value} is not a number in JSON')
    if isinstance(value, list):
        items = schema.get('items', {})
        return [_pruned(each, items) for each in value]
    if not isinstance(value, dict):
        return value
    named, others = schema.get('properties', {}), _unnamed_schema(schema)
    return {
        key: _pruned(each, named.get(key, others or {}))
        for key, each in value.items()
        if key in named or others is not None
    }


def _unnamed_schema(schema: Schema) -> Schema | None:
    """Return the schema of unnamed properties; ``None`` if they are not
    permitted.
    """
    others = schema.get('additionalProperties', 'properties' not in schema)
    if others is False:
        return None
    return others if isinstance(others, Mapping) else {}


@functools.cache
def _text_validator(pattern: str) -> SchemaValidator:
    return SchemaValidator({'type': 'string', 'pattern': pattern})


def parse_json(text: bytes) -> Any:
    """Parse a JSON body.

    :raises BadRequest: if it is not JSON, contains a key twice, or contains a
        value that JSON does not allow, such as NaN, or that UTF-8 does not
        allow.
    """
    try:
        value = json.loads(
            text.decode('utf-8'),
            object_pairs_hook=_without_duplicates,
            parse_constant=_reject_constant,
        )
    except RecursionError as error:
        raise faults.BadRequest('the body is nested too deeply') from error
    except ValueError as error:
        raise faults.BadRequest(
            f'the body is not JSON in UTF-8: {error}'
        ) from error
    _check_texts(value)
    return value


def _check_texts(value: Any) -> None:
    """Check that all texts of a body are valid Unicode."""
    left = [('body', value)]
    while left:
        place, each = left.pop()
        if isinstance(each, str) and _SURROGATE.search(each):
            raise faults.BadRequest(f'{place}: {_HAS_SURROGATE}')
        if isinstance(each, list):
            left += [(f'{place}.{n}', one) for n, one in enumerate(each)]
        if isinstance(each, dict):
            if any(map(_SURROGATE.search, each)):
                raise faults.BadRequest(
                    f'{place}: a name in it {_HAS_SURROGATE}'
                )
            left += [(f'{place}.{key}', one) for key, one in each.items()]


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError('a key is given twice')
    return result


def _reject_constant(name: str) -> Any:
    raise ValueError(f'{name} is not a number in JSON')


def parse_query(text: str, judge: SchemaValidator) -> dict[str, Any]:
    """Parse a query string.

    :param judge: validator of an object with a property for each parameter.
    :returns: parameters by name; those of type integer as integers.
    :raises BadRequest: if it cannot be decoded, has a parameter twice or an
        unknown one, or does not follow the schema.
    """
    try:
        pairs = urllib.parse.parse_qsl(
            text,
            keep_blank_values=True,
            errors='strict',
            max_num_fields=_MOST_PARAMETERS,
        )
    except ValueError as error:
        raise faults.BadRequest(
            f'the query cannot be decoded: {error}'
        ) from error
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in given:
            raise faults.BadRequest(f'{name[:40]!r} is given twice')
        given[name] = _typed(value, judge.schema['properties'].get(name))
    judge.check(given, 'query')
    return given


def _typed(value: str, schema: Schema | None) -> Any:
    is_integer = schema is not None and schema.get('type') == 'integer'
    # int() also accepts signs, blanks and digits of other scripts.
    is_digits = value.isascii() and value.isdigit() and len(value) < 20
    return int(value) if is_integer and is_digits else value


def validated_name(what: str, value: str, pattern: str) -> str:
    """Check a name from a URL, and return it.

    :param what: name of the value in errors.
    :param pattern: pattern of the whole name.
    :raises BadRequest: if it does not match.
    """
    if value.isprintable():
        _text_validator(pattern).check(value, what)
        return value
    raise faults.BadRequest(f'{what} contains unprintable characters')
