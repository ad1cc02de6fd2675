# SPDX-License-Identifier: Apache-2.0

"""What the VMs of this node have wanted for longer than a moment."""

import dataclasses

import numpy as np

from nova_fairness.measure import wants
from nova_fairness.model import node as node_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import waiting


@dataclasses.dataclass(frozen=True, eq=False)
class Judgement:
    """What was found of an interval.

    :ivar wanted: (n, r) amounts of the interval, at least the newest usage.
    :ivar waiting: who waits for a CPU; one node.
    """

    wanted: resources.Vector
    waiting: usage_model.Waiting


class Wishes:
    """Remembers what was wanted in the intervals before, and the noise.

    :param node: what the node has.
    """

    def __init__(self, node: node_model.NodeResources) -> None:
        self._node = node
        self._before: dict[str, resources.Vector] = {}
        self._rows: dict[str, int] = {}
        self._paused: frozenset[str] = frozenset()
        self._past = waiting.Past.unknown(0)

    def judge(self, usage: usage_model.Usage) -> Judgement:
        """Judge what VMs want, once for each interval."""
        now = wants.interval(usage, self._node)
        one_cpu = self._node.speed_factor * usage.interval_s
        found = self._waiting(usage, now)
        wanted = wants.wanted(now, found.lacking, usage.newest, one_cpu)
        began = now.ready & self._were_paused(usage)
        wanted = wants.of_begun(wanted, began, now.most * one_cpu)
        wanted = self._lasting(usage, wanted, now.ready)
        short = found.nodes[now.node][:, np.newaxis]
        return Judgement(np.where(short, wanted, usage.newest), found)

    def _were_paused(self, usage: usage_model.Usage) -> resources.Mask:
        """Tell which VMs were paused when the interval began, (n,)."""
        before, self._paused = (
            self._paused,
            frozenset(item.key for item in usage.incarnations if item.paused),
        )
        return np.array(
            [item.key in before for item in usage.incarnations], dtype=np.bool_
        )

    def _lasting(
        self,
        usage: usage_model.Usage,
        wanted: resources.Vector,
        ran: resources.Mask,
    ) -> resources.Vector:
        keys = [item.key for item in usage.incarnations]
        # Intervals differ in length; memory is wanted as it is used.
        rates = wanted / usage.interval_s
        unknown = np.full((2, wanted.shape[1]), np.nan)
        before = [self._before.get(key, unknown) for key in keys]
        # A VM that arrives by live migration waits, paused, for its memory:
        # nothing follows from that for what it wants when it runs.
        self._before = {
            key: np.stack([rate, past[0]])
            for key, rate, past, counts in zip(
                keys, rates, before, ran, strict=True
            )
            if counts
        }
        both = np.array(before).reshape(-1, 2, wanted.shape[1])
        largest = np.fmax(both[:, 0], both[:, 1]) * usage.interval_s
        return wants.lasting(wanted, usage.newest, largest)

    def _waiting(
        self, usage: usage_model.Usage, now: waiting.Interval
    ) -> usage_model.Waiting:
        keys = [item.key for item in usage.incarnations]
        rows = np.array([self._rows.get(key, -1) for key in keys], np.intp)
        found, self._past = waiting.judge(now, self._past.picked(rows))
        self._rows = {key: row for row, key in enumerate(keys)}
        return found
