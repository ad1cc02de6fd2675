# SPDX-License-Identifier: Apache-2.0

"""Handlers of limits of accounts."""

from api_ext import http_request
from api_ext import validation
from api_ext.handlers import account_access
from api_ext.handlers import dry_run
from api_ext.handlers import service
from api_ext.policies import limit as policies
from api_ext.schemas import limit as schemas

_LIMIT = validation.AnswerReader(schemas.ITEM, 'account')
_SET_LIMITS = validation.AnswerReader(schemas.DONE, 'account')


def index(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """List the limits of the caller's project and its users, or of all
    accounts.
    """
    whose = account_access.permitted_project(
        caller_request, policies.LIST, policies.LIST_ALL
    )
    said = service.call_page(caller_request, 'list_limits', whose)
    page = service.page(caller_request, said, 'limits', 'account', _LIMIT)
    return account_access.without_parent(page, 'limits', 'account', whose)


def set_limits(
    caller_request: http_request.CallerRequest,
) -> http_request.Answer:
    """Set or unset limits of an account."""
    wanted = {
        name: limit
        for name, limit in caller_request.body.items()
        if name not in ('account', 'dry_run')
    }
    # Limits need more than shares: a larger nominal quota takes from others.
    account_access.require_manager(
        caller_request, (policies.SET,), wanted, lambda: ''
    )
    account = caller_request.body['account']
    if caller_request.body.get('dry_run'):
        found = dry_run.preview_account(caller_request, account, wanted)
        return {'account': account, **wanted, **found}
    said = service.call(
        caller_request, 'set_limits', account=account, limits=wanted
    )
    return service.parse_fields(said, _SET_LIMITS)
