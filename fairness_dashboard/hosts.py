# SPDX-License-Identifier: Apache-2.0

"""Hosts: the CPU that users get and want, and the users that wait for CPU."""

import collections
from collections.abc import Mapping
from typing import Any

from django.urls import re_path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fairness_dashboard import charts
from fairness_dashboard import directory
from fairness_dashboard import pages
from fairness_dashboard import parts

HOSTS = 10
"""Hosts of a page: each is asked for on its own."""

_LEAST_CPUS = 0.005
"""Less is not seen in numbers with two digits behind the point."""

_OWNERS = {'user': gettext_lazy('User'), 'project': gettext_lazy('Project')}


class HostsPanel(pages.NodePanel):
    """Menu entry of the page "Hosts"."""

    name = gettext_lazy('Hosts')
    slug = 'fairness_hosts'
    urls = 'hosts'


class HostsView(pages.FairnessView):
    """Hosts with the CPU that their users get, want, and would get."""

    template_name = 'fairness/hosts.html'
    page_title = gettext_lazy('Hosts')

    def content(self, **names: str) -> dict[str, Any]:
        """Return a page of hosts, or the selected host."""
        marker = self.request.GET.get('marker')
        name = self.request.GET.get('host', '').strip()
        found = parts.read(
            lambda: (
                ([self.api.get_host(name)], '')
                if name
                else parts.read_page(self.api.hosts, marker, most=HOSTS)
            )
        )
        listed, more = found.content or ([], '')
        return {
            'hosts': [self._host_row(each.answer) for each in listed],
            'host': name,
            'more': more,
            'problem': found.problem,
        }

    def _host_row(self, host: Mapping[str, Any]) -> dict[str, Any]:
        """Return the table row of a host.

        :param host: from the list of hosts, or a single host with details.
        """
        found = parts.read(lambda: self.api.get_preview(str(host['name'])))
        preview = found.content or {}
        forecast = _active_forecast(preview)
        return {
            **host,
            'owner': _OWNERS.get(preview.get('entity', ''), _OWNERS['user']),
            'users': _user_rows(
                forecast, str(preview.get('entity')), self.directory
            ),
            'problem': found.problem or forecast.get('problem'),
        }


def _active_forecast(preview: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the forecast with the active metric; empty if it is unknown."""
    metrics = preview.get('metrics') or ()
    return next((each for each in metrics if each.get('in_force')), {})


def _user_rows(
    forecast: Mapping[str, Any], entity: str, names: directory.NameDirectory
) -> list[dict[str, Any]]:
    """Return table rows of users, the largest amount of CPU first.

    :param entity: ``user`` or ``project``: the kind of owner that has a share.
    """
    weights: dict[str, float] = collections.defaultdict(float)
    for each in forecast.get('instances') or ():
        weights[str(each.get(entity))] += each.get('weight_ratio') or 0.0
    whole = sum(weights.values()) or 1.0
    users = forecast.get('users') or {}
    return [
        {
            'id': owner,
            'name': each.get('name') or names.account(owner),
            **_user_amounts(each, weights[owner] / whole),
        }
        for owner, each in sorted(
            users.items(), key=lambda pair: -pair[1]['gets_cpus']
        )
    ]


def _user_amounts(user: Mapping[str, Any], part: float) -> dict[str, Any]:
    """Return the amounts of a user.

    :param part: the fraction of all weights of the host, 0 to 1.
    """
    gets, wants = user['gets_cpus'], user['wants_cpus']
    amounts = {
        'gets': parts.format_amount('cpu_time', gets),
        'wants': parts.format_amount('cpu_time', wants),
    }
    return {
        **amounts,
        'servers': user.get('instances_here_count'),
        'share': parts.format_percent(part),
        'waits': wants - gets >= _LEAST_CPUS,
        'bar': charts.bar_chart(
            gets, wants, _('gets %(gets)s, wants %(wants)s') % amounts
        ),
    }


urlpatterns = [re_path(r'^$', HostsView.as_view(), name='index')]
