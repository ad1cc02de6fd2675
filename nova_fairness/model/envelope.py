# SPDX-License-Identifier: Apache-2.0

"""The form that oslo.messaging gives to a message: JSON that holds JSON."""

from collections.abc import Mapping
import json
from typing import Any

from nova_fairness import exception

_VERSION = '2.'


def message(body: bytes) -> Mapping[str, Any]:
    """Read the inner message. Errors show nothing of it.

    :param body: as it came.
    :raises Unreadable: if it is not of the form known.
    """
    return _opened(body)[1]


def with_message(body: bytes, inner: Mapping[str, Any]) -> bytes:
    """The same envelope around another message; raises as :func:`message`."""
    envelope, _ = _opened(body)
    return json.dumps({**envelope, 'oslo.message': json.dumps(inner)}).encode()


def _opened(body: bytes) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    try:
        envelope = json.loads(body)
        version = envelope['oslo.version']
        inner = json.loads(envelope['oslo.message'])
    except exception.UNREADABLE as error:
        raise exception.Unreadable(
            f'a message is not of the form of oslo.messaging:'
            f' {type(error).__name__}'
        ) from None
    if not isinstance(inner, dict) or not str(version).startswith(_VERSION):
        raise exception.Unreadable(
            f'a message must be of version {_VERSION}x and an object'
        )
    return envelope, inner
