# SPDX-License-Identifier: Apache-2.0

"""Checks permissions to read and change accounts."""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from api_ext import faults
from api_ext import http_request


def whose(
    asked: http_request.CallerRequest, own: str, of_all: str
) -> str | None:
    """Project of the request; ``None`` for all projects.

    :param own: rule for the caller's own project.
    :param of_all: rule for all projects.
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
    """Check that the caller may change an account.

    One of the rules must allow it. The first rule may allow it for all
    accounts, and each rule for accounts directly below one of the caller's.
    The manager of an account divides its share among the accounts below it,
    but may not change the share of the account itself.

    :param parent: returns the parent of an account that is not a user's; ''
        for a parent without managers.
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
    """A page of accounts without the parent of a project.

    Operators name groups of accounts, and a group may contain other projects.

    :param key: key of an account's name.
    :param project: project of the request; ``None`` for all.
    """
    told = [
        {**each, 'parent': None} if each[key] == project else each
        for each in page[items]
    ]
    return {**page, items: told}
