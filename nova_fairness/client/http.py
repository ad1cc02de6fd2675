# SPDX-License-Identifier: Apache-2.0

"""Client of the HTTP API whose errors have the form of the command line."""

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
    """The API refused a call.

    :ivar status: HTTP status code, 400 or more.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class FairnessApi(sdk.FairnessProxy):
    """Client of the fairness API; each error is a CommandError with its
    reason.
    """

    def _answer(self, *words: Any, **given: Any) -> resources.Answer:
        try:
            return super()._answer(*words, **given)
        except sdk_exceptions.HttpException as error:
            response: Any = error.response
            raise Refused(response.status_code, _fault(response)) from error
        except sdk_exceptions.SDKException as error:
            raise exceptions.CommandError(str(error)) from error


def _fault(response: Any) -> str:
    """Return the message of an error response on one line, with the request
    ID.
    """
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
    """Return the message in a fault of Nova, of its middleware or of this
    package; empty if there is none.
    """
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
