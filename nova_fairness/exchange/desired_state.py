# SPDX-License-Identifier: Apache-2.0

"""Keeps the newest desired state: in memory, in a file, in a shared store.

How to use it::

    state = desired_state.DesiredState(
        host,                          # origin of what is set here
        desired_store.FileStore(state_path / 'desired.json'),
        desired_store.RedisStore(client, domain),    # or None
        poll_s,
    )
    state.start()              # reads the file; a thread asks the store
    state.current()            # Desired or None; never blocks
    state.set(metric, policy, configured)      # a new epoch
    state.take_over(desired)           # an epoch of another host, trusted
    state.offer(desired, trusted)      # gossip; never blocks
    state.status()
    state.stop()
"""

from collections.abc import Mapping
import logging
import threading
from typing import Any

from nova_fairness import exception
from nova_fairness.exchange import desired as desired_module
from nova_fairness.exchange import desired_store

LOG = logging.getLogger(__name__)

_PAUSE_S = 1.0
"""Between two looks at the store, however much gossip there is."""

_JOIN_S = 5.0


class DesiredState:
    """What the whole domain shall use, as far as this node knows.

    :param host: origin of what is set on this node.
    :param file: survives the agent.
    :param shared: all nodes can ask it; ``None``: gossip is all there is.
    :param poll_s: between two looks at the shared store, seconds.
    """

    def __init__(
        self,
        host: str,
        file: desired_store.FileStore,
        shared: desired_store.SharedStore | None = None,
        poll_s: float = 10.0,
    ) -> None:
        self._host = host
        self._file = file
        self._shared = shared
        self._poll_s = poll_s
        self._lock = threading.Lock()
        self._current: desired_module.Desired | None = None
        self._saved: desired_module.Desired | None = None
        self._saving = threading.Lock()
        self._problem = ''
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name='desired-state', daemon=True
        )

    def start(self) -> None:
        """Read the file, and begin to ask the store."""
        try:
            self._saved = self._file.load()
        except exception.StateError as error:
            LOG.warning('The former desired state is lost: %s', error)
        self._adopt(self._saved)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_S)

    def current(self) -> desired_module.Desired | None:
        """The newest choice; ``None`` if nothing was ever set."""
        with self._lock:
            return self._current

    def status(self) -> Mapping[str, Any]:
        """Say what is known, in JSON types.

        :returns: ``epoch`` (0: nothing was ever set), ``metric``,
            ``policy``, ``origin``, ``shared`` (whether there is a store) and
            ``problem`` (of the store, empty if there is none).
        """
        with self._lock:
            known, problem = self._current, self._problem
        return {
            'epoch': 0 if known is None else known.epoch,
            'metric': '' if known is None else known.metric,
            'policy': '' if known is None else known.policy,
            'origin': '' if known is None else known.origin,
            'shared': self._shared is not None,
            'problem': problem,
        }

    def set(
        self,
        metric: str | None,
        policy: str | None,
        configured: tuple[str, str],
    ) -> desired_module.Desired:
        """Make a new epoch.

        If the store is away, the epoch is made from what this node knows and
        told to the store when it is back.

        :param metric: its name; ``None`` leaves the one of the newest epoch.
        :param policy: likewise.
        :param configured: metric and policy that count if nothing was set.
        :raises ReportRefused: if there is no further epoch.
        """

        def change(
            kept: desired_module.Desired | None,
        ) -> desired_module.Desired:
            newest = desired_module.newest(kept, self.current())
            before = configured
            if newest is not None:
                before = newest.metric, newest.policy
            return desired_module.after(
                newest, metric or before[0], policy or before[1], self._host
            )

        made = self._made(change)
        self._adopt(made)
        self._save()
        self._wake.set()
        return made

    def take_over(
        self, desired: desired_module.Desired
    ) -> desired_module.Desired:
        """Take over what a controller says was set on another host.

        :returns: what counts now: this, or something newer.
        """
        self._adopt(desired)
        self._save()
        self._wake.set()
        return desired_module.newest(self.current(), desired) or desired

    def offer(
        self, seen: desired_module.Desired | None, *, trusted: bool
    ) -> None:
        """Hear gossip; returns at once.

        :param trusted: whether to believe it even though the shared store
            could be asked.
        """
        if seen is None or not seen.is_newer_than(self.current()):
            return
        if trusted or self._shared is None:
            self._adopt(seen)
        self._wake.set()

    def _made(self, change: desired_store.Change) -> desired_module.Desired:
        if self._shared is not None:
            try:
                return self._shared.change(change)
            except exception.ReportRefused:
                raise
            except exception.ExchangeError as error:
                self._note(str(error))
        return change(None)

    def _adopt(self, seen: desired_module.Desired | None) -> None:
        with self._lock:
            before = self._current
            if seen is None or not seen.is_newer_than(before):
                return
            self._current = seen
        LOG.info(
            'Desired state: metric %s, policy %s (epoch %d, set on %s)',
            seen.metric,
            seen.policy,
            seen.epoch,
            seen.origin,
        )

    def _save(self) -> None:
        with self._saving:
            newest = self.current()
            if newest is None or newest == self._saved:
                return
            try:
                self._file.save(newest)
            except exception.StateError as error:
                LOG.error('%s', error)
                return
            self._saved = newest

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            self._reconcile()
            self._save()
            self._stopping.wait(_PAUSE_S)
            self._wake.wait(self._poll_s)

    def _reconcile(self) -> None:
        """Bring the store and this node to the newer of the two."""
        if self._shared is None:
            return
        known = self.current()
        try:
            kept = (
                self._shared.load()
                if known is None
                else self._shared.change(
                    lambda other: desired_module.newest(other, known) or known
                )
            )
        except exception.ExchangeError as error:
            self._note(str(error))
            return
        self._adopt(kept)
        self._note('')

    def _note(self, problem: str) -> None:
        with self._lock:
            before, self._problem = self._problem, problem
        if problem and not before:
            LOG.warning('%s; the newest state known here counts', problem)
        elif before and not problem:
            LOG.info('The store of the desired state answers again')
