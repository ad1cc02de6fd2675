# SPDX-License-Identifier: Apache-2.0

"""The native thread of a matchmaker: all its conversation with Redis."""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import random
import time
from typing import Any

import redis

from oslo_messaging_zmq import native_log
from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.matchmaker import listing as matchmaker_listing
from oslo_messaging_zmq.matchmaker import matchmaker_reading
from oslo_messaging_zmq.matchmaker import store as matchmaker_store
from oslo_messaging_zmq.redis import client

LOG = native_log.Log(__name__)

COUNTERS = (
    'announced',
    'announced_again',
    'reads',
    'records_dropped',
    'members_dropped',
    'refused',
    'outages',
)
"""Records written for the first time; written because they were missing;
topics read; records, and members of an index, that were not understood or
too many; commands that Redis refused; times that it was away."""

FORGET_S = 600.0
"""A topic that nobody asked for so long is not kept up to date any more."""


class Rounds:
    """Announces, withdraws, asks for changes and reads, time and again.

    :param plan: how often, and where.
    :param shared: what is to be told, and what is known.
    :param watchers: told of every change.
    """

    def __init__(
        self,
        plan: matchmaker_reading.Plan,
        shared: matchmaker_listing.Knowledge,
        watchers: Sequence[contract.Watcher],
    ) -> None:
        self._plan = plan
        self._shared = shared
        self._faults = matchmaker_reading.Faults(shared.counters)
        self._reader = matchmaker_reading.Reader(
            plan, shared, watchers, self._faults
        )
        self._outage = client.Outage(plan.settings, LOG, 'news of listeners')
        self._store: matchmaker_store.Store | None = None
        self._attempt_s = 0.0
        self._poll_s = 0.0

    def run(self) -> None:
        """Go on until ``shared.stopping``, whatever happens."""
        shared = self._shared
        while not shared.stopping:
            shared.wake.wait(self._pause_s())
            shared.wake.clear()
            if time.monotonic() >= self._attempt_s and not shared.stopping:
                self._attempt()
        if not self._outage.lasts:
            shared.leave_all()
            self._attempt()
        self._close()
        self._answer(shared.take_questions())
        shared.ended.set()

    def _pause_s(self) -> float:
        next_s = self._attempt_s if self._outage.lasts else self._poll_s
        return max(0.0, next_s - time.monotonic())

    def _attempt(self) -> None:
        questions = self._shared.take_questions()
        try:
            self._round({one.topic for one in questions if one.topic})
            self._outage.worked()
        except client.FAILURES as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 -- this thread must live
            LOG.error('Unexpected %s: %s', type(error).__name__, error)
            self._failed(error)
        finally:
            self._answer(questions)

    def _failed(self, error: Exception) -> None:
        self._attempt_s = time.monotonic() + self._outage.failed(error)
        self._shared.counters['outages'] = self._outage.count
        self._close()

    def _answer(self, questions: list[matchmaker_listing.Question]) -> None:
        for question in questions:
            if question.topic in self._shared.listings:
                self._shared.listings[question.topic].tried = True
            question.waiter.set()

    def _close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _round(self, topics: set[matchmaker_listing.Topic]) -> None:
        store = self._connected()
        now_s = time.monotonic()
        for peer in self._shared.take_leaving():
            self._guarded(store.withdraw, peer)
        if self._shared.stopping:
            return
        if now_s >= self._poll_s:
            topics = topics | self._poll(store, now_s)
            self._poll_s = now_s + self._plan.poll_s
        for own in self._shared.due(now_s):
            if self._guarded(self._announce, store, own, now_s):
                topics.add((own.peer.exchange, own.peer.topic))
        for topic in sorted(topics):
            self._guarded(self._reader.read, store, topic, now_s)

    def _connected(self) -> matchmaker_store.Store:
        if self._store is None:
            plan = self._plan
            self._store = matchmaker_store.Store(
                client.connect(plan.settings, timeout_s=plan.timeout_s),
                plan.keys,
                plan.ttl_s,
                plan.most_peers,
            )
        return self._store

    def _guarded(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Do what may fail for one key without harm to the others."""
        try:
            return step(*arguments)
        except redis.ResponseError as error:
            if client.is_general(error):
                raise
            self._faults.note('refused', [str(error)])
            return None

    def _poll(
        self, store: matchmaker_store.Store, now_s: float
    ) -> set[matchmaker_listing.Topic]:
        listings = self._shared.listings_in_use(now_s, FORGET_S)
        marks, lost = store.changes(list(listings), self._shared.announced())
        if lost:
            self._shared.announce_all_again()
        return {
            topic
            for (topic, listing), mark in zip(
                listings.items(), marks, strict=True
            )
            if mark != listing.mark or listing.keeps or listing.due_s <= now_s
        }

    def _announce(
        self,
        store: matchmaker_store.Store,
        own: matchmaker_listing.Own,
        now_s: float,
    ) -> bool:
        peer, is_new = own.peer, own.peer.generation == 0
        if is_new:
            peer = dataclasses.replace(peer, generation=store.generation())
        was_missing = store.announce(peer)
        due_s = now_s + self._plan.ttl_s / 3 * random.uniform(0.8, 1.0)
        self._shared.announced_now(own, peer, due_s)
        if was_missing:
            name = 'announced' if is_new else 'announced_again'
            self._shared.counters[name] += 1
        return was_missing
