# SPDX-License-Identifier: Apache-2.0

"""Inventory of the VMs that run on this host.

Its own thread calls libvirt. A round only reads the thread's last list, so
that a slow, hanging or restarted libvirt delays no round.
"""

from collections.abc import Callable
from collections.abc import Mapping
import logging
import pathlib
import queue
import threading
import time
import types

from nova_fairness import exception
from nova_fairness.collect import hypervisor
from nova_fairness.collect import roster
from nova_fairness.model import instance

LOG = logging.getLogger(__name__)

_FIRST_RETRY_S = 1.0
_MAX_RETRY_S = 30.0
_SILENCE_LIMIT_S = 10.0
_NO_OWNERS: Mapping[str, tuple[str, str]] = types.MappingProxyType({})


class VmInventory:
    """Maintains the list of running VMs.

    Events of libvirt wake the thread, which then lists all domains: a lost or
    repeated event has no effect. The XML of a domain is read once per
    incarnation, and again after a device was plugged.

    :param connection_uri: of libvirt, such as ``qemu:///system``.
    :param reconcile_interval_s: seconds without an event after which the
        domains are listed anyway, > 0.
    :param owners: (user, project) by UUID or domain name, for VMs without
        metadata of Nova.
    :param clock: monotonic seconds.
    :param run: directory in which libvirt writes ``DOMAIN.pid``.
    :param proc: where procfs is mounted.
    :param describe: returns the cloud's facts of a VM without an owner.
    """

    def __init__(
        self,
        connection_uri: str,
        reconcile_interval_s: float,
        owners: Mapping[str, tuple[str, str]] = _NO_OWNERS,
        clock: Callable[[], float] = time.monotonic,
        run: str = '/run/libvirt/qemu',
        proc: str = '/proc',
        describe: roster.Describe = roster.no_description,
    ) -> None:
        self._uri = connection_uri
        self._interval_s = reconcile_interval_s
        self._clock = clock
        self._roster = roster.DomainReader(
            owners, pathlib.Path(run), pathlib.Path(proc), describe
        )
        self._wakeups: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None
        self._found: roster.Incarnations = {}
        self._problem = ''
        self._retry_s = _FIRST_RETRY_S
        self._listed_at_s = clock()
        self._asked_at_s = self._listed_at_s
        self._last_gap_s = 0.0
        self._suspended_s = 0.0

    @property
    def problem(self) -> str:
        """Why the list is outdated; empty if it is current.

        Read it once per round.
        """
        age_s = self._silent_s()
        if not self._problem and age_s > self._interval_s + _SILENCE_LIMIT_S:
            return f'libvirt at {self._uri}: no answer for {age_s:.0f} s'
        return self._problem

    def _silent_s(self) -> float:
        """Return the seconds without an answer of libvirt while this process
        ran.

        A gap between two calls that is much longer than the gap before means
        that this process itself was suspended.
        """
        now_s, listed_at_s = self._clock(), self._listed_at_s
        if listed_at_s > self._asked_at_s:
            self._suspended_s = 0.0
        gap_s = now_s - max(listed_at_s, self._asked_at_s)
        if gap_s > 3 * self._last_gap_s + _SILENCE_LIMIT_S:
            self._suspended_s += gap_s - self._last_gap_s
        self._last_gap_s = now_s - self._asked_at_s
        self._asked_at_s = now_s
        return now_s - listed_at_s - self._suspended_s

    def incarnations(self) -> tuple[instance.Incarnation, ...]:
        """Return the VMs of the last list, sorted by UUID; never blocks."""
        found = self._found  # replaced as a whole, never changed
        return tuple(found[uuid] for uuid in sorted(found))

    def start(self) -> None:
        """Start the thread; returns at once."""
        if self._thread is not None:
            return
        self._stopping.clear()
        self._thread = threading.Thread(
            target=self._run, name='inventory', daemon=True
        )
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Stop the thread.

        :param timeout_s: longest wait for a hanging call; its thread then
            remains, and does not prevent the end of the program.
        """
        if self._thread is None:
            return
        self._stopping.set()
        self._wakeups.put(None)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            LOG.warning(
                'libvirt at %s: no answer; the agent stops without closing it',
                self._uri,
            )
        self._thread = None

    def look_again(self, uuid: str) -> None:
        """Request that the XML of a domain is read again; returns at once."""
        self._wakeups.put(uuid)

    def wait_ready(self, timeout_s: float) -> bool:
        """Wait until all VMs were listed once.

        :returns: whether they were.
        """
        return self._ready.wait(timeout_s)

    def _run(self) -> None:
        """Run the thread: connect to libvirt again after each failure."""
        while not self._stopping.is_set():
            try:
                self._follow_connection()
            except exception.HypervisorUnavailable as error:
                self._set_problem(str(error))
            except Exception as error:
                LOG.exception('Inventory: unexpected error')
                self._set_problem(f'unexpected error: {error!r}')
            self._found = self._roster.running_only()
            self._wait(self._retry_s)
            self._retry_s = min(2 * self._retry_s, _MAX_RETRY_S)

    def _follow_connection(self) -> None:
        """List domains on one connection until it fails or the thread stops.

        :raises exception.HypervisorUnavailable: if the connection is lost.
        """
        connection = hypervisor.Hypervisor(self._uri, self._wakeups.put)
        try:
            self._roster.outdate_all()
            while not self._stopping.is_set():
                self._reconcile(connection)
                self._wait(
                    _FIRST_RETRY_S if self._problem else self._interval_s
                )
        finally:
            connection.close()

    def _reconcile(self, connection: hypervisor.Hypervisor) -> None:
        for found in self._roster.refresh(connection.list_running()):
            self._found = found
        self._listed_at_s = self._clock()
        self._retry_s = _FIRST_RETRY_S
        self._set_problem(self._roster.problem)
        self._ready.set()

    def _wait(self, timeout_s: float) -> None:
        """Wait for an event or the timeout; mark the changed domains."""
        if self._stopping.is_set():
            return
        try:
            self._mark_outdated(self._wakeups.get(timeout=timeout_s))
            while True:
                self._mark_outdated(self._wakeups.get_nowait())
        except queue.Empty:
            return

    def _mark_outdated(self, uuid: str | None) -> None:
        if uuid is not None:
            self._roster.outdate(uuid)

    def _set_problem(self, problem: str) -> None:
        """Store a problem; log its begin and its end once."""
        if problem and not self._problem:
            LOG.warning('%s; the last list of VMs stays in use', problem)
        elif self._problem and not problem:
            LOG.info(
                'libvirt at %s: the list of VMs is current again', self._uri
            )
        self._problem = problem
