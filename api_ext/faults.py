# SPDX-License-Identifier: Apache-2.0

"""Error responses in Nova's form."""

from collections.abc import Mapping

LONGEST = 1000
"""Largest length of a message, characters."""

RETRY_AFTER_S = 5


class Fault(Exception):
    """An error that ends a request with an HTTP error.

    :param message: text for the caller: the error, and the expected value.
    :param headers: headers of the response.
    """

    code = 500
    key = 'computeFault'

    def __init__(
        self, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message[:LONGEST])
        self.headers = dict(headers or {})

    def body(self) -> Mapping[str, Mapping[str, object]]:
        """Return the body of the response."""
        return {self.key: {'code': self.code, 'message': str(self)}}


class BadRequest(Fault):
    """The body, the query or a name is not valid."""

    code = 400
    key = 'badRequest'


class Unauthorized(Fault):
    """The request has no valid token."""

    code = 401
    key = 'unauthorized'


class Forbidden(Fault):
    """The policy does not permit the request."""

    code = 403
    key = 'forbidden'


class NotFound(Fault):
    """The object does not exist, or the caller may not see it."""

    code = 404
    key = 'itemNotFound'


class BadMethod(Fault):
    """The method is not allowed for this path."""

    code = 405
    key = 'badMethod'


class Conflict(Fault):
    """The present state does not permit the action, or no agent accepted
    it.
    """

    code = 409
    key = 'conflictingRequest'


class TooLarge(Fault):
    """The request body is too large."""

    code = 413
    key = 'overLimit'


class BadMediaType(Fault):
    """The request body is not JSON."""

    code = 415
    key = 'badMediaType'


class Unavailable(Fault):
    """Agents or the cluster service do not answer."""

    code = 503
    key = 'serviceUnavailable'

    def __init__(self, message: str) -> None:
        super().__init__(message, {'Retry-After': str(RETRY_AFTER_S)})


FAULTS_BY_CODE: Mapping[int, type[Fault]] = {
    kind.code: kind
    for kind in (
        BadRequest,
        Unauthorized,
        Forbidden,
        NotFound,
        BadMethod,
        Conflict,
        TooLarge,
        BadMediaType,
        Unavailable,
    )
}
"""Classes of faults by HTTP status code."""
