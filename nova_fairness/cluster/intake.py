# SPDX-License-Identifier: Apache-2.0

"""Messages that came become requests."""

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster.casts import parser
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import reason

LOG = logging.getLogger(__name__)

_AT_ONCE = 1000
_UNREADABLE = reason.why(reason.Reason.UNREADABLE)


def take_in(
    store: store_module.Store, now: float, longest_wait_s: float | None
) -> None:
    """Make requests of all messages that have none.

    What cannot be read becomes one that says so: no message is lost, and
    none keeps others from being read.

    :param now: seconds of the epoch.
    :param longest_wait_s: after which they expire; ``None`` for never.
    :raises StoreError: if the store does not do it.
    """
    for uuid in store.unread(_AT_ONCE):
        try:
            _take(store, uuid, now, longest_wait_s)
        except exception.SealBroken as error:
            LOG.error('message %s cannot be decrypted: %s', uuid, error)


def _take(
    store: store_module.Store,
    uuid: str,
    now: float,
    longest_wait_s: float | None,
) -> None:
    cast = store.cast(uuid)
    if cast is None:
        return
    try:
        request = parser.parse(cast, longest_wait_s)
    except exception.Unreadable as error:
        LOG.error('message %s cannot be read: %s', uuid, error)
    else:
        if store.add(request, uuid, now):
            return
        LOG.error('message %s is about servers that wait already', uuid)
    store.add(parser.unread(cast), uuid, now, _UNREADABLE)
