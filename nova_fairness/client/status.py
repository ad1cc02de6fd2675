# SPDX-License-Identifier: Apache-2.0

"""Commands that show the state of the service, and the caller's own
objects.
"""

import argparse
from collections.abc import Callable
from collections.abc import Mapping
import functools
import itertools
from typing import Any
from typing import TypeVar

from nova_fairness.client import base
from nova_fairness.client import columns
from nova_fairness.client import http
from nova_fairness.client import naming
from nova_fairness.client import resources

_FORMS = {
    'agents': columns.Numbers,
    'leaving': columns.Numbers,
    'border': columns.Numbers,
    'warnings': columns.Sentences,
    'advice': columns.Sentences,
}

_OF_ME: Mapping[str, Callable[[Any], Any]] = {
    'heaviness_quotas': columns.Number,
    'shadow_heaviness_quotas': columns.Number,
    'usage_quotas': columns.Numbers,
}

_SHADOW = ('shadow_metric', 'shadow_heaviness_quotas')
"""Fields that are shown only if a host has a shadow metric."""

_MOST = 20
"""Largest number of requests, shares and budgets in one answer."""

_QUIET = ('runs', 'ended')
_T = TypeVar('_T')
_Line = Callable[[naming.Find, Mapping[str, Any]], str]
"""Formats an entry of a list, with names in place of IDs."""

_MISSING = (404, 503)
"""HTTP status codes if the caller has no VM, or the cloud has no cluster
service.
"""


class ShowStatus(base.ShowOne):
    """Show the leader, waiting requests, evictions, warnings and advice"""

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Read the status and return its fields."""
        found = self.api.get_status()
        names = self.names_by_id(parsed_args, 'projects')
        lines = _entries(_STATUS_LINES, names.get)
        return base.format_fields(found, {**_FORMS, **lines})


def _entries(
    lines: Mapping[str, _Line], find: naming.Find
) -> dict[str, Callable[[Any], columns.Entries]]:
    """Return formats of lists, by key.

    :param lines: by key, the function that formats an entry.
    :param find: returns the name of an ID.
    """
    return {
        key: functools.partial(
            columns.Entries, line=functools.partial(line, find)
        )
        for key, line in lines.items()
    }


def _waiting(find: naming.Find, each: Mapping[str, Any]) -> str:
    why = each.get('explanation', each.get('reason'))
    project = naming.account(str(each.get('project_id')), find)
    return f'{each.get("count")} of project {project}: {why}'


def _use(find: naming.Find, each: Mapping[str, Any]) -> str:
    return (
        f'{naming.account(str(each.get("account")), find)}: used'
        f' {columns.percent(each.get("used_part"))} of the cloud, its share is'
        f' {columns.percent(each.get("normalised_share"))}'
    )


def _plan(_: naming.Find, each: Mapping[str, Any]) -> str:
    return f'{each.get("uuid")}: {each.get("goal")}, {each.get("state")}'


_STATUS_LINES = {'waiting': _waiting, 'shares': _use, 'plans': _plan}


class ShowMe(base.ShowOne):
    """Show your VMs, requests that do not run yet, shares and budgets"""

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Query agents and cluster service; a part may be missing."""
        user = _answer_or_none(lambda: self.api.get_user().answer) or {}
        found = {
            'user': user.get('id', self.directory.user_id),
            'instances_count': user.get('instances_count', 0),
            'heaviness_quotas': user.get('heaviness_quotas', 0.0),
            **{key: user[key] for key in _SHADOW if key in user},
            'usage_quotas': user.get('usage_quotas', {}),
            'requests': _first(self.api.requests, _is_unsettled),
            'shares': _first(self.api.shares),
            'budgets': _first(self.api.limits, _has_budget),
        }
        names = self.names_by_id(parsed_args, 'servers', 'users')
        forms = {**_OF_ME, **_entries(_LINES_OF_ME, names.get)}
        forms['user'] = functools.partial(columns.Named, names=names)
        return base.format_fields(found, forms)


def _first(
    find: Callable[..., resources.PagedList[Any]],
    is_shown: Callable[[resources.Answer], bool] = bool,
) -> list[resources.Answer]:
    """Return the first entries of a list that pass a filter, from one page.

    :param is_shown: filter of the entries.
    """
    found = filter(is_shown, find(limit=_MOST).answers)
    return _answer_or_none(lambda: [*itertools.islice(found, _MOST)]) or []


def _answer_or_none(ask: Callable[[], _T]) -> _T | None:
    """Return an answer; ``None`` if there is nothing to report."""
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


def _request(find: naming.Find, each: Mapping[str, Any]) -> str:
    known = naming.server_names([each])
    uuids = [str(uuid) for uuid in each.get('servers') or [each.get('uuid')]]
    names = [find(uuid) or known.get(uuid, uuid) for uuid in uuids]
    status = str(each.get('status', each.get('explanation')))
    return f'{", ".join(names)}: {naming.sentence(status, find)}'


def _share(find: naming.Find, each: Mapping[str, Any]) -> str:
    used = ', '.join(columns.percents(each.get('used')))
    return (
        f'{naming.account(str(each.get("name")), find)}: share'
        f' {columns.number(each.get("share"))}, that is'
        f' {columns.percent(each.get("normalised_share"))} of the cloud; used'
        f' {used or "nothing"}'
    )


def _budget(find: naming.Find, each: Mapping[str, Any]) -> str:
    left, whole = each.get('budget_left'), each.get('budget')
    return (
        f'{naming.account(str(each.get("account")), find)}:'
        f' {columns.number(left)} of {columns.number(whole)} left, in'
        ' unit-hours'
    )


_LINES_OF_ME = {'requests': _request, 'shares': _share, 'budgets': _budget}
