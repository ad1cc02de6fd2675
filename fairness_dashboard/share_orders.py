# SPDX-License-Identifier: Apache-2.0

"""Changes of shares, and previews of them."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fairness_dashboard import parts


def _share(form: Mapping[str, str]) -> float | None:
    """Read the share; an empty one goes back to that of the file.

    :raises ValueError: if it is no number of 0 or more.
    """
    text = form.get('share', '').strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise ValueError(_('Share: a number of 0 or more is expected.'))
    return value


def _set(api: Any, form: Mapping[str, str]) -> Any:
    return api.set_share(form['account'], _share(form))


def _preview(api: Any, form: Mapping[str, str]) -> str:
    found = api.set_share(form['account'], _share(form), dry_run=True)
    return foretold(found['dry_run'])


def foretold(found: Mapping[str, Any]) -> str:
    """Say what a change would do.

    :param found: answer of a dry run.
    """
    told = ngettext(
        'Preview, nothing was changed: of %(requests_count)s request that'
        ' waits, %(starts_after_count)s would start now, and without the'
        ' change %(starts_before_count)s.',
        'Preview, nothing was changed: of %(requests_count)s requests that'
        ' wait, %(starts_after_count)s would start now, and without the change'
        ' %(starts_before_count)s.',
        found['requests_count'],
    )
    nearer = ngettext(
        '%(sooner_count)s would come nearer to its start, %(later_count)s'
        ' would move back.',
        '%(sooner_count)s would come nearer to their start, %(later_count)s'
        ' would move back.',
        found['sooner_count'],
    )
    counts = {name: found[name] for name in found if name.endswith('_count')}
    return ' '.join(
        (told % counts, nearer % counts, *_of_past(found.get('past_waits')))
    )


def _of_past(past: Mapping[str, Any] | None) -> Iterator[str]:
    if past:
        yield ngettext(
            'The %(count)s request of the last week would have waited'
            ' %(after)s (median), and without the change %(before)s.',
            'The %(count)s requests of the last week would have waited'
            ' %(after)s (median), and without the change %(before)s.',
            past['requests_count'],
        ) % {
            'count': past['requests_count'],
            'after': parts.span(past['after']['p50']),
            'before': parts.span(past['before']['p50']),
        }


ORDERS: Mapping[str, Callable[[Any, Mapping[str, str]], Any]] = {
    'set': _set,
    'preview': _preview,
}
"""Of forms with ``account`` and ``share``."""
