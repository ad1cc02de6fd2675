# SPDX-License-Identifier: Apache-2.0

"""Share of a project: the share tree, past use, and the rest of budgets."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import itertools
from typing import Any
from typing import ClassVar

from django.urls import re_path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fairness_dashboard import charts
from fairness_dashboard import limits
from fairness_dashboard import pages
from fairness_dashboard import parts

Title = Callable[[str], str]

MOST = 1000
"""Accounts of a page."""


class SharePanel(pages.ClusterPanel):
    """Menu entry of the page "My Share"."""

    name = gettext_lazy('My Share')
    slug = 'fairness_share'
    urls = 'share'


def account_rows(
    shares: Iterable[Mapping[str, Any]],
    title: Title,
    limited: Iterable[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return rows of a share tree, each account before its children.

    :param title: returns the title of an account.
    :param limited: accounts with limits of their own.
    """
    by_account = {str(each['account']): each for each in limited}
    depth: dict[str, int] = {}
    rows = []
    for each in shares:
        name = str(each['name'])
        depth[name] = depth.get(str(each.get('parent')), -1) + 1
        part, used = each.get('normalised_share') or 0.0, each.get('used')
        most = max((used or {}).values(), default=0.0)
        rows.append(
            {
                **each,
                'id': name,
                'title': title(name),
                'indent': 1.2 * depth[name],
                'limits': limits.form_fields(by_account.get(name, {})),
                'part': parts.format_percent(part),
                'used_text': ', '.join(
                    f'{kind} {parts.format_percent(value)}'
                    for kind, value in sorted((used or {}).items())
                )
                or _('nothing'),
                'bar': charts.bar_chart(
                    most,
                    part,
                    _('used %(used)s, the share is %(part)s')
                    % {
                        'used': parts.format_percent(most),
                        'part': parts.format_percent(part),
                    },
                ),
            }
        )
    return rows


def limit_rows(
    limited: Iterable[Mapping[str, Any]], title: Title
) -> list[dict[str, Any]]:
    """Return rows of budgets and other limits."""
    return [
        {
            'title': title(str(each['account'])),
            'budget': parts.format_number(each.get('budget')),
            'used': parts.format_number(each.get('budget_used')),
            'committed': parts.format_number(each.get('budget_committed')),
            'left': parts.format_number(each.get('budget_left')),
            'until': parts.parse_time(each.get('budget_until')),
            'time_limit': parts.format_duration(each.get('time_limit')),
            'ceiling': ', '.join(
                f'{parts.format_number(value)} {kind}'
                for kind, value in sorted((each.get('ceiling') or {}).items())
            ),
            'fault': each.get('fault'),
        }
        for each in limited
    ]


class ShareView(pages.FairnessView):
    """The share tree of the project, and its budgets."""

    template_name = 'fairness/share.html'
    page_title = gettext_lazy('My Share')
    actions: ClassVar[pages.Actions] = limits.ACTIONS

    def content(self, **names: str) -> dict[str, Any]:
        """Return the share tree and the limits."""
        shares = parts.read(lambda: first_items(self.api.shares()))
        found = parts.read(lambda: first_items(self.api.limits()))
        limited = [*map(self.directory.with_names, found.content or ())]
        return {
            'accounts': account_rows(
                shares.content or (), self._title, limited
            ),
            'problem': shares.problem,
            'budgets': limit_rows(limited, self._title),
            'budgets_problem': found.problem,
            'is_edited': self._manages(),
            'has_limits': not found.problem,
            # Its own share is set above it.
            'fixed': str(self.request.user.project_id),
        }

    def _manages(self) -> bool:
        """Return whether the page shows forms. The API decides about each
        change.
        """
        roles = {each['name'] for each in self.request.user.roles}
        return not roles.isdisjoint(('admin', 'manager'))

    def _title(self, account: str) -> str:
        """Return the title of an account, with names for IDs."""
        user = self.request.user
        project = str(user.project_id)
        if account == project:
            return _('project %s') % user.project_name
        if account == f'{project}/{user.id}':
            return _('you (%s)') % user.username
        return self.directory.account(account)


def first_items(
    found: Iterable[Any], most: int = MOST
) -> list[dict[str, Any]]:
    """Return the first items of a list."""
    return [each.answer for each in itertools.islice(found, most)]


urlpatterns = [re_path(r'^$', ShareView.as_view(), name='index')]
