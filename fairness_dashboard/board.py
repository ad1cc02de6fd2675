# SPDX-License-Identifier: Apache-2.0

"""State of the cluster service and of the agents."""

from typing import Any
from typing import ClassVar

from django.urls import re_path
from django.utils.translation import gettext_lazy

from fairness_dashboard import pages
from fairness_dashboard import parts


class BoardPanel(pages.NodePanel):
    """Menu entry of the page "Status"."""

    name = gettext_lazy('Status')
    slug = 'fairness_board'
    urls = 'board'


class StatusView(pages.FairnessView):
    """Leader of the cluster service, warnings, waiting times, hosts."""

    template_name = 'fairness/board.html'
    page_title = gettext_lazy('Status of Fair Sharing')
    actions: ClassVar[pages.Actions] = {
        'pause': lambda api, form: api.act_on_host(form['host'], 'pause'),
        'resume': lambda api, form: api.act_on_host(form['host'], 'resume'),
    }

    def content(self, **names: str) -> dict[str, Any]:
        """Return the status of the service and one page of hosts."""
        status = parts.read(self.api.get_status)
        marker = self.request.GET.get('marker')
        hosts = parts.read(lambda: parts.read_page(self.api.hosts, marker))
        listed, more = hosts.content or ([], '')
        known = self.directory.with_names(status.content or {})
        return {
            'problem': status.problem,
            'status': known,
            'seen': parts.parse_time(known.get('seen_at')),
            'since': parts.parse_time(known.get('leads_since')),
            'waiting': [
                {
                    **each,
                    'project_name': self.directory.get(each['project_id']),
                }
                for each in known.get('waiting', ())
            ],
            'shares': [
                {
                    **each,
                    'title': self.directory.account(each['account']),
                    'part': parts.format_percent(each.get('normalised_share')),
                    'used': parts.format_percent(each.get('used_part')),
                }
                for each in known.get('shares', ())
            ],
            'hosts': [each.answer for each in listed],
            'hosts_problem': hosts.problem,
            'more': more,
        }


urlpatterns = [re_path(r'^$', StatusView.as_view(), name='index')]
