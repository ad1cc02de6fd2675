# SPDX-License-Identifier: Apache-2.0

"""Sees to it that callers read and change accounts only as they may."""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from api_ext import faults
from api_ext import http_request


def whose(
    asked: http_request.CallerRequest, own: str, of_all: str
) -> str | None:
    """The project that is asked about; ``None`` for all.

    :param own: rule for the caller's own project.
    :param of_all: rule for all of them.
    """
    project = asked.caller.project_id
    if asked.query.get('all_projects') == 'true':
        asked.caller.require(of_all)
        return None
    if project is None:
        raise faults.BadRequest('The token has no project.')
    asked.caller.require(own, project_id=project)
    return project


def require_manager(
    asked: http_request.CallerRequest,
    rules: tuple[str, ...],
    wanted: Mapping[str, Any],
    parent: Callable[[], str],
) -> None:
    """See to it that the caller may change an account.

    One of the rules must allow it. The first rule may allow it for all
    accounts, and each rule for accounts right below one of the caller's.

    The manager of an account divides it among those below it, but may not
    change the account's own share.

    :param parent: says which account is above that of no user; '' for none
        that counts.
    """
    account = asked.body['account']
    above, slash, _ = account.partition('/')
    if not asked.caller.may(rules[0]):
        above = above if slash else parent()
        asked.caller.require(*rules, project_id=above, domain_id=above)
    kind = 'dry run of ' if asked.body.get('dry_run') else ''
    asked.log(f'{kind}{dict(wanted)} of account {account}')


def without_parent(
    page: http_request.Answer, items: str, key: str, project: str | None
) -> http_request.Answer:
    """A page of accounts without the name of what is above a project.

    Groups are named by operators, and others may be in them.

    :param key: that has the name of an account.
    :param project: that is read; ``None`` for all.
    """
    told = [
        {**each, 'parent': None} if each[key] == project else each
        for each in page[items]
    ]
    return {**page, items: told}
