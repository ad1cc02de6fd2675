# SPDX-License-Identifier: Apache-2.0

"""The loop of controllers that change hosts, beside the queue."""

import abc
from collections.abc import Callable
from collections.abc import Iterable
import threading
from typing import Generic
from typing import TypeVar

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import quarantine
from nova_fairness.cluster import service as service_module

LOG = logging.getLogger(__name__)

_Observation = TypeVar('_Observation')
_PART = quarantine.InputKind.PART


class HostController(abc.ABC, Generic[_Observation]):
    """Repeats a cycle; no error ends the loop.

    :param service: service of the queue; it knows whether this process acts.
    :param stopped: event that ends the loop.
    :param interval_s: seconds between two cycles.
    """

    name: str
    """Name of the controller in the log and in the quarantine."""

    idle: str
    """Start of the log line for a cycle that failed."""

    def __init__(
        self,
        service: service_module.Service,
        stopped: threading.Event,
        interval_s: float,
    ) -> None:
        self._service = service
        self._stopped = stopped
        self._interval_s = interval_s
        self._last: _Observation | None = None
        self._said: frozenset[str] = frozenset()

    @abc.abstractmethod
    def cycle(self) -> bool:
        """Look at the hosts once, and do the next step.

        :returns: whether this process acts.
        :raises ClusterError: if nothing can be done now.
        :raises NotLeading: if the queue has not looked at the cloud yet.
        """

    def run(self) -> None:
        """Repeat the cycle until stopped."""
        while not self._stopped.is_set():
            try:
                self.cycle()
            except exception.Deposed as error:
                LOG.warning('another process leads now: %s', error)
            except exception.Outdated as error:
                # An operator changed it first: the next look sees the change.
                LOG.info('%s', error)
            except exception.NotLeading:
                # The first cycle of the queue is not over yet.
                LOG.debug('%s: waits for a cycle of the queue', self.name)
            except exception.ClusterError as error:
                self._say((f'{self.idle}: {error}; it is tried again',))
            except Exception as error:  # noqa: BLE001 - no input ends the loop
                self._service.quarantine.put(_PART, self.name, error)
                why = type(error).__name__
                self._say((f'{self.idle}: {why}; it is tried again',))
            self._stopped.wait(self._interval_s)

    def last(self) -> _Observation:
        """State that the last look found.

        :raises NotLeading: if this process does not act, or has not looked.
        """
        # Other threads may ask while a cycle clears it.
        last = self._last
        if last is None:
            # This raises NotLeading with the host that acts.
            self._service.last()
            raise exception.NotLeading('this host, which has not looked yet')
        return last

    def _epoch(self) -> int | None:
        """The epoch in which this process acts; ``None`` if it does not.

        :raises ClocksDisagree: if the time may be wrong.
        """
        epoch = self._service.leads()
        fault = self._service.clocks.fault
        if epoch is not None and fault:
            raise exception.ClocksDisagree(fault)
        return epoch

    def _acts(self) -> int:
        """The epoch in which this process acts.

        :raises NotLeading: if it does not.
        """
        epoch = self._service.leads()
        if epoch is None:
            # This raises NotLeading with the host that acts.
            self._service.last()
            raise exception.NotLeading('unknown')
        return epoch

    def _part(
        self,
        name: str,
        do: Callable[..., Iterable[str] | None],
        *arguments: object,
    ) -> list[str]:
        """Do a part of a cycle; if it fails, other parts are still done.

        :returns: sentences of the part, or a sentence that it failed.
        """
        try:
            return list(do(*arguments) or ())
        except (exception.ClusterError, exception.NotLeading):
            raise
        except Exception as error:  # noqa: BLE001 - other parts are done
            self._service.quarantine.put(_PART, name, error)
            return [f'{name}: {type(error).__name__}']

    def _say(self, told: tuple[str, ...]) -> None:
        """Log new problems: those that the last call did not have."""
        for text in told:
            if text not in self._said:
                LOG.warning('%s', text)
        self._said = frozenset(told)
