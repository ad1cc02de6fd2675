# SPDX-License-Identifier: Apache-2.0

"""Shares and limits of all accounts, with forms for operators."""

from typing import Any
from typing import ClassVar

from django.urls import re_path
from django.utils.translation import gettext_lazy

from fairness_dashboard import limits
from fairness_dashboard import pages
from fairness_dashboard import parts
from fairness_dashboard import share

_LIMITED = 10_000
"""Accounts with limits of their own that are searched for those shown."""


class TreePanel(pages.ClusterPanel):
    """Menu entry of the page "Share Tree"."""

    name = gettext_lazy('Share Tree')
    slug = 'fairness_tree'
    urls = 'tree'


class TreeView(pages.FairnessView):
    """The whole share tree."""

    template_name = 'fairness/tree.html'
    page_title = gettext_lazy('Share Tree')
    actions: ClassVar[pages.Actions] = limits.ACTIONS

    def content(self, **names: str) -> dict[str, Any]:
        """Return a page of accounts."""
        marker = self.request.GET.get('marker')
        found = parts.read(
            lambda: parts.read_page(self.api.shares, marker, all_projects=True)
        )
        listed, more = found.content or ([], '')
        limited = parts.read(
            lambda: share.first_items(
                self.api.limits(all_projects=True), _LIMITED
            )
        )
        return {
            'accounts': share.account_rows(
                [each.answer for each in listed],
                self.directory.account,
                limited.content or (),
            ),
            'has_limits': not limited.problem,
            'limits_problem': limited.problem,
            'more': more,
            'problem': found.problem,
        }


urlpatterns = [re_path(r'^$', TreeView.as_view(), name='index')]
