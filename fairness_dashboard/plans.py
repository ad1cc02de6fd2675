# SPDX-License-Identifier: Apache-2.0

"""Plans of moves: what they promise, and what they brought."""

from typing import Any
from typing import ClassVar

from django.urls import re_path
from django.utils.translation import gettext_lazy

from fairness_dashboard import pages
from fairness_dashboard import parts


class PlansPanel(pages.ClusterPanel):
    """The menu entry."""

    name = gettext_lazy('Plans')
    slug = 'fairness_plans'
    urls = 'plans'


class PlansView(pages.FairnessView):
    """Plans, the newest first."""

    template_name = 'fairness/plans.html'
    page_title = gettext_lazy('Plans of Moves')

    def content(self, **names: str) -> dict[str, Any]:
        """A page of plans."""
        marker = self.request.GET.get('marker')
        found = parts.ask(lambda: parts.page(self.api.plans, marker))
        listed, more = found.content or ([], '')
        return {
            'plans': [
                {
                    **self.directory.told(each.to_dict()),
                    'subject': self.directory.account(each.subject),
                    'made': parts.time(each.made_at),
                }
                for each in listed
            ],
            'more': more,
            'trouble': found.trouble,
        }


class PlanView(pages.FairnessView):
    """One plan with its moves."""

    template_name = 'fairness/plan.html'
    page_title = gettext_lazy('Plan of Moves')
    orders: ClassVar[pages.Orders] = {
        'approve': lambda api, form: api.approve_plan(form['uuid']),
        'stop': lambda api, form: api.stop_plan(form['uuid']),
    }

    def content(self, **names: str) -> dict[str, Any]:
        """The plan."""
        uuid = names['uuid']
        found = parts.ask(lambda: self.api.get_plan(uuid).to_dict())
        plan = self.directory.told(found.content or {})
        promised, won = plan.get('promised') or {}, plan.get('won') or {}
        return {
            'plan': plan,
            'subject': self.directory.account(plan.get('subject')),
            'moves': [
                {
                    **self.directory.told(each),
                    'name': self.directory.get(each['server']),
                }
                for each in plan.get('moves') or ()
            ],
            'stays': [
                self.directory.told(each) for each in plan.get('stays') or ()
            ],
            'until': parts.time(plan.get('until')),
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
            'trouble': found.trouble,
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
