# SPDX-License-Identifier: Apache-2.0

"""Stores the newest desired state: in memory, in a file, in a shared store.

How to use it::

    state = desired_state.DesiredState(
        host,                          # origin of what is set here
        desired_store.FileStore(state_path / 'desired.json'),
        desired_store.RedisStore(client, domain),    # or None
        poll_s,
    )
    state.start()              # reads the file; a thread polls the store
    state.current()            # a choice or None; never blocks
    state.set(metric, policy, configured)      # a new epoch
    state.take_over(desired)           # an epoch of another host, trusted
    state.offer(desired, trusted)      # gossip; never blocks
    state.status()
    state.stop()

Where peers have keys, a choice is valid only with a controller's signature.
Any other choice, from the store or from gossip, is refused: the node keeps its
own, and overwrites the refused one.
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

_MIN_POLL_S = 1.0
"""Smallest time between two reads of the store, in seconds."""

_JOIN_S = 5.0

REASONS = ('unsigned', 'signature', 'older', 'malformed', 'version')
"""Words for the causes of a refused choice; each is counted."""

UNSIGNED = (
    'where peers have keys, a controller signs metric and policy: ask with '
    'nova-fairness-ctl or nova-api of this release'
)


class DesiredState:
    """The desired state of the whole domain, as known to this node.

    :param host: origin of choices that are set on this node.
    :param file: stores the state over a restart of the agent.
    :param shared: store that all nodes can read; ``None`` leaves gossip only.
    :param poll_s: seconds between two reads of the shared store.
    :param signatures: checks who signed a choice; ``None``: peers have no
        keys.
    :ivar state_file: stores the state over a restart of the agent.
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
        self._tally.add(*map(_counter_name, REASONS), count=0)
        self._log = quiet_log.QuietLog(LOG, time.monotonic)
        self._lock = threading.Lock()
        self._current: desired_module.DesiredChoice | None = None
        self._saved: desired_module.DesiredChoice | None = None
        self._save_lock = threading.Lock()
        self._problem = ''
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._poll, name='desired-state', daemon=True
        )

    def start(self) -> None:
        """Read the file, and start to poll the store."""
        try:
            self._saved = self.state_file.load()
        except exception.StateError as error:
            LOG.warning(
                'Desired state: the saved one cannot be read: %s', error
            )
        self._adopt(self._saved)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopping.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_S)

    def current(self) -> desired_module.DesiredChoice | None:
        """Return the newest choice; ``None`` if there is none."""
        with self._lock:
            return self._current

    def status(self) -> Mapping[str, Any]:
        """Return the state in JSON types.

        :returns: ``epoch`` (0: there is no choice), ``metric``, ``policy``,
            ``origin``, ``signature``, ``user_id``, ``request_id``, ``shared``
            (whether there is a store) and ``problem`` (of the store, empty if
            there is none).
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
        """Return the number of refused choices, by cause."""
        return self._tally.counts()

    def set(
        self,
        metric: str | None,
        policy: str | None,
        configured: tuple[str, str],
        by: caller.Asker = caller.UNKNOWN,
    ) -> desired_module.DesiredChoice:
        """Create a new epoch.

        If the store is not reachable, the epoch is based on this node's
        knowledge, and sent to the store later.

        :param metric: its name; ``None`` keeps the one of the newest epoch.
        :param policy: its name; ``None`` keeps the one of the newest epoch.
        :param configured: metric and policy without any earlier choice.
        :param by: who requested it.
        :raises ReportRefused: if the last possible epoch was reached.
        :raises NotAllowed: where peers have keys.
        """
        if self._signatures is not None:
            raise exception.NotAllowed(UNSIGNED)

        def make_next(
            stored: desired_module.DesiredChoice | None,
        ) -> desired_module.DesiredChoice:
            newest = desired_module.newest(stored, self.current())
            before = configured
            if newest is not None:
                before = newest.metric, newest.policy
            return desired_module.next_choice(
                newest,
                metric or before[0],
                policy or before[1],
                self._host,
                by,
            )

        made = self._create_choice(make_next)
        self._adopt(made)
        self._save()
        self._wake.set()
        return made

    def take_over(
        self, desired: desired_module.DesiredChoice
    ) -> desired_module.DesiredChoice:
        """Accept the choice of a controller.

        :returns: the choice in force: this one, or a newer one.
        :raises NotAllowed: if a required signature is missing.
        """
        try:
            self._check_signature(desired)
        except exception.ReportRefused as error:
            self._tally.add(_counter_name(error.reason))
            raise exception.NotAllowed(str(error)) from error
        self._adopt(desired)
        self._save()
        self._wake.set()
        return desired_module.newest(desired, self.current()) or desired

    def offer(
        self, seen: desired_module.DesiredChoice | None, *, trusted: bool
    ) -> None:
        """Receive a choice by gossip; returns at once.

        :param trusted: whether to accept it although the shared store is
            reachable; a signed choice needs no trust.
        """
        if seen is None or not self._replaces(seen, self.current()):
            return
        try:
            self._check_signature(seen)
        except exception.ReportRefused as error:
            self._tally.add(_counter_name(error.reason))
            self._log.warning(
                error.reason,
                seen.origin,
                f'Desired state of a peer refused: {error}',
            )
            return
        if trusted or self._shared is None or self._signatures is not None:
            self._adopt(seen)
        self._wake.set()

    def _create_choice(
        self, make_next: desired_store.Change
    ) -> desired_module.DesiredChoice:
        if self._shared is not None:
            try:
                return self._shared.change(make_next)
            except exception.ReportRefused:
                raise
            except exception.ExchangeError as error:
                self._set_problem(str(error))
        return make_next(None)

    def _adopt(self, seen: desired_module.DesiredChoice | None) -> None:
        with self._lock:
            if seen is None or not self._replaces(seen, self._current):
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
        with self._save_lock:
            newest = self.current()
            if newest is None or newest == self._saved:
                return
            if self.state_file.save(newest):
                self._saved = newest

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            self._reconcile()
            self._save()
            self._stopping.wait(_MIN_POLL_S)
            self._wake.wait(self._poll_s)

    def _reconcile(self) -> None:
        """Write the newer choice of the store and this node to the other."""
        if self._shared is None:
            return
        try:
            stored, problem = self._load_shared(self._shared)
            self._adopt(stored)
            known = self.current()
            if (
                known is not None
                and known != stored
                and self._is_accepted(known)
            ):
                self._stored = self._shared.change(
                    lambda other: self._choose_newer(other, known)
                )
                self._adopt(self._stored)
        except exception.ExchangeError as error:
            problem = str(error)
        self._set_problem(problem)

    def _load_shared(
        self, shared: desired_store.SharedStore
    ) -> tuple[desired_module.DesiredChoice | None, str]:
        """Return the choice in the store, or the cause of its refusal."""
        try:
            stored = shared.load()
            if stored is not None and stored != self.current():
                self._check_signature(stored)
                self._check_order(stored)
        except exception.ReportRefused as error:
            self._tally.add(_counter_name(error.reason))
            return None, f'Desired state of the store refused: {error}'
        self._stored = stored or self._stored
        return stored, ''

    def _choose_newer(
        self,
        other: desired_module.DesiredChoice | None,
        known: desired_module.DesiredChoice,
    ) -> desired_module.DesiredChoice:
        """Return the new content of the store, if it contains another
        choice.
        """
        if other is None or not self._is_accepted(other):
            return known
        return other if other.is_newer_than(known) else known

    def _replaces(
        self,
        seen: desired_module.DesiredChoice,
        before: desired_module.DesiredChoice | None,
    ) -> bool:
        """Check whether a choice replaces another that is older or invalid."""
        if before is None or seen.is_newer_than(before):
            return True
        return seen != before and not self._is_accepted(before)

    def _is_accepted(self, choice: desired_module.DesiredChoice) -> bool:
        try:
            self._check_signature(choice)
        except exception.ReportRefused:
            return False
        return True

    def _check_signature(self, choice: desired_module.DesiredChoice) -> None:
        """Refuse a choice without the required signature of a controller."""
        if self._signatures is not None:
            self._signatures.check(dataclasses.asdict(choice))

    def _check_order(self, stored: desired_module.DesiredChoice) -> None:
        """Refuse a choice that the store had before a newer one."""
        before = self._stored
        if self._signatures is None or before in (None, stored):
            return
        if not self._replaces(stored, before):
            raise exception.ReportRefused(
                'older',
                f'epoch {stored.epoch} of {stored.origin} is older than epoch '
                f'{before.epoch} of {before.origin}, which was stored before',
            )

    def _set_problem(self, problem: str) -> None:
        with self._lock:
            before, self._problem = self._problem, problem
        if problem and not before:
            LOG.warning(
                '%s; the newest state known to this node stays in force',
                problem,
            )
        elif before and not problem:
            LOG.info('The store of the desired state works again')


def _counter_name(reason: str) -> str:
    return f'desired_refused_{reason}'
