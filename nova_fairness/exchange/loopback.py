# SPDX-License-Identifier: Apache-2.0

"""An exchange for a cloud of one node: it hears only itself."""

import types

from nova_fairness.exchange import base
from nova_fairness.model import report


class LoopbackExchange(base.Exchange):
    """An exchange without peers: the own report is all there is."""

    def __init__(self) -> None:
        self._newest: report.NodeReport | None = None

    def publish(self, node_report: report.NodeReport) -> None:
        """Keep the report."""
        self._newest = node_report

    def view(self, now_s: float, metric: str = '') -> report.View:
        """The own report, which is never old."""
        nothing = types.MappingProxyType[str, str]({})
        if self._newest is None:
            return report.View({}, {}, nothing)
        host = self._newest.host
        return report.View({host: self._newest}, {host: 0.0}, nothing)
