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


def index(asked: http_request.CallerRequest) -> http_request.Answer:
    """List limits of the caller's project and its users, or of all."""
    whose = account_access.whose(asked, policies.LIST, policies.LIST_ALL)
    said = service.call_page(asked, 'list_limits', whose)
    page = service.page(asked, said, 'limits', 'account', _LIMIT)
    return account_access.without_parent(page, 'limits', 'account', whose)


def set_limits(asked: http_request.CallerRequest) -> http_request.Answer:
    """Set or unset limits of an account."""
    wanted = {
        name: limit
        for name, limit in asked.body.items()
        if name not in ('account', 'dry_run')
    }
    # Limits need more than shares: a larger nominal quota takes from others.
    account_access.require_manager(asked, (policies.SET,), wanted, lambda: '')
    account = asked.body['account']
    if asked.body.get('dry_run'):
        found = dry_run.of_account(asked, account, wanted)
        return {'account': account, **wanted, **found}
    said = service.call(asked, 'set_limits', account=account, limits=wanted)
    return service.checked(said, _SET_LIMITS)
