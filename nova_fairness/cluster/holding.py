# SPDX-License-Identifier: Apache-2.0

"""Keeping messages in a store that may not be there yet."""

from collections.abc import Callable
from collections.abc import Sequence

from oslo_log import log as logging

from nova_fairness import exception
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
        return self._opened().hold_all(casts)

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
