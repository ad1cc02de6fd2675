# SPDX-License-Identifier: Apache-2.0

"""The state of the cluster service, and the caller's own."""

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
    'usage_quotas': columns.Numbers,
}

_MOST = 20
"""Requests, shares and budgets of one answer."""

_QUIET = ('runs', 'ended')
_T = TypeVar('_T')
_Line = Callable[[naming.Find, Mapping[str, Any]], str]
"""Writes an entry of a list, with names in place of ids."""

_MISSING = (404, 503)
"""Codes where the caller has no VM, or the cloud no cluster service."""


class ShowStatus(base.ShowOne):
    """Show who leads, what waits and leaves, warnings and what to do next"""

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        found = self.api.get_status()
        names = self.names(parsed_args, 'projects')
        lines = _entries(_STATUS_LINES, names.get)
        return base.fields(found, {**_FORMS, **lines})


def _entries(
    lines: Mapping[str, _Line], find: naming.Find
) -> dict[str, Callable[[Any], columns.Entries]]:
    """Forms of lists, by key.

    :param lines: each writes an entry of one list.
    :param find: gives names of ids.
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
    """Show the own VMs, requests that do not run yet, shares and budgets"""

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask agents and cluster service; a part may be missing."""
        user = _known(lambda: self.api.get_user().answer) or {}
        found = {
            'user': user.get('id', self.directory.user_id),
            'instances_count': user.get('instances_count', 0),
            'heaviness_quotas': user.get('heaviness_quotas', 0.0),
            'usage_quotas': user.get('usage_quotas', {}),
            'requests': _first(self.api.requests, _is_unsettled),
            'shares': _first(self.api.shares),
            'budgets': _first(self.api.limits, _has_budget),
        }
        names = self.names(parsed_args, 'servers', 'users')
        forms = {**_OF_ME, **_entries(_LINES_OF_ME, names.get)}
        forms['user'] = functools.partial(columns.Named, names=names)
        return base.fields(found, forms)


def _first(
    find: Callable[..., resources.PagedList[Any]],
    is_shown: Callable[[resources.Answer], bool] = bool,
) -> list[resources.Answer]:
    """The first entries of a list that are shown; no page after them."""
    found = filter(is_shown, find(limit=_MOST).answers)
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


def _request(find: naming.Find, each: Mapping[str, Any]) -> str:
    known = naming.of_servers([each])
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
