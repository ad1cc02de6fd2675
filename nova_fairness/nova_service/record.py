# SPDX-License-Identifier: Apache-2.0

"""The agent's row in ``openstack compute service list``.

Nova shows a service as up while the count in its row grows at least every
``service_down_time`` seconds. A separate thread writes the row through the
conductor, so that an unreachable conductor delays nothing else.
"""

import logging
import threading
from typing import Any

from nova import context
from nova import exception as nova_exception
from nova import objects
from nova.objects import service as service_object
import oslo_messaging

from nova_fairness import exception

LOG = logging.getLogger(__name__)

BINARY = 'nova-fairness'
TOPIC = 'fairness'

_JOIN_S = 2.0

# Nova makes or deletes the row and only then finds that its list of known
# senders of notifications lacks this one, which the conductor hands on.
_IGNORED_ON_DELETE = (ValueError, oslo_messaging.RemoteError)
_IGNORED_ON_CREATE = (
    *_IGNORED_ON_DELETE,
    nova_exception.ServiceBinaryExists,
    nova_exception.ServiceTopicExists,
)


class ServiceRecord:
    """Updates the row of one node's agent periodically.

    :param host: Nova's name of the node.
    :param interval_s: seconds between two reports, > 0.
    """

    def __init__(self, host: str, interval_s: float) -> None:
        self._host = host
        self._interval_s = interval_s
        self._row: Any = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._problem = 'it has not reported yet'
        self._lost = False

    @property
    def problem(self) -> str:
        """Why the last report to Nova failed; empty if it succeeded."""
        return self._problem

    def start(self) -> None:
        """Start to report; returns at once."""
        self._thread = threading.Thread(
            target=self._report_loop, name='service-record', daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop to report; a hanging report's thread remains."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    def remove(self) -> bool:
        """Delete the row of a stopped agent.

        :returns: whether there was one.
        :raises StateError: if it still exists.
        :raises Exception: any error of Nova.
        """
        asker = context.get_admin_context()
        row = self._find_row(asker)
        if row is None:
            return False
        try:
            row.destroy()
        except _IGNORED_ON_DELETE as error:
            LOG.debug('Nova answered the deletion of the row: %s', error)
        if self._find_row(asker) is not None:
            raise exception.StateError(
                f'Nova keeps the row of {BINARY} on {self._host}'
            )
        return True

    def _report_loop(self) -> None:
        while not self._stopping.is_set():
            try:
                self._report()
            except Exception as error:  # noqa: BLE001 - whatever Nova raises
                self._set_problem(
                    f'{type(error).__name__}: {error}'.splitlines()[0]
                )
            else:
                self._set_problem('')
            self._stopping.wait(self._interval_s)

    def _report(self) -> None:
        if self._row is None:
            self._row = self._find_or_create()
        self._row.report_count += 1
        try:
            self._row.save()
        except nova_exception.NotFound:
            # An operator deleted it, or another database was put in place.
            self._row = None
            raise

    def _find_or_create(self) -> Any:
        """Find the row of this host, or create it.

        :raises NotFound: of Nova, if it cannot be created.
        """
        asker = context.get_admin_context()
        row = self._find_row(asker)
        if row is None:
            try:
                objects.Service(
                    asker,
                    host=self._host,
                    binary=BINARY,
                    topic=TOPIC,
                    report_count=0,
                ).create()
            except _IGNORED_ON_CREATE as error:
                LOG.debug('Nova answered the creation of the row: %s', error)
            row = self._find_row(asker)
        if row is None:
            raise nova_exception.HostBinaryNotFound(
                host=self._host, binary=BINARY
            )
        if row.version != service_object.SERVICE_VERSION:
            row.version = service_object.SERVICE_VERSION
        return row

    def _find_row(self, asker: Any) -> Any:
        return objects.Service.get_by_host_and_binary(
            asker, self._host, BINARY
        )

    def _set_problem(self, problem: str) -> None:
        """Store a problem; log its begin and its end once."""
        if problem and not self._lost:
            self._lost = True
            LOG.warning(
                'Nova: the report of this agent failed: %s; the rounds '
                'continue',
                problem,
            )
        elif not problem and self._problem:
            self._lost = False
            LOG.info(
                'Nova has the record of this agent: %s on %s',
                BINARY,
                self._host,
            )
        self._problem = problem
