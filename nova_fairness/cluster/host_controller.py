# SPDX-License-Identifier: Apache-2.0

"""Loop of the controllers that change hosts, beside the cycle of the queue."""

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
    """Repeats a cycle in its own thread. No error ends the loop.

    :param service: service of the queue; it may be the leader.
    :param stopped: event that ends the loop.
    :param interval_s: seconds between two cycles.
    """

    name: str
    """Name of the controller in the log and in the quarantine."""

    idle: str
    """Start of the log message about a cycle that failed."""

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
        """Observe the hosts once, and execute the next steps.

        :returns: whether this process is the leader.
        :raises ClusterError: if the cycle cannot be done now.
        :raises NotLeading: if the queue has not read the cloud yet.
        """

    def run(self) -> None:
        """Repeat the cycle until the controller is stopped."""
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
                self._log_new_faults(
                    (f'{self.idle}: {error}; it is tried again',)
                )
            except Exception as error:  # noqa: BLE001 - no input ends the loop
                self._service.quarantine.put(_PART, self.name, error)
                why = type(error).__name__
                self._log_new_faults(
                    (f'{self.idle}: {why}; it is tried again',)
                )
            self._stopped.wait(self._interval_s)

    def last(self) -> _Observation:
        """Return the observation of the last cycle.

        :raises NotLeading: if this process is not the leader, or has not
            finished a cycle.
        """
        # Other threads may ask while a cycle clears it.
        last = self._last
        if last is None:
            # This raises NotLeading with the host that acts.
            self._service.last()
            raise exception.NotLeading('this host, which has not looked yet')
        return last

    def _epoch(self) -> int | None:
        """Return the epoch in which this process is the leader; ``None`` if it
        is not.

        :raises ClocksDisagree: if the time may be wrong.
        """
        epoch = self._service.leads()
        fault = self._service.clocks.fault
        if epoch is not None and fault:
            raise exception.ClocksDisagree(fault)
        return epoch

    def _require_epoch(self) -> int:
        """Return the epoch in which this process is the leader.

        :raises NotLeading: if this process is not the leader.
        """
        epoch = self._service.leads()
        if epoch is None:
            # This raises NotLeading with the host that acts.
            self._service.last()
            raise exception.NotLeading('unknown')
        return epoch

    def _run_part(
        self,
        name: str,
        do: Callable[..., Iterable[str] | None],
        *arguments: object,
    ) -> list[str]:
        """Run a part of a cycle. If it fails, it is quarantined, so that other
        parts still run.

        :returns: sentences that the part returned, or a sentence about its
            failure.
        """
        try:
            return list(do(*arguments) or ())
        except (exception.ClusterError, exception.NotLeading):
            raise
        except Exception as error:  # noqa: BLE001 - other parts are done
            self._service.quarantine.put(_PART, name, error)
            return [f'{name}: {type(error).__name__}']

    def _log_new_faults(self, told: tuple[str, ...]) -> None:
        """Log the messages that the last call did not contain."""
        for text in told:
            if text not in self._said:
                LOG.warning('%s', text)
        self._said = frozenset(told)
