# SPDX-License-Identifier: Apache-2.0

"""Creation of Prometheus metrics with a bounded number of series."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import re

from prometheus_client import core

from nova_fairness.observe import metric_definitions

PREFIX = 'nova_fairness_'

OTHERS = 'others'
"""Label value of the sum of all series beyond the bound."""

_LARGEST_FIRST = frozenset({'account', 'project', 'user'})
"""Labels whose largest values stay within the bound; for other labels the
first by name.
"""

_HALF = re.compile('[\ud800-\udfff]')

Metrics = Iterator[core.Metric]
Labels = tuple[str, ...]
Samples = Iterable[tuple[Labels, float]]


def limit_series(labels: Labels, samples: Samples, *, sums: bool) -> Samples:
    """Limit the series to the bounds of their labels.

    :param sums: whether series beyond the bound are added up as
        :data:`OTHERS`; otherwise they are omitted.
    """
    kept = list(samples)
    for label in metric_definitions.bounded_labels(labels):
        place, most = (
            labels.index(label),
            metric_definitions.MOST_VALUES[label],
        )
        if len(kept) > most:
            names = _kept_names(kept, place, most, label in _LARGEST_FIRST)
            kept = _apply_bound(kept, place, names, sums)
    return kept


def _kept_names(
    samples: Sequence[tuple[Labels, float]],
    place: int,
    most: int,
    largest: bool,
) -> frozenset[str]:
    totals: dict[str, float] = {}
    for values, number in samples:
        before = totals.get(values[place], 0.0)
        totals[values[place]] = before + (number if largest else 0.0)
    # A value named OTHERS is added to the sum: no series exists twice.
    totals.pop(OTHERS, None)
    ordered = sorted(totals, key=lambda name: (-totals[name], name))
    return frozenset(ordered[:most])


def _apply_bound(
    samples: Sequence[tuple[Labels, float]],
    place: int,
    names: frozenset[str],
    sums: bool,
) -> list[tuple[Labels, float]]:
    kept = [each for each in samples if each[0][place] in names]
    if not sums:
        return kept
    rest: dict[Labels, float] = {}
    for values, number in samples:
        if values[place] not in names:
            told = (*values[:place], OTHERS, *values[place + 1 :])
            rest[told] = rest.get(told, 0.0) + number
    return kept + sorted(rest.items())


def _printable(values: Labels) -> Labels:
    """Return label values without lone surrogates.

    UTF-8 cannot encode a lone surrogate. A tenant could choose such a name,
    and it would break the whole scrape.
    """
    return tuple(_HALF.sub('\ufffd', str(value)) for value in values)


def metric(name: str, samples: Samples) -> core.Metric:
    """Create a metric with its samples.

    :param name: name of a definition.
    :param samples: label values and the number of each series.
    """
    found = metric_definitions.DEFINITIONS[name]
    make = _FAMILIES[found.kind]
    family = make(PREFIX + name, found.help, labels=found.labels)
    for values, number in limit_series(found.labels, samples, sums=found.sums):
        family.add_metric(_printable(values), float(number))
    return family


_FAMILIES: Mapping[
    str, type[core.CounterMetricFamily] | type[core.GaugeMetricFamily]
] = {
    'counter': core.CounterMetricFamily,
    'gauge': core.GaugeMetricFamily,
}
