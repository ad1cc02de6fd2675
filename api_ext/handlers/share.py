# SPDX-License-Identifier: Apache-2.0

"""Handlers of shares of accounts."""

from api_ext import http_request
from api_ext import validation
from api_ext.handlers import account_access
from api_ext.handlers import dry_run
from api_ext.handlers import service
from api_ext.policies import share as policies
from api_ext.schemas import share as schemas

_SHARE = validation.AnswerReader(schemas.ITEM, 'name', 'share')
_SET_SHARE = validation.AnswerReader(schemas.DONE, 'account', 'share')


def index(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Return the share tree of the caller's project, or of all accounts."""
    whose = account_access.permitted_project(
        caller_request, policies.LIST, policies.LIST_ALL
    )
    said = service.call_page(caller_request, 'list_shares', whose)
    page = service.page(caller_request, said, 'shares', 'name', _SHARE)
    return account_access.without_parent(page, 'shares', 'name', whose)


def set_share(
    caller_request: http_request.CallerRequest,
) -> http_request.Answer:
    """Set or unset the share of an account."""
    account, share = (
        caller_request.body['account'],
        caller_request.body['share'],
    )
    account_access.require_manager(
        caller_request,
        (policies.SET, policies.SET_DOMAIN),
        {'share': share},
        lambda: _parent(caller_request, account),
    )
    if caller_request.body.get('dry_run'):
        found = dry_run.preview_account(
            caller_request, account, {'share': share}
        )
        return {'account': account, 'share': share, **found}
    said = service.call(
        caller_request, 'set_share', account=account, share=share
    )
    return service.parse_fields(said, _SET_SHARE)


def _parent(caller_request: http_request.CallerRequest, account: str) -> str:
    """Return the parent of an account; '' if it has none."""
    said = service.call(
        caller_request, 'list_shares', project=account, marker=None, limit=1
    )
    found = [
        service.parse_fields(each, _SHARE)
        for each in service.required_list(said, 'shares')
    ]
    return str(found[0].get('parent') or '') if found else ''
