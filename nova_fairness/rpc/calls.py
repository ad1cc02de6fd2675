# SPDX-License-Identifier: Apache-2.0

"""Access checks and log lines of every RPC."""

from collections.abc import Callable
from collections.abc import Mapping
import functools
import logging
from typing import Any

import oslo_messaging

from nova_fairness import exception
from nova_fairness.model import caller
from nova_fairness.rpc import arguments
from nova_fairness.rpc import request_ids
from nova_fairness.rpc import roles

LOG = logging.getLogger(__name__)

Answer = Mapping[str, Any]
Context = Mapping[str, Any]

_LEVELS = {
    roles.Access.READ: logging.DEBUG,
    roles.Access.OVERSEE: logging.DEBUG,
    roles.Access.CHANGE: logging.INFO,
    roles.Access.REPORT: logging.DEBUG,
}
"""Levels of log lines: calls that change nothing, or come every few seconds,
are logged for debugging only.
"""


def asker(ctxt: Context) -> caller.Asker:
    """Return the sender of a call."""
    return caller.Asker(
        roles.caller(ctxt),
        request_ids.given(ctxt, request_ids.USER),
        request_ids.given(ctxt, request_ids.KEY),
    )


def answers(
    access: roles.Access,
) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Expose a method to callers with a given access."""

    def decorate(method: Callable[..., Answer]) -> Callable[..., Answer]:
        # Update the wrapper here: functools.wraps inside would be undone by
        # the next decorator.
        @oslo_messaging.expected_exceptions(exception.FairnessError)  # type: ignore[untyped-decorator]
        def answer(self: object, ctxt: Context, **given: Any) -> Answer:
            request_id = request_ids.of(ctxt)
            request_ids.log_with_id(request_id)
            asked = functools.partial(
                _checked_call, access, method, self, ctxt, given
            )
            return _logged_call(access, method.__name__, request_id, asked)

        functools.update_wrapper(answer, method)
        answer.access = access
        exposed: Callable[..., Answer] = oslo_messaging.expose(answer)
        return exposed

    return decorate


def _checked_call(
    access: roles.Access,
    method: Callable[..., Answer],
    endpoint: object,
    ctxt: Context,
    given: dict[str, Any],
) -> Answer:
    """Check the access of a call, and execute its method."""
    roles.require(access, method.__name__, ctxt)
    arguments.check_names(method.__get__(endpoint), given)
    LOG.log(
        _LEVELS[access],
        '%s(%s) was asked for by %s',
        method.__name__,
        ', '.join(f'{k}={v!r:.60}' for k, v in given.items()),
        _caller_text(asker(ctxt)),
    )
    return method(endpoint, ctxt, **given)


def _caller_text(by: caller.Asker) -> str:
    user = f' for user {by.user_id}' if by.user_id else ''
    request = f' in {by.request_id}' if by.request_id else ''
    return (by.caller or 'a caller without a key') + user + request


def _logged_call(
    access: roles.Access,
    name: str,
    request_id: str,
    ask: Callable[[], Answer],
) -> Answer:
    """Execute a call, and log the result."""
    try:
        answer = ask()
    except exception.FairnessError as error:
        # Operators want to know of a refused caller in any case.
        is_denied = isinstance(error, exception.NotAllowed)
        LOG.log(
            logging.INFO if is_denied else _LEVELS[access],
            '%s: %s was refused: %.300s',
            request_id,
            name,
            error,
        )
        raise
    LOG.log(_LEVELS[access], '%s: %s: %s', request_id, name, _summary(answer))
    return answer


def _summary(answer: Answer) -> str:
    """Return the short fields of an answer as a text."""
    return ', '.join(
        f'{key}={value!r:.60}'
        for key, value in answer.items()
        if isinstance(value, str | int | float | None)
    )
