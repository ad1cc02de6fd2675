# SPDX-License-Identifier: Apache-2.0

"""Labels that others chose."""

import prometheus_client
import pytest

from nova_fairness.observe import families


class Once:
    """A collector that gives one metric."""

    def __init__(self, metric):
        self._metric = metric

    def collect(self):
        yield self._metric


@pytest.mark.parametrize('name', ['\ud800', 'a\udfffb', '\udc80\udc81'])
def test_half_a_surrogate_in_a_label_ends_no_scrape(name):
    samples = [((name,), 1), (('ü',), 2)]
    for metric in (
        families.metric('user_heaviness_quotas', samples),
        families.metric('queue_requests', samples),
    ):
        registry = prometheus_client.CollectorRegistry()
        registry.register(Once(metric))
        text = prometheus_client.generate_latest(registry).decode()
        assert '\ufffd' in text
        assert '="ü"' in text
