# SPDX-License-Identifier: Apache-2.0

"""Hosts that move between the batch system and the cloud."""

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
    'unclear': gettext_lazy('in doubt'),
}

_AT_REST = ('batch', 'cloud')
_MOVING = ('cloud_asked', 'leaving_batch', 'batch_asked', 'leaving_cloud')


class BorderPanel(pages.ClusterPanel):
    """Menu entry of the page "Border"."""

    name = gettext_lazy('Border')
    slug = 'fairness_border'
    urls = 'border'


class BorderView(pages.FairnessView):
    """Balance of both sides, hosts that may move, and details of one host."""

    template_name = 'fairness/border.html'
    page_title = gettext_lazy('Border between Batch and Cloud')
    actions: ClassVar[pages.Actions] = {
        'move': lambda api, form: _act(api, form, 'move'),
        'cancel': lambda api, form: _act(api, form, 'cancel'),
    }

    def content(self, **names: str) -> dict[str, Any]:
        """Return the balance, a page of hosts, and the selected host."""
        marker = self.request.GET.get('marker')
        name = self.request.GET.get('host', '')
        border = parts.read(self.api.get_border)
        hosts = parts.read(
            lambda: parts.read_page(self.api.border_hosts, marker)
        )
        listed, more = hosts.content or ([], '')
        shown = (
            parts.read(lambda: self.api.get_border_host(name).answer)
            if name
            else parts.PagePart()
        )
        known = self.directory.with_names(border.content or {})
        return {
            'problem': border.problem,
            'seen': parts.parse_time(known.get('seen_at')),
            'border': known,
            'states': _state_counts(known.get('states') or {}),
            'sides': _side_rows(known),
            'hosts': [
                _host_row(self.directory.with_names(each.answer))
                for each in listed
            ],
            'hosts_problem': hosts.problem if border.content else '',
            'more': more,
            'shown': shown.content
            and _host_details(shown.content, self.directory),
            'shown_problem': shown.problem,
        }


def _act(api: Any, form: Mapping[str, str], action: str) -> str:
    found = api.act_on_border_host(form['host'], action).answer
    return f'{found["name"]}: {_state_text(found)}'


def _state_text(host: Mapping[str, Any]) -> str:
    return str(_STATES.get(host['state'], host['state']))


def _state_counts(states: Mapping[str, int]) -> list[tuple[str, int]]:
    return [
        (str(words), states[state])
        for state, words in _STATES.items()
        if states.get(state)
    ]


def _side_rows(border: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return rows of the batch system and of the cloud, in cores.

    A side that gave no answer has no row.
    """
    return [
        {
            'title': title,
            'is_known': bool(border.get(side)),
            **{
                name: parts.format_number(value)
                for name, value in (border.get(side) or {}).items()
            },
        }
        for side, title in _SIDES
    ]


def _host_row(host: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table row of a host."""
    state = host['state']
    return {
        **host,
        'words': _state_text(host),
        'size': parts.format_cores(host.get('cores')),
        'since': parts.parse_time(host.get('since')),
        'until': parts.parse_time(host.get('until')),
        'places': [
            {'title': title, 'words': _place_text(host.get(side))}
            for side, title in _SIDES
        ],
        'is_moving': state in _MOVING,
        'can_move': state in _AT_REST and not host.get('fixed'),
        'can_stay': state in _MOVING and not host.get('fixed'),
    }


def _place_text(place: Mapping[str, Any] | None) -> str:
    """Describe the state of a host on one side."""
    if place is None:
        return _('not known to this system')
    if not place['up']:
        state = _('down')
    else:
        state = _('open') if place['open'] else _('closed')
    words = _('%(state)s, %(count)s at work on %(cores)s') % {
        'state': state,
        'count': place['work_count'],
        'cores': parts.format_cores(place['used_cores']),
    }
    return f'{words} ({place["reason"]})' if place['reason'] else words


def _host_details(
    host: Mapping[str, Any], names: directory.NameDirectory
) -> dict[str, Any]:
    """Return the details of a host: its work, and its last steps."""
    work = [
        {**each, 'name': names.get(each['name']) or each['name']}
        for each in host.get('work') or ()
    ]
    return {
        **_host_row(names.with_names(host)),
        'work': _add_time_texts(work, 'gone_at'),
        'history': _add_time_texts(
            map(names.with_names, host.get('history') or ()), 'at'
        ),
    }


def _add_time_texts(
    items: Iterable[Mapping[str, Any]], time_key: str
) -> list[dict[str, Any]]:
    """Add the parsed time of each entry, and its number of cores as a text.

    :param time_key: key of the time in an entry.
    """
    return [
        {
            **each,
            'when': parts.parse_time(each.get(time_key)),
            'cores_text': parts.format_number(each.get('cores')),
        }
        for each in items
    ]


urlpatterns = [re_path(r'^$', BorderView.as_view(), name='index')]
