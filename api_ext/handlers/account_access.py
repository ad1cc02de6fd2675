# SPDX-License-Identifier: Apache-2.0

"""Checks of permissions to read and change accounts."""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from api_ext import faults
from api_ext import http_request


def permitted_project(
    caller_request: http_request.CallerRequest, own: str, of_all: str
) -> str | None:
    """Check the permission for a list, and return its project; ``None`` for
    all projects.

    :param own: rule for the caller's own project.
    :param of_all: rule for all projects.
    :raises Forbidden: if the rule does not permit the list.
    """
    project = caller_request.caller.project_id
    if caller_request.query.get('all_projects') == 'true':
        caller_request.caller.require(of_all)
        return None
    if project is None:
        raise faults.BadRequest('The token has no project.')
    caller_request.caller.require(own, project_id=project)
    return project


def require_manager(
    caller_request: http_request.CallerRequest,
    rules: tuple[str, ...],
    wanted: Mapping[str, Any],
    parent: Callable[[], str],
) -> None:
    """Check that the caller may change an account.

    At least one rule must permit it: the first rule for all accounts, or any
    rule for accounts directly below an account of the caller. The manager of
    an account divides its share among the accounts below it, but may not
    change the share of the account itself.

    :param rules: names of policy rules.
    :param wanted: new values, for the log.
    :param parent: returns the parent of an account that is no user; '' for a
        parent without managers.
    :raises Forbidden: if no rule permits the change.
    """
    account = caller_request.body['account']
    above, slash, _ = account.partition('/')
    if not caller_request.caller.is_allowed(rules[0]):
        above = above if slash else parent()
        caller_request.caller.require(
            *rules, project_id=above, domain_id=above
        )
    kind = 'dry run of ' if caller_request.body.get('dry_run') else ''
    caller_request.log(f'{kind}{dict(wanted)} of account {account}')


def without_parent(
    page: http_request.Answer, items: str, key: str, project: str | None
) -> http_request.Answer:
    """Remove the parent of a project from a page of accounts.

    Operators choose the names of groups of accounts, and a group may contain
    other projects.

    :param key: key of an account's name.
    :param project: project of the request; ``None`` for all.
    """
    told = [
        {**each, 'parent': None} if each[key] == project else each
        for each in page[items]
    ]
    return {**page, items: told}
