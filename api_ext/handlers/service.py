# SPDX-License-Identifier: Apache-2.0

"""Calls of the cluster service, whose answers must follow their schemas."""

from collections.abc import Mapping
import logging
from typing import Any

from api_ext import faults
from api_ext import http_request
from api_ext import paging
from api_ext import validation
from api_ext.schemas import request as schemas
from nova_fairness import exception

LOG = logging.getLogger(__name__)

UNKNOWN = 'Request {} could not be found.'
UNKNOWN_PREEMPTION = 'Preemption {} could not be found.'

_AWAY = (exception.HostNotReached, exception.NotLeading)
_SILENT = (
    'The cluster service does not answer: it is starting, or none of its'
    ' processes is the leader. Waiting requests are not lost; try again in a'
    ' minute.'
)
_FAILS = (
    'The cluster service failed to execute this. Waiting requests are not'
    ' lost; the log of nova-api has the cause.'
)

_UNREADABLE = (
    'The answer of the cluster service cannot be parsed; use nova-api and'
    ' cluster service of the same release.'
)

_UNKNOWN_ARGUMENT = 'unexpected keyword argument'

_PAGE = frozenset({'project', 'marker', 'limit'})
_ARGUMENTS_OF_1_7: Mapping[str, frozenset[str]] = {
    'list_requests': _PAGE | {'preemptible'},
    'get_request': frozenset({'uuid'}),
    'list_preemptions': _PAGE,
    'get_preemption': frozenset({'uuid'}),
    'list_prices': frozenset({'name', 'marker', 'limit'}),
    'get_capacity': frozenset(),
}
"""Arguments of methods in version 1.7 of the RPC API. A service of that
release refuses all other arguments.
"""


def page_limit(caller_request: http_request.CallerRequest) -> int:
    """Return the number of items per page: the requested one, up to the
    limit.
    """
    most: int = min(caller_request.max_limit, schemas.MOST)
    wanted: int = caller_request.query.get('limit', most)
    return min(wanted, most)


def page(
    caller_request: http_request.CallerRequest,
    said: Any,
    plural: str,
    key: str,
    judge: validation.AnswerReader,
) -> http_request.Answer:
    """Return a page of an answer of the service.

    :param said: answer of the service.
    :param plural: key of the list.
    :param key: key of an item's name.
    :param judge: parser of an item.
    """
    items = [parse_fields(each, judge) for each in required_list(said, plural)]
    last = str(items[-1][key]) if items and said.get('more') else None
    return paging.page(
        plural, caller_request.url, caller_request.query, items, last
    )


def call_page(
    caller_request: http_request.CallerRequest,
    method: str,
    project: str | None,
    **more: Any,
) -> Any:
    """Query the page of a list that the caller's query selects."""
    return call(
        caller_request,
        method,
        project=project,
        marker=caller_request.query.get('marker'),
        limit=page_limit(caller_request),
        **more,
    )


def call(
    caller_request: http_request.CallerRequest, method: str, **given: Any
) -> Any:
    """Call the leader of the cluster service.

    :raises Fault: fault that corresponds to the error of the service.
    """
    try:
        return _call_compatible(caller_request, method, given)
    except exception.UnknownRequest as error:
        raise faults.NotFound(
            UNKNOWN.format(given.get('uuid') or given.get('marker'))
        ) from error
    except exception.UnknownPreemption as error:
        uuid = given.get('uuid') or given.get('marker')
        raise faults.NotFound(UNKNOWN_PREEMPTION.format(uuid)) from error
    except exception.UnknownGroup as error:
        raise faults.NotFound(
            f'Group {given.get("group")} could not be found.'
        ) from error
    except (
        exception.UnknownAccount,
        exception.UnknownHost,
        exception.UnknownPlan,
    ) as error:
        raise faults.NotFound(str(error)) from error
    except (exception.AccountUnchecked, exception.Busy) as error:
        raise faults.Unavailable(str(error)) from error
    except (exception.BadShares, exception.BadArgument) as error:
        raise faults.BadRequest(str(error)) from error
    except (exception.IllegalStep, exception.Outdated) as error:
        raise faults.Conflict(str(error)) from error
    except exception.FairnessError as error:
        LOG.warning('%s: %s', method, error)
        is_away = isinstance(error, _AWAY)
        raise faults.Unavailable(_SILENT if is_away else _FAILS) from error


def _call_compatible(
    caller_request: http_request.CallerRequest,
    method: str,
    given: Mapping[str, Any],
) -> Any:
    """Call the service; repeat the call with fewer arguments if its release is
    older.
    """
    try:
        return caller_request.requests.call(method, **given)
    except exception.BadArgument as error:
        known = _ARGUMENTS_OF_1_7.get(method)
        if known is None or _UNKNOWN_ARGUMENT not in str(error):
            raise
        if set(given.get('filters', ())) - {'unsettled'}:
            # Without the filters it would list other requests; running ones do
            # no harm.
            raise exception.FairnessError(str(error)) from error
    return caller_request.requests.call(
        method, **{name: given[name] for name in given if name in known}
    )


def required_field(said: Any, key: str) -> Any:
    """Return a required field of an answer.

    :raises Unavailable: if it is missing.
    """
    if not isinstance(said, Mapping) or key not in said:
        raise faults.Unavailable(_UNREADABLE)
    return said[key]


def required_list(said: Any, key: str) -> list[Any]:
    """Return a required list of an answer.

    :raises Unavailable: if it is missing or no list.
    """
    found = required_field(said, key)
    if not isinstance(found, list):
        raise faults.Unavailable(_UNREADABLE)
    return found


def parse_fields(item: Any, reader: validation.AnswerReader) -> dict[str, Any]:
    """Return the fields of an answer that its schema names.

    :raises Unavailable: if it does not follow the schema.
    """
    try:
        return dict(reader.read(item, 'answer'))
    except faults.BadRequest as error:
        raise faults.Unavailable(_UNREADABLE) from error
