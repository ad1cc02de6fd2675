# SPDX-License-Identifier: Apache-2.0

"""The contract of the exchange of reports, and a cloud of one node."""

import abc
import types

from nova_fairness.model import report


class Exchange(abc.ABC):
    """Sends a node's report and keeps the newest one of each peer.

    There is no barrier: neither method waits for a peer.
    """

    @abc.abstractmethod
    def publish(self, node_report: report.NodeReport) -> None:
        """Hand a report over for sending; returns at once.

        :raises ExchangeError: if the report can never be sent.
        """

    @abc.abstractmethod
    def view(self, now_s: float, metric: str = '') -> report.View:
        """The newest usable report of every node.

        :param now_s: monotonic clock, seconds.
        :param metric: reports of other nodes that were measured with another
            one are left out whole; empty: the one of the own newest report.
        """

    def stop(self) -> None:
        """Release sockets and threads; may be called twice."""


class LoopbackExchange(Exchange):
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
