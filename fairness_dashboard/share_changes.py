# SPDX-License-Identifier: Apache-2.0

"""Changes of shares, and previews of changes."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fairness_dashboard import parts


def _parse_share(form: Mapping[str, str]) -> float | None:
    """Parse the share of a form; an empty text restores the configured share.

    :raises ValueError: if the text is not a number of at least 0.
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


def _set_share(api: Any, form: Mapping[str, str]) -> Any:
    return api.set_share(form['account'], _parse_share(form))


def _preview_share(api: Any, form: Mapping[str, str]) -> str:
    found = api.set_share(form['account'], _parse_share(form), dry_run=True)
    return describe_preview(found['dry_run'])


def describe_preview(found: Mapping[str, Any]) -> str:
    """Describe the effect of a change.

    :param found: the answer of a dry run.
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
    nearer = _(
        '%(sooner_count)s would move forward in the queue, %(later_count)s'
        ' would move back.'
    )
    counts = {name: found[name] for name in found if name.endswith('_count')}
    return ' '.join(
        (told % counts, nearer % counts, *_past_text(found.get('past_waits')))
    )


def _past_text(past: Mapping[str, Any] | None) -> Iterator[str]:
    if past:
        yield ngettext(
            'The %(count)s request of the last week would have waited'
            ' %(after)s (median), and without the change %(before)s.',
            'The %(count)s requests of the last week would have waited'
            ' %(after)s (median), and without the change %(before)s.',
            past['requests_count'],
        ) % {
            'count': past['requests_count'],
            'after': parts.format_duration(past['after']['p50']),
            'before': parts.format_duration(past['before']['p50']),
        }


ACTIONS: Mapping[str, Callable[[Any, Mapping[str, str]], Any]] = {
    'set': _set_share,
    'preview': _preview_share,
}
"""Of forms with ``account`` and ``share``."""
