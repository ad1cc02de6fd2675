# SPDX-License-Identifier: Apache-2.0

"""Migration plans: expected and measured results."""

from typing import Any
from typing import ClassVar

from django.urls import re_path
from django.utils.translation import gettext_lazy

from fairness_dashboard import pages
from fairness_dashboard import parts


class PlansPanel(pages.ClusterPanel):
    """Menu entry of the page "Plans"."""

    name = gettext_lazy('Plans')
    slug = 'fairness_plans'
    urls = 'plans'


class PlansView(pages.FairnessView):
    """Migration plans, the newest first."""

    template_name = 'fairness/plans.html'
    page_title = gettext_lazy('Migration Plans')

    def content(self, **names: str) -> dict[str, Any]:
        """Return a page of plans."""
        marker = self.request.GET.get('marker')
        found = parts.read(lambda: parts.read_page(self.api.plans, marker))
        listed, more = found.content or ([], '')
        return {
            'plans': [
                {
                    **self.directory.with_names(each.answer),
                    'subject': self.directory.account(each.subject),
                    'made': parts.parse_time(each.made_at),
                }
                for each in listed
            ],
            'more': more,
            'problem': found.problem,
        }


class PlanView(pages.FairnessView):
    """One migration plan with its moves."""

    template_name = 'fairness/plan.html'
    page_title = gettext_lazy('Migration Plan')
    actions: ClassVar[pages.Actions] = {
        'approve': lambda api, form: api.approve_plan(form['uuid']),
        'stop': lambda api, form: api.stop_plan(form['uuid']),
    }

    def content(self, **names: str) -> dict[str, Any]:
        """Return the plan."""
        uuid = names['uuid']
        found = parts.read(lambda: self.api.get_plan(uuid).answer)
        plan = self.directory.with_names(found.content or {})
        promised, won = plan.get('promised') or {}, plan.get('won') or {}
        return {
            'plan': plan,
            'subject': self.directory.account(plan.get('subject')),
            'moves': [
                {
                    **self.directory.with_names(each),
                    'name': self.directory.get(each['server']),
                }
                for each in plan.get('moves') or ()
            ],
            'stays': [
                self.directory.with_names(each)
                for each in plan.get('stays') or ()
            ],
            'until': parts.parse_time(plan.get('until')),
            'outcomes': [
                {
                    'name': words,
                    'promised': promised.get(key),
                    'won': won.get(key),
                }
                for key, words in _OUTCOMES.items()
            ],
            'can_approve': plan.get('state') == 'proposed',
            'can_stop': plan.get('state') in _OPEN,
            'problem': found.problem,
        }


_OPEN = ('proposed', 'approved', 'running')

_OUTCOMES = {
    'hosts_before': gettext_lazy('Hosts in use before'),
    'hosts_after': gettext_lazy('Hosts in use after'),
    'emptied': gettext_lazy('Hosts emptied'),
    'moves': gettext_lazy('Servers moved'),
    'memory_mb': gettext_lazy('Memory sent, MB'),
    'served': gettext_lazy('Requests started'),
}

urlpatterns = [
    re_path(r'^$', PlansView.as_view(), name='index'),
    re_path(r'^(?P<uuid>[0-9a-f-]{36})/$', PlanView.as_view(), name='detail'),
]
