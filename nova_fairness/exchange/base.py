# SPDX-License-Identifier: Apache-2.0

"""The interface of the exchange of reports, and an exchange without peers."""

import abc
import types

from nova_fairness.model import report


class Exchange(abc.ABC):
    """Sends a node's report and stores the newest report of each peer.

    Neither method waits for a peer.
    """

    @abc.abstractmethod
    def publish(self, node_report: report.NodeReport) -> None:
        """Queue a report for sending; returns at once.

        :raises ExchangeError: if the report cannot be encoded.
        """

    @abc.abstractmethod
    def view(self, now_s: float, metric: str = '') -> report.View:
        """Return the newest usable report of every node.

        :param now_s: monotonic clock, seconds.
        :param metric: reports of other nodes with another metric are left out;
            empty means the metric of this node's newest report.
        """

    def stop(self) -> None:
        """Close sockets and stop threads; may be called twice."""


class LoopbackExchange(Exchange):
    """An exchange without peers: it returns only this node's report."""

    def __init__(self) -> None:
        self._newest: report.NodeReport | None = None

    def publish(self, node_report: report.NodeReport) -> None:
        """Store the report."""
        self._newest = node_report

    def view(self, now_s: float, metric: str = '') -> report.View:
        """Return this node's report, with an age of 0."""
        nothing = types.MappingProxyType[str, str]({})
        if self._newest is None:
            return report.View({}, {}, nothing)
        host = self._newest.host
        return report.View({host: self._newest}, {host: 0.0}, nothing)
