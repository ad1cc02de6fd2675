# SPDX-License-Identifier: Apache-2.0

"""Flavors: which start now, and how long others are likely to wait."""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from django import http
from django import views
from django.urls import re_path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.utils.translation import ngettext

from fairness_dashboard import charts
from fairness_dashboard import connection
from fairness_dashboard import pages
from fairness_dashboard import parts


class StartsPanel(pages.ClusterPanel):
    """The menu entry."""

    name = gettext_lazy('Starts Now')
    slug = 'fairness_starts'
    urls = 'starts'


class StartsView(pages.FairnessView):
    """Room by flavor, zone and resource class."""

    template_name = 'fairness/starts.html'
    page_title = gettext_lazy('Starts Now')

    def content(self, **names: str) -> dict[str, Any]:
        """How full the cloud is, and waits of the past."""
        capacity = parts.ask(self.api.get_capacity)
        known = capacity.content or {}
        return {
            'trouble': capacity.trouble,
            'capacity': known,
            'seen': parts.time(known.get('seen_at')),
            'flavors': [*_flavors(self.api, known)],
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


class FlavorStartsView(views.View):  # type: ignore[misc]  # no types
    """JSON for the dialog that launches servers: see ``launch.js``."""

    def get(self, request: Any) -> Any:
        """Say of each flavor whether a server of it starts now."""
        api = connection.fairness(request)
        capacity = parts.ask(api.get_capacity)
        if capacity.trouble:
            return http.JsonResponse(
                {'trouble': capacity.trouble},
                status=capacity.status or parts.AWAY,
            )
        flavors = [
            {
                'name': each['name'],
                'starts': each['starts'],
                'zones': each.get('zones'),
                'later': each['later'],
            }
            for each in _flavors(api, capacity.content)
        ]
        words = {
            'title': _('Start'),
            'now': _('starts now'),
            'about': _(
                'By vCPUs, memory and disk. Limits of the project and the'
                ' place in the queue count besides.'
            ),
        }
        return http.JsonResponse({**words, 'flavors': flavors})


def _flavors(api: Any, known: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Flavors with their prospects in words.

    :param known: how full the cloud is.
    """
    waits = parts.ask(lambda: list(api.waits(by='flavor')))
    waited = {str(each.name): each.p50 for each in waits.content or ()}
    for each in known.get('flavors', ()):
        later = _later(waited.get(each['name']))
        yield {
            **each,
            'later': later,
            'words': _now(each['starts']) if each['starts'] else later,
            # A service of the release before does not say it.
            'by_zone': sorted((each.get('zones') or {}).items()),
        }


def _now(starts: int) -> str:
    return (
        ngettext(
            'starts now, up to %s server',
            'starts now, up to %s servers',
            starts,
        )
        % starts
    )


def _later(waited: float | None) -> str:
    """How long a server without room waits.

    :param waited: seconds that half of the past ones waited; those that found
        room at once tell nothing about others.
    """
    if waited is None or waited < 1:
        return _('waits; it is not known how long')
    return _('waits about %s') % parts.span(waited)


urlpatterns = [
    re_path(r'^$', StartsView.as_view(), name='index'),
    re_path(r'^flavors/$', FlavorStartsView.as_view(), name='flavors'),
]
