# SPDX-License-Identifier: Apache-2.0

"""Evictions in progress, with their notices, and past preemptions."""

from collections.abc import Iterator
from collections.abc import Mapping
import itertools
from typing import Any

from django.urls import re_path
from django.utils.translation import gettext_lazy

from fairness_dashboard import connection
from fairness_dashboard import directory
from fairness_dashboard import pages
from fairness_dashboard import parts

LEAVING = 20
"""Servers that leave of a page: Nova is asked for each on its own."""

_REQUESTS = 1000
"""Requests of running servers that are searched for those that leave."""

_OVER = frozenset({'gone', 'returned', 'stays', 'spared'})
"""States of evictions that ended."""

_TOLD = ('fairness:leaves_at', 'fairness:leaves_by', 'fairness:leaves_why')
"""Metadata of a server in which its owner reads that it leaves."""

_OUTCOMES = {
    'freed': gettext_lazy('its room became free'),
    'stayed': gettext_lazy('its room did not become free'),
    'spared': gettext_lazy('the eviction was withdrawn'),
    None: gettext_lazy('open'),
}


class EvictionsPanel(pages.ClusterPanel):
    """Menu entry of the page "Evictions"."""

    name = gettext_lazy('Evictions')
    slug = 'fairness_evictions'
    urls = 'evictions'


class EvictionsView(pages.FairnessView):
    """Evictions in progress, and past preemptions."""

    template_name = 'fairness/evictions.html'
    page_title = gettext_lazy('Evictions')

    def content(self, **names: str) -> dict[str, Any]:
        """Return the evictions in progress, and a page of past preemptions."""
        marker = self.request.GET.get('marker')
        now = parts.read(
            lambda: [*itertools.islice(self._current_evictions(), LEAVING + 1)]
        )
        past = parts.read(
            lambda: parts.read_page(
                self._past_preemptions, marker, all_projects=True
            )
        )
        listed, more = past.content or ([], '')
        leaving = now.content or []
        rows = [
            self._eviction_row(request, each)
            for request, each in leaving[:LEAVING]
        ]
        return {
            'problem': now.problem,
            'leaving': rows,
            'is_cut': len(leaving) > LEAVING,
            'most': LEAVING,
            'past': [
                _preemption_row(each.answer, self.directory) for each in listed
            ],
            'past_problem': past.problem,
            'more': more,
        }

    def _current_evictions(self) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        """Return evictions in progress, each with its request."""
        found = self.api.requests(
            all_projects=True, running=False, state='active'
        )
        for request in itertools.islice(found, _REQUESTS):
            for each in request.answer.get('leaving') or ():
                if each.get('state') not in _OVER:
                    yield request, each

    def _past_preemptions(self, **query: Any) -> Any:
        return self.api.preemptions(**query)

    def _eviction_row(
        self, request: Any, leave: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the row of an eviction, with metadata of the server."""
        compute = connection.connect(self.request).compute
        found = parts.read(lambda: compute.get_server(leave['server']))
        server = found.content
        metadata = (server and server.metadata) or {}
        return {
            **self.directory.with_names(leave),
            'name': (server and server.name) or '',
            'project': self.directory.get(request.project_id),
            'other': self.directory.account(leave.get('for_request')),
            'project_id': request.project_id,
            'at': parts.parse_time(leave.get('leaves_at')),
            'told': [metadata[each] for each in _TOLD if each in metadata],
            'told_problem': found.problem,
        }


def _preemption_row(
    turn: Mapping[str, Any], names: directory.NameDirectory
) -> dict[str, Any]:
    """Return the table row of a past preemption."""
    outcome = turn.get('outcome')
    return {
        **names.with_names(turn),
        'name': names.get(turn.get('server')),
        'project': names.get(turn.get('project_id')),
        'other_project': names.account(turn.get('for_project')),
        'other': names.account(turn.get('for_request')),
        'chosen': parts.parse_time(turn.get('chosen_at')),
        'told': parts.parse_time(turn.get('told_at')),
        'at': parts.parse_time(turn.get('leaves_at')),
        'acted': parts.parse_time(turn.get('acted_at')),
        'returned': parts.parse_time(turn.get('returned_at')),
        'notice': parts.format_duration(turn.get('notice_s')),
        'ended': _OUTCOMES.get(outcome, outcome),
    }


urlpatterns = [re_path(r'^$', EvictionsView.as_view(), name='index')]
