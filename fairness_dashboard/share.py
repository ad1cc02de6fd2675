# SPDX-License-Identifier: Apache-2.0

"""Share of a project: the tree, what was used, and what is left."""

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
    """The menu entry."""

    name = gettext_lazy('My Share')
    slug = 'fairness_share'
    urls = 'share'


def accounts(
    shares: Iterable[Mapping[str, Any]],
    title: Title,
    limited: Iterable[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Rows of a share tree, those below an account after it.

    :param title: gives the name of an account in words.
    :param limited: accounts that have limits of their own.
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
                'limits': limits.fields(by_account.get(name, {})),
                'part': parts.percent(part),
                'used_text': ', '.join(
                    f'{kind} {parts.percent(value)}'
                    for kind, value in sorted((used or {}).items())
                )
                or _('nothing'),
                'bar': charts.bar(
                    most,
                    part,
                    _('used %(used)s, the share is %(part)s')
                    % {
                        'used': parts.percent(most),
                        'part': parts.percent(part),
                    },
                ),
            }
        )
    return rows


def budgets(
    limited: Iterable[Mapping[str, Any]], title: Title
) -> list[dict[str, Any]]:
    """Rows of budgets and other limits."""
    return [
        {
            'title': title(str(each['account'])),
            'budget': parts.number(each.get('budget')),
            'used': parts.number(each.get('budget_used')),
            'committed': parts.number(each.get('budget_committed')),
            'left': parts.number(each.get('budget_left')),
            'until': parts.time(each.get('budget_until')),
            'time_limit': parts.span(each.get('time_limit')),
            'ceiling': ', '.join(
                f'{parts.number(value)} {kind}'
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
    orders: ClassVar[pages.Orders] = limits.ORDERS

    def content(self, **names: str) -> dict[str, Any]:
        """The tree, and limits."""
        shares = parts.ask(lambda: some(self.api.shares()))
        found = parts.ask(lambda: some(self.api.limits()))
        limited = [*map(self.directory.told, found.content or ())]
        return {
            'accounts': accounts(shares.content or (), self._title, limited),
            'trouble': shares.trouble,
            'budgets': budgets(limited, self._title),
            'budgets_trouble': found.trouble,
            'is_edited': self._manages(),
            'has_limits': not found.trouble,
            # Its own share is set above it.
            'fixed': str(self.request.user.project_id),
        }

    def _manages(self) -> bool:
        """Tell whether forms are shown; the interface decides."""
        roles = {each['name'] for each in self.request.user.roles}
        return not roles.isdisjoint(('admin', 'manager'))

    def _title(self, account: str) -> str:
        """The project, the reader, or names of others."""
        user = self.request.user
        project = str(user.project_id)
        if account == project:
            return _('project %s') % user.project_name
        if account == f'{project}/{user.id}':
            return _('you (%s)') % user.username
        return self.directory.account(account)


def some(found: Iterable[Any], most: int = MOST) -> list[dict[str, Any]]:
    """The first items of a list."""
    return [each.to_dict() for each in itertools.islice(found, most)]


urlpatterns = [re_path(r'^$', ShareView.as_view(), name='index')]
