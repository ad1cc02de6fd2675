# SPDX-License-Identifier: Apache-2.0

"""Says what the HTTP interface refuses as the command line does."""

from typing import Any

from openstack import exceptions as sdk_exceptions
from osc_lib import exceptions

from nova_fairness.client import resources
from nova_fairness.client import sdk
from nova_fairness.model import plain

_UNKNOWN_URL = 'The resource could not be found'
"""Nova's own answer to a URL that no extension serves."""

NOT_FOUND = 404


class Refused(exceptions.CommandError):
    """The interface refused a call.

    :ivar status: of HTTP, 400 or more.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class FairnessApi(sdk.FairnessProxy):
    """``conn.fairness``; every error is a CommandError with its reason."""

    def _answer(self, *words: Any, **given: Any) -> resources.Answer:
        try:
            return super()._answer(*words, **given)
        except sdk_exceptions.HttpException as error:
            said: Any = error.response
            raise Refused(said.status_code, _fault(said)) from error
        except sdk_exceptions.SDKException as error:
            raise exceptions.CommandError(str(error)) from error


def _fault(response: Any) -> str:
    """Say in one line what was wrong, and for which request."""
    message = _message(response) or response.reason or 'no reason given'
    # Nova's own 404 has HTML in its message.
    message = ' '.join(plain.untagged(message).split())
    if response.status_code == NOT_FOUND and message.startswith(_UNKNOWN_URL):
        message += (
            ' Is the filter of nova-fairness in the api-paste.ini of this '
            'cloud?'
        )
    request_id = response.headers.get('x-openstack-request-id')
    told = f' (Request-ID: {request_id})' if request_id else ''
    return plain.line(f'{message} (HTTP {response.status_code}){told}')


def _message(response: Any) -> str:
    """Find the message in a fault of Nova, of its middleware, or ours."""
    try:
        content = response.json()
    except ValueError:
        return ''
    if not isinstance(content, dict):
        return ''
    for inner in (content, *content.values()):
        if isinstance(inner, dict) and isinstance(inner.get('message'), str):
            return str(inner['message'])
    return ''
