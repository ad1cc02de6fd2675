# SPDX-License-Identifier: Apache-2.0

"""Requests of all projects, and actions of operators on them."""

from typing import Any
from typing import ClassVar

from django.urls import re_path
from django.utils.translation import gettext_lazy

from fairness_dashboard import pages
from fairness_dashboard import parts
from fairness_dashboard import requests


class QueuePanel(pages.ClusterPanel):
    """Menu entry of the page "Queue"."""

    name = gettext_lazy('Queue')
    slug = 'fairness_queue'
    urls = 'queue'


class QueueView(pages.FairnessView):
    """Requests, each with the actions of operators."""

    template_name = 'fairness/queue.html'
    page_title = gettext_lazy('Queue')
    actions: ClassVar[pages.Actions] = {
        'first': lambda api, form: api.put_request_first(form['uuid']),
        'unfirst': lambda api, form: api.put_request_back(form['uuid']),
        'hold': lambda api, form: api.hold_request(
            form['uuid'], form.get('why') or None
        ),
        'unhold': lambda api, form: api.unhold_request(form['uuid']),
        'release': lambda api, form: api.release_request(form['uuid']),
    }

    def content(self, **names: str) -> dict[str, Any]:
        """Return a page of requests in progress or in a given state."""
        marker = self.request.GET.get('marker')
        state = self.request.GET.get('state')
        query = {'state': state} if state else {}
        found = parts.read(
            lambda: parts.read_page(
                self._listed, marker, all_projects=True, **query
            )
        )
        listed, more = found.content or ([], '')
        return {
            'requests': [
                {
                    **requests.request_row(each.answer, self.directory),
                    'project_name': self.directory.get(each.project_id),
                }
                for each in listed
            ],
            'more': more,
            'problem': found.problem,
        }

    def _listed(self, **query: Any) -> Any:
        return self.api.requests(**query)


urlpatterns = [re_path(r'^$', QueueView.as_view(), name='index')]
