# SPDX-License-Identifier: Apache-2.0

"""Hosts between batch system and cloud: where they are, and what moves."""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import ClassVar

from django.urls import re_path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fairness_dashboard import directory
from fairness_dashboard import pages
from fairness_dashboard import parts

_SIDES = (
    ('batch', gettext_lazy('Batch system')),
    ('cloud', gettext_lazy('Cloud')),
)

_STATES = {
    'batch': gettext_lazy('in the batch system'),
    'cloud_asked': gettext_lazy('moves to the cloud, not begun'),
    'leaving_batch': gettext_lazy('moves to the cloud, drains'),
    'cloud': gettext_lazy('in the cloud'),
    'batch_asked': gettext_lazy('moves to the batch system, not begun'),
    'leaving_cloud': gettext_lazy('moves to the batch system, drains'),
    'unclear': gettext_lazy('not clear'),
}

_AT_REST = ('batch', 'cloud')
_MOVING = ('cloud_asked', 'leaving_batch', 'batch_asked', 'leaving_cloud')


class BorderPanel(pages.ClusterPanel):
    """The menu entry."""

    name = gettext_lazy('Border')
    slug = 'fairness_border'
    urls = 'border'


class BorderView(pages.FairnessView):
    """Both sides, hosts that may move, and one of them in full."""

    template_name = 'fairness/border.html'
    page_title = gettext_lazy('Border between Batch and Cloud')
    orders: ClassVar[pages.Orders] = {
        'move': lambda api, form: _acted(api, form, 'move'),
        'cancel': lambda api, form: _acted(api, form, 'cancel'),
    }

    def content(self, **names: str) -> dict[str, Any]:
        """The balance, a page of hosts, and the host that was asked for."""
        marker = self.request.GET.get('marker')
        name = self.request.GET.get('host', '')
        border = parts.ask(self.api.get_border)
        hosts = parts.ask(lambda: parts.page(self.api.border_hosts, marker))
        listed, more = hosts.content or ([], '')
        shown = (
            parts.ask(lambda: self.api.get_border_host(name).to_dict())
            if name
            else parts.PagePart()
        )
        known = self.directory.told(border.content or {})
        return {
            'trouble': border.trouble,
            'seen': parts.time(known.get('seen_at')),
            'border': known,
            'states': _counts(known.get('states') or {}),
            'sides': _sides(known),
            'hosts': [
                _row(self.directory.told(each.to_dict())) for each in listed
            ],
            'hosts_trouble': hosts.trouble if border.content else '',
            'more': more,
            'shown': shown.content and _in_full(shown.content, self.directory),
            'shown_trouble': shown.trouble,
        }


def _acted(api: Any, form: Mapping[str, str], action: str) -> str:
    found = api.act_on_border_host(form['host'], action).to_dict()
    return f'{found["name"]}: {_state(found)}'


def _state(host: Mapping[str, Any]) -> str:
    return str(_STATES.get(host['state'], host['state']))


def _counts(states: Mapping[str, int]) -> list[tuple[str, int]]:
    return [
        (str(words), states[state])
        for state, words in _STATES.items()
        if states.get(state)
    ]


def _sides(border: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of the sides that gave an answer, in cores."""
    return [
        {
            'title': title,
            'is_known': bool(border.get(side)),
            **{
                name: parts.number(value)
                for name, value in (border.get(side) or {}).items()
            },
        }
        for side, title in _SIDES
    ]


def _row(host: Mapping[str, Any]) -> dict[str, Any]:
    """A host as the page shows it."""
    state = host['state']
    return {
        **host,
        'words': _state(host),
        'size': parts.cores(host.get('cores')),
        'since': parts.time(host.get('since')),
        'until': parts.time(host.get('until')),
        'places': [
            {'title': title, 'words': _place(host.get(side))}
            for side, title in _SIDES
        ],
        'is_moving': state in _MOVING,
        'can_move': state in _AT_REST and not host.get('fixed'),
        'can_stay': state in _MOVING and not host.get('fixed'),
    }


def _place(place: Mapping[str, Any] | None) -> str:
    """State of a host on one side, in words."""
    if place is None:
        return _('not known there')
    if not place['up']:
        state = _('down')
    else:
        state = _('open') if place['open'] else _('closed')
    words = _('%(state)s, %(count)s at work on %(cores)s') % {
        'state': state,
        'count': place['work_count'],
        'cores': parts.cores(place['used_cores']),
    }
    return f'{words} ({place["reason"]})' if place['reason'] else words


def _in_full(
    host: Mapping[str, Any], names: directory.NameDirectory
) -> dict[str, Any]:
    """A host with its work and its last steps."""
    work = [
        {**each, 'name': names.get(each['name']) or each['name']}
        for each in host.get('work') or ()
    ]
    return {
        **_row(names.told(host)),
        'work': _timed(work, 'gone_at'),
        'history': _timed(map(names.told, host.get('history') or ()), 'at'),
    }


def _timed(
    items: Iterable[Mapping[str, Any]], key: str
) -> list[dict[str, Any]]:
    return [
        {
            **each,
            'when': parts.time(each.get(key)),
            'cores_text': parts.number(each.get('cores')),
        }
        for each in items
    ]


urlpatterns = [re_path(r'^$', BorderView.as_view(), name='index')]
