# SPDX-License-Identifier: Apache-2.0

"""Requests of all projects, and orders of operators."""

from typing import Any
from typing import ClassVar

from django.urls import re_path
from django.utils.translation import gettext_lazy

from fairness_dashboard import pages
from fairness_dashboard import parts
from fairness_dashboard import requests


class QueuePanel(pages.ClusterPanel):
    """The menu entry."""

    name = gettext_lazy('Queue')
    slug = 'fairness_queue'
    urls = 'queue'


class QueueView(pages.FairnessView):
    """Requests with orders for each."""

    template_name = 'fairness/queue.html'
    page_title = gettext_lazy('Queue')
    orders: ClassVar[pages.Orders] = {
        'first': lambda api, form: api.put_request_first(form['uuid']),
        'unfirst': lambda api, form: api.put_request_back(form['uuid']),
        'hold': lambda api, form: api.hold_request(
            form['uuid'], form.get('why') or None
        ),
        'unhold': lambda api, form: api.unhold_request(form['uuid']),
        'release': lambda api, form: api.release_request(form['uuid']),
    }

    def content(self, **names: str) -> dict[str, Any]:
        """A page of requests that wait, start or change, or in a state."""
        marker = self.request.GET.get('marker')
        state = self.request.GET.get('state')
        query = {'state': state} if state else {}
        found = parts.ask(
            lambda: parts.page(
                self._listed, marker, all_projects=True, **query
            )
        )
        listed, more = found.content or ([], '')
        return {
            'requests': [
                {
                    **requests.row(each.to_dict(), self.directory),
                    'project_name': self.directory.get(each.project_id),
                }
                for each in listed
            ],
            'more': more,
            'trouble': found.trouble,
        }

    def _listed(self, **query: Any) -> Any:
        return self.api.requests(**query)


urlpatterns = [re_path(r'^$', QueueView.as_view(), name='index')]
