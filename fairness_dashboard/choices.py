# SPDX-License-Identifier: Apache-2.0

"""Metric and policy of the domain, with a preview of a change."""

from typing import Any
from typing import ClassVar

from django.urls import re_path
from django.utils.translation import gettext_lazy

from fairness_dashboard import pages
from fairness_dashboard import parts


class ChoicesPanel(pages.NodePanel):
    """Menu entry of the page "Metric and Policy"."""

    name = gettext_lazy('Metric and Policy')
    slug = 'fairness_choices'
    urls = 'choices'


class ChoicesView(pages.FairnessView):
    """Installed metrics and policies, and the active ones."""

    template_name = 'fairness/choices.html'
    page_title = gettext_lazy('Metric and Policy')
    actions: ClassVar[pages.Actions] = {
        'set-metric': lambda api, form: api.act_on_host(
            'all', 'set-metric', {'name': form['name']}
        ),
        'set-policy': lambda api, form: api.act_on_host(
            'all', 'set-policy', {'name': form['name']}
        ),
    }

    def content(self, **names: str) -> dict[str, Any]:
        """Return plugins, hosts, and the preview for the selected host."""
        plugins = parts.read(self.api.get_plugins)
        known = plugins.content or {}
        host = self.request.GET.get('host', '')
        hosts = parts.read(lambda: parts.read_page(self.api.hosts, None)[0])
        preview = (
            parts.read(lambda: self.api.get_preview(host))
            if host
            else parts.PagePart()
        )
        return {
            'problem': plugins.problem,
            'kinds': [
                {
                    'title': title,
                    'order': f'set-{noun}',
                    'plugins': [each[noun] for each in known.get(key, ())],
                }
                for key, noun, title in _KINDS
            ],
            'hosts': [str(each.name) for each in hosts.content or ()],
            'host': host,
            'metrics': [
                {
                    **each,
                    'rows': [
                        {
                            **user,
                            'title': user.get('name')
                            or self.directory.account(owner),
                        }
                        for owner, user in (each.get('users') or {}).items()
                    ],
                }
                for each in (preview.content or {}).get('metrics') or ()
            ],
            'preview_problem': preview.problem,
        }


_KINDS = (
    ('metrics', 'metric', gettext_lazy('Metric')),
    ('policies', 'policy', gettext_lazy('Policy')),
)

urlpatterns = [re_path(r'^$', ChoicesView.as_view(), name='index')]
