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

Where peers have keys, a choice counts only if a controller signed it. Any
other choice, from the store or from gossip, is refused: the node keeps its
own, and writes it over the refused one.
"""

from collections.abc import Mapping
import dataclasses
import logging
import threading
import time
from typing import Any

from nova_fairness import exception
from nova_fairness.exchange import desired as desired_module
from nova_fairness.exchange import desired_store
from nova_fairness.model import caller
from nova_fairness.runtime import quiet_log
from nova_fairness.runtime import signatures as signatures_module

LOG = logging.getLogger(__name__)

_PAUSE_S = 1.0
"""Between two looks at the store, however much gossip there is."""

_JOIN_S = 5.0

REASONS = ('unsigned', 'signature', 'older', 'malformed', 'version')
"""Why a choice is refused; each is counted."""

UNSIGNED = (
    'where peers have keys, a controller signs metric and policy: ask with '
    'nova-fairness-ctl or nova-api of this release'
)


class DesiredState:
    """Desired state of the whole domain, as far as this node knows.

    :param host: origin of what is set on this node.
    :param file: survives the agent.
    :param shared: all nodes can ask it; ``None``: gossip is all there is.
    :param poll_s: between two looks at the shared store, seconds.
    :param signatures: judges who made a choice; ``None``: peers have no keys.
    :ivar state_file: what survives the agent.
    """

    def __init__(
        self,
        host: str,
        file: desired_store.FileStore,
        shared: desired_store.SharedStore | None = None,
        poll_s: float = 10.0,
        signatures: signatures_module.Signatures | None = None,
    ) -> None:
        self._host = host
        self.state_file = file
        self._shared = shared
        self._poll_s = poll_s
        self._signatures = signatures
        self._stored: desired_module.DesiredChoice | None = None
        self._tally = quiet_log.NameCounts()
        self._tally.add(*map(_counted, REASONS), count=0)
        self._log = quiet_log.QuietLog(LOG, time.monotonic)
        self._lock = threading.Lock()
        self._current: desired_module.DesiredChoice | None = None
        self._saved: desired_module.DesiredChoice | None = None
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
            self._saved = self.state_file.load()
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

    def current(self) -> desired_module.DesiredChoice | None:
        """The newest choice; ``None`` if nothing was ever set."""
        with self._lock:
            return self._current

    def status(self) -> Mapping[str, Any]:
        """Say what is known, in JSON types.

        :returns: ``epoch`` (0: nothing was ever set), ``metric``,
            ``policy``, ``origin``, ``signature``, ``user_id``, ``request_id``,
            ``shared`` (whether there is a store) and ``problem`` (of the
            store, empty if there is none).
        """
        with self._lock:
            known, problem = self._current, self._problem
        names = (
            item.name
            for item in dataclasses.fields(desired_module.DesiredChoice)
        )
        nothing = {**dict.fromkeys(names, ''), 'epoch': 0}
        return {
            **(nothing if known is None else dataclasses.asdict(known)),
            'shared': self._shared is not None,
            'problem': problem,
        }

    def statistics(self) -> Mapping[str, int]:
        """Count choices that were refused, by reason."""
        return self._tally.counts()

    def set(
        self,
        metric: str | None,
        policy: str | None,
        configured: tuple[str, str],
        by: caller.Asker = caller.UNKNOWN,
    ) -> desired_module.DesiredChoice:
        """Make a new epoch.

        If the store is away, the epoch is made from what this node knows and
        told to the store when it is back.

        :param metric: its name; ``None`` leaves the one of the newest epoch.
        :param policy: its name; ``None`` leaves the one of the newest epoch.
        :param configured: metric and policy that count if nothing was set.
        :param by: who asked for it.
        :raises ReportRefused: if there is no further epoch.
        :raises NotAllowed: where peers have keys.
        """
        if self._signatures is not None:
            raise exception.NotAllowed(UNSIGNED)

        def change(
            kept: desired_module.DesiredChoice | None,
        ) -> desired_module.DesiredChoice:
            newest = desired_module.newest(kept, self.current())
            before = configured
            if newest is not None:
                before = newest.metric, newest.policy
            return desired_module.after(
                newest,
                metric or before[0],
                policy or before[1],
                self._host,
                by,
            )

        made = self._made(change)
        self._adopt(made)
        self._save()
        self._wake.set()
        return made

    def take_over(
        self, desired: desired_module.DesiredChoice
    ) -> desired_module.DesiredChoice:
        """Take over what a controller says.

        :returns: what counts now: this, or something newer.
        :raises NotAllowed: if it must be signed, and is not.
        """
        try:
            self._check(desired)
        except exception.ReportRefused as error:
            self._tally.add(_counted(error.reason))
            raise exception.NotAllowed(str(error)) from error
        self._adopt(desired)
        self._save()
        self._wake.set()
        return desired_module.newest(desired, self.current()) or desired

    def offer(
        self, seen: desired_module.DesiredChoice | None, *, trusted: bool
    ) -> None:
        """Hear gossip; returns at once.

        :param trusted: whether to believe it even though the shared store
            could be asked; a signed state needs no trust.
        """
        if seen is None or not self._beats(seen, self.current()):
            return
        try:
            self._check(seen)
        except exception.ReportRefused as error:
            self._tally.add(_counted(error.reason))
            self._log.warning(
                error.reason, seen.origin, f'Not taken from a peer: {error}'
            )
            return
        if trusted or self._shared is None or self._signatures is not None:
            self._adopt(seen)
        self._wake.set()

    def _made(
        self, change: desired_store.Change
    ) -> desired_module.DesiredChoice:
        if self._shared is not None:
            try:
                return self._shared.change(change)
            except exception.ReportRefused:
                raise
            except exception.ExchangeError as error:
                self._note(str(error))
        return change(None)

    def _adopt(self, seen: desired_module.DesiredChoice | None) -> None:
        with self._lock:
            if seen is None or not self._beats(seen, self._current):
                return
            self._current = seen
        LOG.info(
            'Desired state: metric %s, policy %s (epoch %d of %s%s%s)',
            seen.metric,
            seen.policy,
            seen.epoch,
            seen.origin,
            f' for user {seen.user_id}' if seen.user_id else '',
            f' in {seen.request_id}' if seen.request_id else '',
        )

    def _save(self) -> None:
        with self._saving:
            newest = self.current()
            if newest is None or newest == self._saved:
                return
            if self.state_file.save(newest):
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
        try:
            kept, problem = self._looked_up(self._shared)
            self._adopt(kept)
            known = self.current()
            if known is not None and known != kept and self._is_good(known):
                self._stored = self._shared.change(
                    lambda other: self._winner(other, known)
                )
                self._adopt(self._stored)
        except exception.ExchangeError as error:
            problem = str(error)
        self._note(problem)

    def _looked_up(
        self, shared: desired_store.SharedStore
    ) -> tuple[desired_module.DesiredChoice | None, str]:
        """The content of the store, or why that is refused."""
        try:
            kept = shared.load()
            if kept is not None and kept != self.current():
                self._check(kept)
                self._check_order(kept)
        except exception.ReportRefused as error:
            self._tally.add(_counted(error.reason))
            return None, f'Not taken from the store: {error}'
        self._stored = kept or self._stored
        return kept, ''

    def _winner(
        self,
        other: desired_module.DesiredChoice | None,
        known: desired_module.DesiredChoice,
    ) -> desired_module.DesiredChoice:
        """The new content of the store, if it holds something else."""
        if other is None or not self._is_good(other):
            return known
        return other if other.is_newer_than(known) else known

    def _beats(
        self,
        seen: desired_module.DesiredChoice,
        before: desired_module.DesiredChoice | None,
    ) -> bool:
        """Tell whether a state replaces another, older or invalid, one."""
        if before is None or seen.is_newer_than(before):
            return True
        return seen != before and not self._is_good(before)

    def _is_good(self, choice: desired_module.DesiredChoice) -> bool:
        try:
            self._check(choice)
        except exception.ReportRefused:
            return False
        return True

    def _check(self, choice: desired_module.DesiredChoice) -> None:
        """Refuse what a controller should have signed, and did not."""
        if self._signatures is not None:
            self._signatures.check(dataclasses.asdict(choice))

    def _check_order(self, kept: desired_module.DesiredChoice) -> None:
        """Refuse what the store held before something newer."""
        before = self._stored
        if self._signatures is None or before in (None, kept):
            return
        if not self._beats(kept, before):
            raise exception.ReportRefused(
                'older',
                f'epoch {kept.epoch} of {kept.origin} is there again, after '
                f'epoch {before.epoch} of {before.origin}',
            )

    def _note(self, problem: str) -> None:
        with self._lock:
            before, self._problem = self._problem, problem
        if problem and not before:
            LOG.warning('%s; the newest state known here counts', problem)
        elif before and not problem:
            LOG.info('The store of the desired state is in order again')


def _counted(reason: str) -> str:
    return f'desired_refused_{reason}'
