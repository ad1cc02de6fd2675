# SPDX-License-Identifier: Apache-2.0

"""Handlers of dry runs, which compute the effect of a change without making
it.
"""

from collections.abc import Mapping
import math
from typing import Any

from api_ext import faults
from api_ext import http_request
from api_ext import validation
from api_ext.handlers import host_facts
from api_ext.handlers import service
from api_ext.policies import request as policies
from api_ext.schemas import dry_run as schemas
from nova_fairness.rpc import protocol

_JUDGE = validation.AnswerReader(schemas.ITEM, 'requests_count', 'requests')


def preview_account(
    caller_request: http_request.CallerRequest,
    account: str,
    values: Mapping[str, Any],
) -> http_request.Answer:
    """Compute the effect of a new share or new limits of an account.

    The caller's permission to set them must already be checked.
    """
    return _answer(caller_request, account=account, values=dict(values))


def preview_order(
    caller_request: http_request.CallerRequest,
) -> http_request.Answer:
    """Compute the effect of another order on the queue."""
    parameters = _numbers(caller_request.query.get('parameters', ''))
    return _answer(
        caller_request,
        order=caller_request.names['order'],
        parameters=parameters,
    )


def _answer(
    caller_request: http_request.CallerRequest, **change: Any
) -> http_request.Answer:
    """Query a dry run whose answer names only requests that the caller may
    list.
    """
    project = caller_request.caller.project_id
    is_all = caller_request.caller.is_allowed(policies.LIST_ALL)
    is_own = project is not None and caller_request.caller.is_allowed(
        policies.LIST, project_id=project
    )
    said = service.call(
        caller_request,
        'dry_run',
        project=None if is_all else project,
        most=protocol.MOST_DRY_RUN if is_all or is_own else 0,
        audience=host_facts.audience(caller_request),
        **change,
    )
    found = service.parse_fields(
        service.required_field(said, 'dry_run'), _JUDGE
    )
    return {'dry_run': found}


def _numbers(text: str) -> dict[str, float]:
    """Parse ``NAME=NUMBER,...``.

    :raises BadRequest: if the text has another form.
    """
    found = {}
    for each in text.split(',') if text else ():
        name, _, number = each.partition('=')
        try:
            found[name] = float(number)
        except ValueError:
            found[name] = math.nan
        if not name or not math.isfinite(found[name]):
            raise faults.BadRequest(
                f'parameters: got {each!r}, expected NAME=NUMBER'
            )
    return found
