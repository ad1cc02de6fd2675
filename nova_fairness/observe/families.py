# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Makes metrics in the form of the Prometheus library."""

from collections.abc import Iterable
from collections.abc import Iterator

from prometheus_client import core

PREFIX = 'nova_fairness_'

Metrics = Iterator[core.Metric]
Labels = tuple[str, ...]


def gauge(
    name: str,
    text: str,
    labels: Labels,
    samples: Iterable[tuple[Labels, float]],
) -> core.Metric:
    """Make a number that goes up and down; its name ends with its unit."""
    family = core.GaugeMetricFamily(PREFIX + name, text, labels=labels)
    for values, number in samples:
        family.add_metric(values, float(number))
    return family


def counter(
    name: str, text: str, samples: Iterable[tuple[Labels, float]]
) -> core.Metric:
    """Make a number that only grows."""
    family = core.CounterMetricFamily(PREFIX + name, text, labels=())
    for values, number in samples:
        family.add_metric(values, float(number))
    return family
