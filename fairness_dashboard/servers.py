# SPDX-License-Identifier: Apache-2.0

"""Servers of a project: what each gets, and why."""

from collections.abc import Mapping
import itertools
from typing import Any

from django.urls import re_path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fairness_dashboard import charts
from fairness_dashboard import connection
from fairness_dashboard import directory
from fairness_dashboard import pages
from fairness_dashboard import parts

SERVERS = 20
"""Servers of a page: each is asked for on its own."""

_REQUESTS = 1000


class ServersPanel(pages.NodePanel):
    """Menu entry of the page "My Servers"."""

    name = gettext_lazy('My Servers')
    slug = 'fairness_servers'
    urls = 'servers'


class ServersView(pages.FairnessView):
    """Servers with the resources that they get, want and are entitled to."""

    template_name = 'fairness/servers.html'
    page_title = gettext_lazy('My Servers')

    def content(self, **names: str) -> dict[str, Any]:
        """Return a page of servers, in the order of Nova."""
        marker = self.request.GET.get('marker')
        compute = connection.connect(self.request).compute
        query = {'marker': marker} if marker else {}
        found = parts.read(
            lambda: list(
                itertools.islice(
                    compute.servers(limit=SERVERS + 1, **query), SERVERS + 1
                )
            )
        )
        listed = found.content or []
        more = listed[SERVERS - 1].id if len(listed) > SERVERS else ''
        requests = _requests_by_server(self.request)
        rows = [
            self._server_row(each, requests.get(each.id, {}))
            for each in listed[:SERVERS]
        ]
        return {'servers': rows, 'more': more, 'problem': found.problem}

    def _server_row(
        self, server: Any, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        found = parts.read(lambda: self.api.get_server(server.id).answer)
        known = self.directory.with_names(found.content or {})
        summary = known.get('summary') or ''
        # Agents say all sentences of the summary there again.
        advice = [e for e in known.get('advice') or () if e not in summary]
        return {
            'name': server.name or server.id,
            'id': server.id,
            'status': server.status,
            'summary': summary,
            'advice': advice,
            'problem': found.problem,
            'resources': _resource_rows(known),
            'weights': _weight_rows(known),
            'request': self.directory.with_names(request),
            'leaves': _eviction_text(request, self.directory),
        }


def _requests_by_server(request: Any) -> dict[str, Mapping[str, Any]]:
    """Return the requests of the project by the ID of their server."""
    if not pages.has_queue(request):
        return {}
    api = connection.fairness_client(request)
    found = parts.read(
        lambda: list(itertools.islice(api.requests(running=True), _REQUESTS))
    )
    return {
        server: each.answer
        for each in found.content or ()
        for server in each.servers or ()
    }


def _resource_rows(known: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the resources that a server gets, with its entitlement."""
    usage = known.get('usage') or {}
    endowment = known.get('endowment') or {}
    waiting = known.get('waiting') or ()
    return [
        {
            'name': parts.RESOURCES.get(name, name),
            'gets': parts.format_amount(name, value),
            'entitled': parts.format_amount(name, endowment.get(name)),
            'waits': name in waiting,
            'bar': charts.bar_chart(
                value or 0.0,
                endowment.get(name) or 0.0,
                _('gets %(gets)s, is entitled to %(entitled)s')
                % {
                    'gets': parts.format_amount(name, value),
                    'entitled': parts.format_amount(name, endowment.get(name)),
                },
            ),
        }
        for name, value in usage.items()
        if value or endowment.get(name)
    ]


def _weight_rows(known: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the weights of the last hour by control."""
    past = known.get('weights_last_hour') or ()
    return [
        {
            'name': name,
            'now': parts.format_number(value),
            'line': charts.line_chart(
                [
                    each['weights'][name]
                    for each in past
                    if (each.get('weights') or {}).get(name) is not None
                ],
                _('weight of the last hour, now %s')
                % parts.format_number(value),
            ),
        }
        for name, value in (known.get('weights') or {}).items()
    ]


def _eviction_text(
    request: Mapping[str, Any], names: directory.NameDirectory
) -> list[dict[str, Any]]:
    """Return the time and the reason of the eviction of a server."""
    leaving = [
        {
            'at': parts.parse_time(each.get('leaves_at')),
            'why': each.get('explanation'),
        }
        for each in map(names.with_names, request.get('leaving') or ())
    ]
    if not leaving and request.get('ends_at'):
        why = _('its time limit has passed')
        leaving = [{'at': parts.parse_time(request['ends_at']), 'why': why}]
    return leaving


urlpatterns = [re_path(r'^$', ServersView.as_view(), name='index')]
