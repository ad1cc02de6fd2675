# SPDX-License-Identifier: Apache-2.0

"""Prometheus metrics of a node about its peers."""

import collections
from collections.abc import Mapping

from nova_fairness.model import report
from nova_fairness.model import round as round_model
from nova_fairness.observe import families
from nova_fairness.observe import metric_definitions

MOST_HOSTS = metric_definitions.MOST_VALUES['host']
"""Largest number of series by host; a larger domain exports only the oldest
reports.
"""

_KINDS = (
    (report.SILENT, 'silent'),
    (report.OTHER_METRIC, 'other_metric'),
    (report.REFUSED, 'refused'),
)
"""First words of reasons, with the kind of the reason."""

Statistics = Mapping[str, Mapping[str, int]]


def kind(why: str) -> str:
    """Return the kind of a reason for which a node's report is not used.

    The reason itself contains numbers that change, so each text would be a
    series of its own.
    """
    return dict(_KINDS).get(why.split(' ', 1)[0], 'other')


def state_metrics(done: round_model.Round) -> families.Metrics:
    """Yield the metrics that need no measured round."""
    yield families.metric('desired_epoch', [((), done.epoch)])
    yield families.metric('paused_bool', [((), done.paused)])


def view_metrics(view: report.View, own_host: str) -> families.Metrics:
    """Yield the metrics about known nodes and their reports."""
    usable = set(view.reports) - {own_host}
    left_out = {host: kind(why) for host, why in view.left_out.items()}
    yield families.metric('peers_known', [((), len(usable | set(left_out)))])
    yield families.metric('peers_usable', [((), len(usable))])
    yield families.metric(
        'peers_left_out',
        [
            ((reason,), count)
            for reason, count in sorted(
                collections.Counter(left_out.values()).items()
            )
        ],
    )
    yield families.metric(
        'report_age_seconds',
        [((host,), age_s) for host, age_s in _oldest(view.age_s)],
    )
    yield families.metric(
        'node_left_out_bool',
        [
            ((host, reason), 1)
            for host, reason in sorted(left_out.items())[:MOST_HOSTS]
        ],
    )


def counter_metrics(statistics: Statistics) -> families.Metrics:
    """Yield the counters of the exchange and the transport."""
    yield families.metric(
        'exchange_statistics', _counted(statistics.get('exchange', {}))
    )
    yield families.metric(
        'transport_statistics', _counted(statistics.get('transport', {}))
    )


def _counted(
    counts: Mapping[str, int],
) -> list[tuple[families.Labels, float]]:
    return [((name,), counts[name]) for name in sorted(counts)]


def _oldest(age_s: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(age_s.items(), key=lambda pair: (-pair[1], pair[0]))[
        :MOST_HOSTS
    ]
