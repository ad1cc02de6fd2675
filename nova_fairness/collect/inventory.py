# SPDX-License-Identifier: Apache-2.0

"""Inventory of the VMs that run on this host.

A thread of its own talks to libvirt. The round only takes what that thread
last found, so libvirt may be slow, hang or be restarted without delaying it.
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
_LONGEST_RETRY_S = 30.0
_PATIENCE_S = 10.0
_NOBODY: Mapping[str, tuple[str, str]] = types.MappingProxyType({})


class VmInventory:
    """Keeps the list of running VMs fresh.

    Events of libvirt wake the thread, which then lists all domains again: a
    lost or doubled event does no harm. The XML of a domain is read and parsed
    once per incarnation, and again when a device was plugged.

    :param connection_uri: of libvirt, such as ``qemu:///system``.
    :param reconcile_interval_s: after how many seconds without any event the
        domains are listed all the same, > 0.
    :param owners: (user, project) by UUID or domain name, for VMs without
        metadata of Nova.
    :param clock: monotonic seconds.
    :param run: directory into which libvirt writes ``DOMAIN.pid``.
    :param proc: where the process file system is mounted.
    :param describe: gives the cloud's facts of a VM without an owner.
    """

    def __init__(
        self,
        connection_uri: str,
        reconcile_interval_s: float,
        owners: Mapping[str, tuple[str, str]] = _NOBODY,
        clock: Callable[[], float] = time.monotonic,
        run: str = '/run/libvirt/qemu',
        proc: str = '/proc',
        describe: roster.Describe = roster.nothing_known,
    ) -> None:
        self._uri = connection_uri
        self._interval_s = reconcile_interval_s
        self._clock = clock
        self._roster = roster.Roster(
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
        self._usual_s = 0.0
        self._stood_s = 0.0

    @property
    def problem(self) -> str:
        """The reason why the list is not fresh; empty if it is.

        To be asked for once a round.
        """
        age_s = self._silent_s()
        if not self._problem and age_s > self._interval_s + _PATIENCE_S:
            return f'libvirt at {self._uri} is silent for {age_s:.0f} s'
        return self._problem

    def _silent_s(self) -> float:
        """Seconds for which libvirt said nothing while we could hear it.

        If it took much longer than the time before until we were asked, it is
        we who stood still: stopped by a signal, or with the whole machine.
        """
        now_s, listed_at_s = self._clock(), self._listed_at_s
        if listed_at_s > self._asked_at_s:
            self._stood_s = 0.0
        gap_s = now_s - max(listed_at_s, self._asked_at_s)
        if gap_s > 3 * self._usual_s + _PATIENCE_S:
            self._stood_s += gap_s - self._usual_s
        self._usual_s = now_s - self._asked_at_s
        self._asked_at_s = now_s
        return now_s - listed_at_s - self._stood_s

    def incarnations(self) -> tuple[instance.Incarnation, ...]:
        """The VMs last known to run, sorted by UUID; never blocks."""
        found = self._found  # replaced as a whole, never changed
        return tuple(found[uuid] for uuid in sorted(found))

    def start(self) -> None:
        """Start to follow libvirt; at once, whether it answers or not."""
        if self._thread is not None:
            return
        self._stopping.clear()
        self._thread = threading.Thread(
            target=self._follow, name='inventory', daemon=True
        )
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Stop to follow libvirt.

        :param timeout_s: how long to wait for a call that hangs; its thread
            is then left behind and does not keep the program from ending.
        """
        if self._thread is None:
            return
        self._stopping.set()
        self._wakeups.put(None)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            LOG.warning(
                'libvirt at %s does not answer; the agent ends without it',
                self._uri,
            )
        self._thread = None

    def look_again(self, uuid: str) -> None:
        """Read the XML of a domain again; returns at once."""
        self._wakeups.put(uuid)

    def wait_ready(self, timeout_s: float) -> bool:
        """Wait until all VMs were listed once.

        :returns: whether that has happened.
        """
        return self._ready.wait(timeout_s)

    def _follow(self) -> None:
        """Body of the thread: attend to libvirt, again and again."""
        while not self._stopping.is_set():
            try:
                self._attend()
            except exception.HypervisorUnavailable as error:
                self._note_problem(str(error))
            except Exception as error:
                LOG.exception('Unexpected error in the inventory')
                self._note_problem(f'unexpected error: {error!r}')
            self._found = self._roster.living()
            self._wait(self._retry_s)
            self._retry_s = min(2 * self._retry_s, _LONGEST_RETRY_S)

    def _attend(self) -> None:
        """Follow one connection until it is lost or the end comes.

        :raises exception.HypervisorUnavailable: when it is lost.
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
        for found in self._roster.refresh(connection.active()):
            self._found = found
        self._listed_at_s = self._clock()
        self._retry_s = _FIRST_RETRY_S
        self._note_problem(self._roster.problem)
        self._ready.set()

    def _wait(self, timeout_s: float) -> None:
        """Sleep until something happens; take in all that has happened."""
        if self._stopping.is_set():
            return
        try:
            self._take_in(self._wakeups.get(timeout=timeout_s))
            while True:
                self._take_in(self._wakeups.get_nowait())
        except queue.Empty:
            return

    def _take_in(self, uuid: str | None) -> None:
        if uuid is not None:
            self._roster.outdate(uuid)

    def _note_problem(self, problem: str) -> None:
        """Log a change for the worse or the better, once."""
        if problem and not self._problem:
            LOG.warning('%s; going on with the VMs last known', problem)
        elif self._problem and not problem:
            LOG.info('The VMs of libvirt at %s are known again', self._uri)
        self._problem = problem
