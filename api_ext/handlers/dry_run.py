# SPDX-License-Identifier: Apache-2.0

"""Handler of dry runs, which change nothing."""

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


def of_account(
    asked: http_request.CallerRequest, account: str, values: Mapping[str, Any]
) -> http_request.Answer:
    """Show the effect of a share or of limits of an account.

    The caller has already checked the permission to set them.
    """
    return _answer(asked, account=account, values=dict(values))


def of_order(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show the effect of another order."""
    parameters = _numbers(asked.query.get('parameters', ''))
    return _answer(asked, order=asked.names['order'], parameters=parameters)


def _answer(
    asked: http_request.CallerRequest, **change: Any
) -> http_request.Answer:
    """Ask for a dry run that names only requests that the caller may list."""
    project = asked.caller.project_id
    is_all = asked.caller.may(policies.LIST_ALL)
    is_own = project is not None and asked.caller.may(
        policies.LIST, project_id=project
    )
    said = service.call(
        asked,
        'dry_run',
        project=None if is_all else project,
        most=protocol.MOST_DRY_RUN if is_all or is_own else 0,
        audience=host_facts.audience(asked),
        **change,
    )
    found = service.checked(service.part(said, 'dry_run'), _JUDGE)
    return {'dry_run': found}


def _numbers(text: str) -> dict[str, float]:
    """Read ``NAME=NUMBER,...``.

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
            raise faults.BadRequest(f'parameters: {each!r} is no NAME=NUMBER')
    return found
