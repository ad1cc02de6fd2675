# SPDX-License-Identifier: Apache-2.0

"""The weights of the last hour, in memory and bounded."""

import collections
import dataclasses
import threading

import numpy as np

from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model

SPAN_S = 3600.0
"""Age after which entries are forgotten."""

STEP_S = 60.0
"""There is one entry for each minute at most."""

MOST = round(SPAN_S / STEP_S) + 1
"""Entries of a VM: both ends of the hour may be in a minute of their own."""

TOLERANCE = 0.01
"""Part of a weight by which it has to change to be worth an entry."""


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class MinuteWeights:
    """The weights at the end of a minute.

    :ivar wall_s: of the round that decided them, since the epoch, seconds.
    :ivar weights: (c,).
    """

    wall_s: float
    weights: usage_model.Scalars

    @property
    def minute(self) -> int:
        """The minute that it is the entry of."""
        return int(self.wall_s // STEP_S)


class WeightHistory:
    """Remembers for each VM of the node the minutes in which it changed.

    At most :data:`MOST` entries of a VM, about 200 bytes each. A VM that is
    not there any more is forgotten with the next round.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_uuid: dict[str, collections.deque[MinuteWeights]] = {}
        self._uuids: tuple[str, ...] = ()
        self._noted = np.zeros((0, len(resources.CONTROLS)))

    def add(self, done: round_model.Round) -> None:
        """Take over the weights of a round, if it decided any."""
        uuids = tuple(item.instance.uuid for item in done.incarnations)
        with self._lock:
            if uuids != self._uuids:
                self._follow(uuids)
            if done.decided is None:
                return
            weights = done.decided.weights
            alike = abs(weights - self._noted) <= TOLERANCE * self._noted
            for row in np.flatnonzero(~alike.all(axis=1)):
                # Of its own: a row of the round's array would keep all of it.
                entry = MinuteWeights(done.wall_s, np.array(weights[row]))
                self._noted[row] = entry.weights
                _note(self._by_uuid[uuids[row]], entry)

    def of(self, uuid: str, now_s: float) -> tuple[MinuteWeights, ...]:
        """Entries of a VM, oldest first.

        :param now_s: since the epoch, seconds.
        """
        with self._lock:
            entries = tuple(self._by_uuid.get(uuid, ()))
        return tuple(item for item in entries if item.wall_s > now_s - SPAN_S)

    def _follow(self, uuids: tuple[str, ...]) -> None:
        """Forget VMs that went, expect those that came."""
        before = self._by_uuid
        self._uuids = uuids
        self._by_uuid = {
            uuid: before.get(uuid, collections.deque(maxlen=MOST))
            for uuid in uuids
        }
        # Nothing is like what is not a number: it will be noted.
        self._noted = np.full((len(uuids), len(resources.CONTROLS)), np.nan)
        for row, uuid in enumerate(uuids):
            if entries := self._by_uuid[uuid]:
                self._noted[row] = entries[-1].weights


def _note(
    entries: collections.deque[MinuteWeights], entry: MinuteWeights
) -> None:
    while entries and entries[0].wall_s <= entry.wall_s - SPAN_S:
        entries.popleft()
    if entries and entries[-1].minute == entry.minute:
        entries[-1] = entry
    else:
        entries.append(entry)
