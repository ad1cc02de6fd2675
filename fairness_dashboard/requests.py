# SPDX-License-Identifier: Apache-2.0

"""Requests of a project: their positions and reasons."""

from collections.abc import Mapping
from typing import Any
from typing import ClassVar

from django.urls import re_path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fairness_dashboard import directory
from fairness_dashboard import pages
from fairness_dashboard import parts


class RequestsPanel(pages.ClusterPanel):
    """Menu entry of the page "My Requests"."""

    name = gettext_lazy('My Requests')
    slug = 'fairness_requests'
    urls = 'requests'


def request_row(
    request: Mapping[str, Any], names: directory.NameDirectory
) -> dict[str, Any]:
    """Return the table row of a request."""
    estimate = request.get('estimated_start') or {}
    servers = request.get('servers') or ()
    return {
        **names.with_names(request),
        'names': names.servers(servers),
        'known': [name for each in servers if (name := names.get(each))],
        'p50': parts.parse_time(estimate.get('p50')),
        'p90': parts.parse_time(estimate.get('p90')),
        'asked': parts.parse_time(request.get('asked_at')),
        'expires': parts.parse_time(request.get('expires_at')),
        'ends': parts.parse_time(request.get('ends_at')),
        'is_waiting': request.get('state') == 'waiting',
        'can_extend': bool(request.get('time_limit')),
    }


class RequestsView(pages.FairnessView):
    """Requests of a project: those in progress, or all."""

    template_name = 'fairness/requests.html'
    page_title = gettext_lazy('My Requests')
    actions: ClassVar[pages.Actions] = {
        'cancel': lambda api, form: api.cancel_request(form['uuid']),
    }

    def content(self, **names: str) -> dict[str, Any]:
        """Return a page of requests."""
        marker = self.request.GET.get('marker')
        is_all = 'all' in self.request.GET
        query = dict.fromkeys(('running', 'ended'), True) if is_all else {}
        found = parts.read(
            lambda: parts.read_page(self._listed, marker, **query)
        )
        listed, more = found.content or ([], '')
        return {
            'requests': [
                request_row(each.answer, self.directory) for each in listed
            ],
            'more': more,
            'is_all': is_all,
            'problem': found.problem,
        }

    def _listed(self, **query: Any) -> Any:
        return self.api.requests(**query)


class RequestView(pages.FairnessView):
    """One request with its history."""

    template_name = 'fairness/request.html'
    page_title = gettext_lazy('Request')
    actions: ClassVar[pages.Actions] = {
        'cancel': lambda api, form: api.cancel_request(form['uuid']),
        'hold': lambda api, form: api.hold_request(form['uuid']),
        'unhold': lambda api, form: api.unhold_request(form['uuid']),
        'extend': lambda api, form: api.extend_request(
            form['uuid'], 3600 * parse_hours(form)
        ),
    }

    def content(self, **names: str) -> dict[str, Any]:
        """Return the request and its events."""
        uuid = names['uuid']
        found = parts.read(lambda: self.api.get_request(uuid).answer)
        events = parts.read(lambda: self.api.request_events(uuid))
        known = found.content and request_row(found.content, self.directory)
        return {
            'asked_for': known,
            'problem': found.problem,
            'events': [
                {
                    **self.directory.with_names(each),
                    'at': parts.parse_time(each.get('at')),
                    'until': parts.parse_time(each.get('until')),
                }
                for each in events.content or ()
            ],
        }


def parse_hours(form: Mapping[str, str]) -> float:
    """Parse the hours of a form.

    :raises ValueError: if the text is not a number above 0.
    """
    try:
        found = float(form.get('hours', ''))
    except ValueError:
        found = 0.0
    if not found > 0:
        raise ValueError(_('Hours: a number above 0 is expected.'))
    return found


urlpatterns = [
    re_path(r'^$', RequestsView.as_view(), name='index'),
    re_path(
        r'^(?P<uuid>[0-9a-f-]{36})/$', RequestView.as_view(), name='detail'
    ),
]
