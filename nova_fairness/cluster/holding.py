# SPDX-License-Identifier: Apache-2.0

"""Keeping messages in a store that may not be there yet."""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import clocks
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cast as cast_module

LOG = logging.getLogger(__name__)


class Holder:
    """Opens the store when it answers; for one thread.

    :param open_store: opens it.
    :raises StoreError: if the store answers and cannot be used; while it does
        not answer, it is opened later.
    """

    def __init__(self, open_store: Callable[[], store_module.Store]) -> None:
        self._open = open_store
        self._store: store_module.Store | None = None
        try:
            self._store = open_store()
        except exception.StoreAway as error:
            LOG.warning(
                'new requests stay with the broker until they can be kept: %s',
                error,
            )

    def hold(self, casts: Sequence[cast_module.Cast]) -> Sequence[bool]:
        """Keep messages; when this returns, they are safe on disk.

        :returns: ``False`` for those that are known.
        :raises StoreAway: if they are to be tried again.
        :raises StoreError: if one of them cannot be kept.
        """
        store = self._opened()
        return store.hold_all(_timely(casts, store.time()))

    def epoch(self) -> int:
        """Number that grows while somebody leads.

        :raises StoreError: if it is not known.
        """
        return self._opened().leader().epoch

    def _opened(self) -> store_module.Store:
        if self._store is None:
            try:
                self._store = self._open()
            except exception.StoreError as error:
                # An operator mends tables and keys; nothing is lost until
                # then.
                raise exception.StoreAway(str(error)) from error
        return self._store


def _timely(
    casts: Sequence[cast_module.Cast], told: float | None
) -> Sequence[cast_module.Cast]:
    """Messages that came now, by the clock that all hosts share.

    Waits count from there: by a wrong clock of this host requests would
    expire as they come.

    :param told: the time of the database, seconds of the epoch; ``None`` if
        it has none of its own.
    """
    if told is None:
        return casts
    wrong = [
        each for each in casts if abs(each.received_at - told) > clocks.MOST_S
    ]
    if not wrong:
        return casts
    LOG.error(
        'the clock of this host is %.0f s off that of the database: messages'
        ' get the time of the database; set the clock',
        wrong[0].received_at - told,
    )
    return [dataclasses.replace(each, received_at=told) for each in casts]
