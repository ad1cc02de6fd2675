# SPDX-License-Identifier: Apache-2.0

"""Client that stores arriving messages in a database that may not answer
yet.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import time

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import clocks as clocks_module
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cast as cast_module

LOG = logging.getLogger(__name__)


class MessageStoreClient:
    """Opens the store as soon as it answers, and writes messages to it; for
    one thread.

    :param open_store: opens the store.
    :param wall_clock: returns seconds of the epoch by the clock of the host.
    :param steady_clock: returns seconds of a clock that never jumps.
    :param accept_jump_after_s: seconds after which a jump of the clock of the
        host is accepted as its new time, > 0.
    :raises StoreError: if the store answers but cannot be used. A store that
        does not answer is opened later.
    """

    def __init__(
        self,
        open_store: Callable[[], store_module.Store],
        wall_clock: Callable[[], float] = time.time,
        steady_clock: Callable[[], float] = clocks_module.uptime_s,
        accept_jump_after_s: float = clocks_module.SETTLES_S,
    ) -> None:
        self._open = open_store
        self._store: store_module.Store | None = None
        self._clocks = clocks_module.Clocks(
            wall_clock,
            steady_clock,
            lambda: self._opened_store().database_time(),
            accept_jump_after_s,
        )
        try:
            self._store = open_store()
        except exception.StoreAway as error:
            LOG.warning(
                'the store does not answer: %s; new messages stay in the'
                ' broker until it answers',
                error,
            )

    def hold(self, casts: Sequence[cast_module.Cast]) -> Sequence[bool]:
        """Store messages; when this returns, they are safe on disk.

        :returns: for each message: ``False`` if it was stored before.
        :raises StoreAway: if the caller must try again later.
        :raises StoreError: if one of the messages cannot be stored.
        """
        fault = self._clocks.look()
        timely = _with_checked_times(casts, self._clocks.now(), fault)
        return self._opened_store().store_messages(timely)

    def leader_epoch(self) -> int:
        """Return the epoch of the leader, a number that grows with each new
        leader.

        :raises StoreError: if the number cannot be read.
        """
        return self._opened_store().leader().epoch

    def _opened_store(self) -> store_module.Store:
        if self._store is None:
            try:
                self._store = self._open()
            except exception.StoreError as error:
                # An operator repairs tables and keys; no message is lost until
                # then.
                raise exception.StoreAway(str(error)) from error
        return self._store


def _with_checked_times(
    casts: Sequence[cast_module.Cast], now: float, fault: str
) -> Sequence[cast_module.Cast]:
    """Return the messages with arrival times close to the present time.

    The wait of a request begins at its arrival time: with a wrong clock, a
    request would expire at once. While two clocks disagree, the later time is
    used, so that no request expires too early. The intake later corrects times
    in the future.

    :param now: present time, seconds of the epoch, continued since the clocks
        last agreed.
    :param fault: description of the disagreement of the clocks; '' if they
        agree.
    """
    if fault:
        LOG.error(
            '%s: new messages get the later of both times; correct the clocks',
            fault,
        )
    return [
        each
        if abs(each.received_at - now) <= clocks_module.MOST_S
        else dataclasses.replace(
            each, received_at=max(now, each.received_at) if fault else now
        )
        for each in casts
    ]
