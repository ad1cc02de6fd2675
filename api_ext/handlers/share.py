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


def index(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show the share tree of the caller's project, or of all."""
    whose = account_access.whose(asked, policies.LIST, policies.LIST_ALL)
    said = service.call_page(asked, 'list_shares', whose)
    page = service.page(asked, said, 'shares', 'name', _SHARE)
    return account_access.without_parent(page, 'shares', 'name', whose)


def set_share(asked: http_request.CallerRequest) -> http_request.Answer:
    """Set or unset the share of an account."""
    account, share = asked.body['account'], asked.body['share']
    account_access.require_manager(
        asked,
        (policies.SET, policies.SET_DOMAIN),
        {'share': share},
        lambda: _parent(asked, account),
    )
    if asked.body.get('dry_run'):
        found = dry_run.of_account(asked, account, {'share': share})
        return {'account': account, 'share': share, **found}
    said = service.call(asked, 'set_share', account=account, share=share)
    return service.checked(said, _SET_SHARE)


def _parent(asked: http_request.CallerRequest, account: str) -> str:
    """Parent of an account; '' if it has none."""
    said = service.call(
        asked, 'list_shares', project=account, marker=None, limit=1
    )
    found = [
        service.checked(each, _SHARE)
        for each in service.listed(said, 'shares')
    ]
    return str(found[0].get('parent') or '') if found else ''
