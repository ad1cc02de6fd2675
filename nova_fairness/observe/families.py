# SPDX-License-Identifier: Apache-2.0

"""Makes metrics in the form of the Prometheus library."""

from collections.abc import Iterable
from collections.abc import Iterator
import re

from prometheus_client import core

PREFIX = 'nova_fairness_'

_HALF = re.compile('[\ud800-\udfff]')

Metrics = Iterator[core.Metric]
Labels = tuple[str, ...]


def _printable(values: Labels) -> Labels:
    """Labels that the library can write.

    Half a surrogate has no form in UTF-8: one such name, that a tenant chose,
    would end the scrape of everything.
    """
    return tuple(_HALF.sub('\ufffd', str(value)) for value in values)


def gauge(
    name: str,
    text: str,
    labels: Labels,
    samples: Iterable[tuple[Labels, float]],
) -> core.Metric:
    """Make a number that goes up and down; its name ends with its unit."""
    family = core.GaugeMetricFamily(PREFIX + name, text, labels=labels)
    for values, number in samples:
        family.add_metric(_printable(values), float(number))
    return family


def counter(
    name: str,
    text: str,
    samples: Iterable[tuple[Labels, float]],
    labels: Labels = (),
) -> core.Metric:
    """Make a number that only grows."""
    family = core.CounterMetricFamily(PREFIX + name, text, labels=labels)
    for values, number in samples:
        family.add_metric(_printable(values), float(number))
    return family
