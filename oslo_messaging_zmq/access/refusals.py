# SPDX-License-Identifier: Apache-2.0

"""Counts all refusals, and logs them at a limited rate."""

import collections
import logging
import time

LOG = logging.getLogger(__name__)

QUIET_S = 60.0
_MAX_NAMES = 1000


class Refusals:
    """Counters of one driver; used by one thread, read by any.

    :param domain: name of the driver in the log.
    :param quiet_s: seconds in which the same message is not repeated.
    """

    def __init__(self, domain: str, quiet_s: float = QUIET_S) -> None:
        self._domain = domain
        self._quiet_s = quiet_s
        self._said: collections.OrderedDict[tuple[str, str], float] = (
            collections.OrderedDict()
        )
        self._unsaid = 0
        self.counts: collections.Counter[str] = collections.Counter()

    def note(self, kind: str, who: str, why: str) -> None:
        """Count a refusal, and log it unless the same was logged recently.

        :param kind: name of the counter.
        :param who: address or key of the peer.
        :param why: cause, for the log.
        """
        self.counts[kind] += 1
        now = time.monotonic()
        last = self._said.get((kind, who))
        full = len(self._said) >= _MAX_NAMES
        if full and last is None:
            last = self._delete_oldest_name(now)
        if last is not None and now - last < self._quiet_s:
            self._unsaid += 1
            return
        self._said[kind, who] = now
        self._said.move_to_end((kind, who))
        more = f' ({self._unsaid} more were not logged)' * bool(self._unsaid)
        self._unsaid = 0
        LOG.warning('%s refused %s: %s%s', self._domain, who, why, more)

    def counted(self, prefix: str) -> dict[str, int]:
        """Return the counters, with a prefix before each name."""
        return {f'{prefix}_{kind}': n for kind, n in self.counts.items()}

    def _delete_oldest_name(self, now: float) -> float | None:
        """Delete the name logged longest ago, unless that was recent."""
        oldest, said = next(iter(self._said.items()))
        if now - said < self._quiet_s:
            return said
        del self._said[oldest]
        return None
