# SPDX-License-Identifier: Apache-2.0

"""The agent as a row of ``openstack compute service list``.

Nova calls a service up as long as the count in its row grows at least every
``service_down_time`` seconds. The row is written through the conductor, on a
thread of its own: a conductor that is away delays nothing else.
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

_END_S = 2.0

# Nova makes or deletes the row and only then finds that its list of known
# senders of notifications lacks this one, which the conductor hands on.
_RAISED_AFTERWARDS = (ValueError, oslo_messaging.RemoteError)
_RAISED_AFTER_CREATION = (
    *_RAISED_AFTERWARDS,
    nova_exception.ServiceBinaryExists,
    nova_exception.ServiceTopicExists,
)


class ServiceRecord:
    """Keeps the row of one node's agent fresh.

    :param host: the node, as Nova knows it.
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
        """Why Nova was not told that this agent runs; empty if it was."""
        return self._problem

    def start(self) -> None:
        """Begin to report; returns at once."""
        self._thread = threading.Thread(
            target=self._report_always, name='service-record', daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop reporting; a report that hangs is left behind."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_END_S)

    def remove(self) -> bool:
        """Take the row of a stopped agent out of Nova's list.

        :returns: whether there was one.
        :raises StateError: if it is there still.
        :raises Exception: whatever Nova raises if it cannot be asked.
        """
        asker = context.get_admin_context()
        row = self._found(asker)
        if row is None:
            return False
        try:
            row.destroy()
        except _RAISED_AFTERWARDS as error:
            LOG.debug('Nova answered the deletion of the row: %s', error)
        if self._found(asker) is not None:
            raise exception.StateError(
                f'Nova keeps the row of {BINARY} on {self._host}'
            )
        return True

    def _report_always(self) -> None:
        while not self._stopping.is_set():
            try:
                self._report()
            except Exception as error:  # noqa: BLE001 - whatever Nova raises
                self._note(f'{type(error).__name__}: {error}'.splitlines()[0])
            else:
                self._note('')
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

        :raises NotFound: of Nova, if it cannot be made.
        """
        asker = context.get_admin_context()
        row = self._found(asker)
        if row is None:
            try:
                objects.Service(
                    asker,
                    host=self._host,
                    binary=BINARY,
                    topic=TOPIC,
                    report_count=0,
                ).create()
            except _RAISED_AFTER_CREATION as error:
                LOG.debug('Nova answered the creation of the row: %s', error)
            row = self._found(asker)
        if row is None:
            raise nova_exception.HostBinaryNotFound(
                host=self._host, binary=BINARY
            )
        if row.version != service_object.SERVICE_VERSION:
            row.version = service_object.SERVICE_VERSION
        return row

    def _found(self, asker: Any) -> Any:
        return objects.Service.get_by_host_and_binary(
            asker, self._host, BINARY
        )

    def _note(self, problem: str) -> None:
        """Log a change for the worse or the better, once."""
        if problem and not self._lost:
            self._lost = True
            LOG.warning(
                'Nova cannot be told that this agent runs (%s); the rounds '
                'go on',
                problem,
            )
        elif not problem and self._problem:
            self._lost = False
            LOG.info('Nova knows this agent as %s on %s', BINARY, self._host)
        self._problem = problem
