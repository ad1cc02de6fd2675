# SPDX-License-Identifier: Apache-2.0

"""Flavors: which start now, and how long others are likely to wait."""

from typing import Any

from django.urls import re_path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.utils.translation import ngettext

from fairness_dashboard import charts
from fairness_dashboard import pages
from fairness_dashboard import parts


class StartsPanel(pages.ClusterPanel):
    """The menu entry."""

    name = gettext_lazy('Starts Now')
    slug = 'fairness_starts'
    urls = 'starts'


class StartsView(pages.FairnessView):
    """Room by flavor and by resource class."""

    template_name = 'fairness/starts.html'
    page_title = gettext_lazy('Starts Now')

    def content(self, **names: str) -> dict[str, Any]:
        """How full the cloud is, and waits of the past."""
        capacity = parts.ask(self.api.get_capacity)
        waits = parts.ask(lambda: list(self.api.waits(by='flavor')))
        waited = {str(each.name): each.p50 for each in waits.content or ()}
        known = capacity.content or {}
        return {
            'trouble': capacity.trouble,
            'capacity': known,
            'seen': parts.time(known.get('seen_at')),
            'flavors': [
                {
                    **each,
                    'words': _words(each['starts'], waited.get(each['name'])),
                }
                for each in known.get('flavors', ())
            ],
            'classes': [
                {
                    **each,
                    'bar': charts.bar(
                        each['used'],
                        each['capacity'],
                        _('%(used)s of %(capacity)s are used') % each,
                    ),
                }
                for each in known.get('classes', ())
            ],
        }


def _words(starts: int, waited: float | None) -> str:
    """The prospects of a flavor in words."""
    if starts:
        return (
            ngettext(
                'starts now, up to %s server',
                'starts now, up to %s servers',
                starts,
            )
            % starts
        )
    if waited is None:
        return _('waits; it is not known how long')
    return _('waits about %s') % parts.span(waited)


urlpatterns = [re_path(r'^$', StartsView.as_view(), name='index')]
