# SPDX-License-Identifier: Apache-2.0

"""Flavors: whether a server starts now, and the likely wait otherwise."""

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
    """Menu entry of the page "Starts Now"."""

    name = gettext_lazy('Starts Now')
    slug = 'fairness_starts'
    urls = 'starts'


class CapacityView(pages.FairnessView):
    """Free capacity by flavor, zone and resource class."""

    template_name = 'fairness/starts.html'
    page_title = gettext_lazy('Starts Now')

    def content(self, **names: str) -> dict[str, Any]:
        """Return the capacity in use, and past waits."""
        capacity = parts.read(self.api.get_capacity)
        known = capacity.content or {}
        return {
            'problem': capacity.problem,
            'capacity': known,
            'seen': parts.parse_time(known.get('seen_at')),
            'flavors': [*_flavor_rows(self.api, known)],
            'classes': [
                {
                    **each,
                    'bar': charts.bar_chart(
                        each['used'],
                        each['capacity'],
                        _('%(used)s of %(capacity)s are used') % each,
                    ),
                }
                for each in known.get('classes', ())
            ],
        }


class FlavorCapacityView(views.View):  # type: ignore[misc]  # no types
    """JSON for the dialog that launches servers (``launch.js``)."""

    def get(self, request: Any) -> Any:
        """Return for each flavor whether a server starts now."""
        api = connection.fairness_client(request)
        capacity = parts.read(api.get_capacity)
        if capacity.problem:
            return http.JsonResponse(
                {'problem': capacity.problem},
                status=capacity.status or parts.AWAY,
            )
        flavors = [
            {
                'name': each['name'],
                'starts': each['starts'],
                'zones': each.get('zones'),
                'later': each['later'],
            }
            for each in _flavor_rows(api, capacity.content)
        ]
        words = {
            'title': _('Start'),
            'now': _('starts now'),
            'about': _(
                'Only vCPUs, memory and disk are counted. Limits of the'
                ' project and the position in the queue can delay a start.'
            ),
        }
        return http.JsonResponse({**words, 'flavors': flavors})


def _flavor_rows(
    api: Any, known: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Return the flavors, each with a text about its start.

    :param known: the answer of the API about capacity.
    """
    waits = parts.read(lambda: list(api.waits(by='flavor')))
    waited = {str(each.name): each.p50 for each in waits.content or ()}
    for each in known.get('flavors', ()):
        later = _wait_text(waited.get(each['name']))
        yield {
            **each,
            'later': later,
            'words': _start_text(each['starts']) if each['starts'] else later,
            # A service of the release before does not say it.
            'by_zone': sorted((each.get('zones') or {}).items()),
        }


def _start_text(starts: int) -> str:
    return (
        ngettext(
            'starts now, up to %s server',
            'starts now, up to %s servers',
            starts,
        )
        % starts
    )


def _wait_text(waited: float | None) -> str:
    """Describe the likely wait of a server that does not start now.

    :param waited: median wait in seconds of past servers that had to wait;
        ``None`` if there were none.
    """
    if waited is None or waited < 1:
        return _('waits; it is not known how long')
    return _('waits about %s') % parts.format_duration(waited)


urlpatterns = [
    re_path(r'^$', CapacityView.as_view(), name='index'),
    re_path(r'^flavors/$', FlavorCapacityView.as_view(), name='flavors'),
]
