# SPDX-License-Identifier: Apache-2.0

"""The state of the cluster service, and the caller's own."""

import argparse
from collections.abc import Callable
from collections.abc import Mapping
import itertools
from typing import Any
from typing import TypeVar

from nova_fairness.client import base
from nova_fairness.client import columns
from nova_fairness.client import http

_FORMS = {
    'agents': columns.Numbers,
    'waiting': columns.Sentences,
    'shares': columns.Sentences,
    'leaving': columns.Numbers,
    'plans': columns.Sentences,
    'border': columns.Numbers,
    'warnings': columns.Sentences,
    'advice': columns.Sentences,
}


_OF_ME = {
    'heaviness_quotas': columns.Number,
    'usage_quotas': columns.Numbers,
    'requests': columns.Sentences,
    'shares': columns.Sentences,
    'budgets': columns.Sentences,
}

_MOST = 20
"""Requests, shares and budgets of one answer."""

_QUIET = ('runs', 'ended')
_T = TypeVar('_T')

_MISSING = (404, 503)
"""Codes where the caller has no VM, or the cloud no cluster service."""


class ShowStatus(base.ShowOne):
    """Show who leads, what waits and leaves, warnings and what to do next"""

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        found = self.api.one('status', '/status')
        is_table = parsed_args.formatter == base.TABLE
        names = self.directory.names(('projects',)) if is_table else {}
        return base.fields({**found, **_lines(found, names)}, _FORMS)


def _lines(
    found: Mapping[str, Any], names: Mapping[str, str]
) -> dict[str, list[str]]:
    """Lists of the answer, a line for each entry."""
    return {
        'waiting': [
            f'{each.get("count")} of project'
            f' {_name(each, "project_id", names)}: {each.get("reason")}'
            for each in found.get('waiting', ())
        ],
        'shares': [
            f'{_name(each, "account", names)}: used'
            f' {columns.percent(each.get("used_part"))}, its share is'
            f' {columns.percent(each.get("normalised_share"))} of the cloud'
            for each in found.get('shares', ())
        ],
        'plans': [
            f'{each.get("uuid")}: {each.get("goal")}, {each.get("state")}'
            for each in found.get('plans', ())
        ],
    }


def _name(each: Mapping[str, Any], key: str, names: Mapping[str, str]) -> str:
    """The name of a project where it is known, otherwise its id."""
    given = str(each.get(key))
    return names.get(given, given)


class ShowMe(base.ShowOne):
    """Show the own VMs, requests that do not run yet, shares and budgets"""

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask agents and cluster service; a part may be missing."""
        user = _known(lambda: self.api.one('user', '/users/me')) or {}
        found = {
            'user': user.get('id'),
            'instances_count': user.get('instances_count', 0),
            'heaviness_quotas': user.get('heaviness_quotas', 0.0),
            'usage_quotas': user.get('usage_quotas', {}),
            'requests': [
                *map(_request, self._listed('requests', _is_unsettled))
            ],
            'shares': [*map(_share, self._listed('shares'))],
            'budgets': [*map(_budget, self._listed('limits', _has_budget))],
        }
        return base.fields(found, _OF_ME)

    def _listed(
        self,
        noun: str,
        is_shown: Callable[[Mapping[str, Any]], bool] = bool,
        **query: Any,
    ) -> list[Mapping[str, Any]]:
        """The first entries of a list that are shown; no page after them."""
        found = filter(is_shown, self.api.each(noun, _MOST, **query))
        return _known(lambda: [*itertools.islice(found, _MOST)]) or []


def _known(ask: Callable[[], _T]) -> _T | None:
    """An answer; ``None`` where there is nothing to answer."""
    try:
        return ask()
    except http.Refused as error:
        if error.status not in _MISSING:
            raise
        return None


def _is_unsettled(request: Mapping[str, Any]) -> bool:
    return request.get('standing') not in _QUIET


def _has_budget(limits: Mapping[str, Any]) -> bool:
    return limits.get('budget') is not None


def _request(each: Mapping[str, Any]) -> str:
    return f'{each.get("uuid")}: {each.get("status", each.get("explanation"))}'


def _share(each: Mapping[str, Any]) -> str:
    used = ' '.join(
        f'{name}={columns.number(part)}'
        for name, part in (each.get('used') or {}).items()
    )
    return (
        f'{each.get("name")}: share {columns.number(each.get("share"))},'
        f' {columns.number(each.get("normalised_share"))} of the cloud;'
        f' used {used or "nothing"}'
    )


def _budget(each: Mapping[str, Any]) -> str:
    left, whole = each.get('budget_left'), each.get('budget')
    return (
        f'{each.get("account")}: {columns.number(left)} of'
        f' {columns.number(whole)} left'
    )
