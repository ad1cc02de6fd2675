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
