# SPDX-License-Identifier: Apache-2.0

"""The weights of the node's VMs in the last hour, in bounded memory."""

import collections
import dataclasses
import threading

import numpy as np

from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model

MAX_AGE_S = 3600.0
"""Age at which an entry is deleted, in seconds."""

STEP_S = 60.0
"""Length of the period that has at most one entry, in seconds."""

MAX_ENTRIES = round(MAX_AGE_S / STEP_S) + 1
"""Largest number of entries of a VM: 61 minutes can overlap one hour."""

TOLERANCE = 0.01
"""Smallest relative change of a weight that is recorded."""


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class MinuteWeights:
    """The weights of a VM at the end of a minute.

    :ivar wall_s: time of the round that decided them, seconds since the epoch.
    :ivar weights: (c,).
    """

    wall_s: float
    weights: usage_model.Scalars

    @property
    def minute(self) -> int:
        """The number of the minute since the epoch."""
        return int(self.wall_s // STEP_S)


class WeightHistory:
    """Stores the minutes in which the weights of each VM changed.

    There are at most :data:`MAX_ENTRIES` entries of a VM, about 200 bytes
    each. The next round deletes the entries of a VM that left the node.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_uuid: dict[str, collections.deque[MinuteWeights]] = {}
        self._uuids: tuple[str, ...] = ()
        self._noted = np.zeros((0, len(resources.CONTROLS)))

    def add(self, done: round_model.Round) -> None:
        """Record the weights that a round decided, if it decided any."""
        uuids = tuple(item.instance.uuid for item in done.incarnations)
        with self._lock:
            if uuids != self._uuids:
                self._set_vms(uuids)
            if done.decided is None:
                return
            weights = done.decided.weights
            alike = abs(weights - self._noted) <= TOLERANCE * self._noted
            for row in np.flatnonzero(~alike.all(axis=1)):
                # Of its own: a row of the round's array would keep all of it.
                entry = MinuteWeights(done.wall_s, np.array(weights[row]))
                self._noted[row] = entry.weights
                _append_entry(self._by_uuid[uuids[row]], entry)

    def entries_of(self, uuid: str, now_s: float) -> tuple[MinuteWeights, ...]:
        """Return the entries of a VM, oldest first.

        :param now_s: seconds since the epoch.
        """
        with self._lock:
            entries = tuple(self._by_uuid.get(uuid, ()))
        return tuple(
            item for item in entries if item.wall_s > now_s - MAX_AGE_S
        )

    def _set_vms(self, uuids: tuple[str, ...]) -> None:
        """Delete the entries of VMs that left, and prepare those of new
        VMs.
        """
        before = self._by_uuid
        self._uuids = uuids
        self._by_uuid = {
            uuid: before.get(uuid, collections.deque(maxlen=MAX_ENTRIES))
            for uuid in uuids
        }
        # Nothing is like what is not a number: it will be noted.
        self._noted = np.full((len(uuids), len(resources.CONTROLS)), np.nan)
        for row, uuid in enumerate(uuids):
            if entries := self._by_uuid[uuid]:
                self._noted[row] = entries[-1].weights


def _append_entry(
    entries: collections.deque[MinuteWeights], entry: MinuteWeights
) -> None:
    """Append an entry, or replace the entry of the same minute."""
    while entries and entries[0].wall_s <= entry.wall_s - MAX_AGE_S:
        entries.popleft()
    if entries and entries[-1].minute == entry.minute:
        entries[-1] = entry
    else:
        entries.append(entry)
