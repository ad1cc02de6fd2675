# SPDX-License-Identifier: Apache-2.0

"""Error answers, in Nova's form."""

from collections.abc import Mapping

LONGEST = 1000
"""Largest length of a message, characters."""

RETRY_AFTER_S = 5


class Fault(Exception):
    """An error that ends a request.

    :param message: text for the caller: the error, and the expected value.
    :param headers: headers of the answer.
    """

    code = 500
    key = 'computeFault'

    def __init__(
        self, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message[:LONGEST])
        self.headers = dict(headers or {})

    def body(self) -> Mapping[str, Mapping[str, object]]:
        """Body of the answer."""
        return {self.key: {'code': self.code, 'message': str(self)}}


class BadRequest(Fault):
    """Body, query or a name is not valid."""

    code = 400
    key = 'badRequest'


class Unauthorized(Fault):
    """The request has no valid token."""

    code = 401
    key = 'unauthorized'


class Forbidden(Fault):
    """The policy does not allow it."""

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
    """The state does not allow the action, or no agent accepted it."""

    code = 409
    key = 'conflictingRequest'


class TooLarge(Fault):
    """The body is too large."""

    code = 413
    key = 'overLimit'


class BadMediaType(Fault):
    """The body is not JSON."""

    code = 415
    key = 'badMediaType'


class Unavailable(Fault):
    """Agents or the cluster service do not answer."""

    code = 503
    key = 'serviceUnavailable'

    def __init__(self, message: str) -> None:
        super().__init__(message, {'Retry-After': str(RETRY_AFTER_S)})


KINDS: Mapping[int, type[Fault]] = {
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
"""Every class of faults, by code."""
