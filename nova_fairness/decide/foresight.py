# SPDX-License-Identifier: Apache-2.0

"""Where the CPUs of all nodes should go, from what users want on every node.

It follows from what is wanted and what nodes have alone. It does not depend on
who has how much now, and so neither on when that was reported: nodes that
know the same see the same end.

Only the CPU is foreseen: of nothing else it is told what VMs want.
"""

import numpy as np

from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import grouping
from nova_fairness.shares import maxmin
from nova_fairness.shares import waiting

SHORT = 1.01
"""A node is short of what is wanted so many times what it has or more, ..."""

LACKING = 0.05
"""... or so many CPUs more than it has: however large it is, one vCPU that
lacks more than noise counts, ..."""

UNMET = 1.1
"""... or so many times what its users have, where they have nearly all that
there is: what the host itself needs is nobody's."""

SHARP = 0.05
"""Where what was worked out leaves users further apart than this (part of
their heaviness, by a natural logarithm of weights), feedback decides."""

STEPS = maxmin.MOST_STEPS
"""In which all but the largest clouds are worked out at once."""

CPU = resources.CONTROLS.index(resources.Control.CPU)
CPU_TIME = resources.RESOURCES.index('cpu_time')

_MORE = 1e-3
"""Part of the usage by which it is probed how much heavier more makes."""


def end(
    knowledge: foresight_model.Knowledge, ratio: float
) -> foresight_model.End:
    """Work out the weighted max-min allocation that weights can reach.

    With a metric that is no share it is the one in which users who compete
    are equally heavy.

    :param ratio: largest by smallest weight of a node, >= 1.
    """
    return searched(knowledge, ratio, None, STEPS)[0]


def searched(
    knowledge: foresight_model.Knowledge,
    ratio: float,
    rest: maxmin.Begin | None,
    steps: int,
) -> tuple[foresight_model.End, maxmin.Begin | None]:
    """Work out the same in several calls, of some steps each.

    :param rest: what the call before left to do, ``None`` for the first.
    :param steps: of Newton's method that are made at most, >= 1.
    :returns: what is known by now, and what is left to do.
    """
    supply, short = _supply(knowledge)
    heaviness = _Heaviness(knowledge)
    demand = knowledge.demand
    rows = maxmin.Rows(
        node=knowledge.node[demand.cell],
        owner=heaviness.owner[demand.cell],
        user=heaviness.user,
        wanted=demand.wanted,
        size=demand.vcpus,
        supply=np.where(short, supply, np.inf),
    )
    found = maxmin.divide(rows, heaviness, ratio, rest, steps)
    log = _centred(knowledge, rows, found)
    return foresight_model.End(log, short, found.sharpness), found.rest


def _supply(
    knowledge: foresight_model.Knowledge,
) -> tuple[usage_model.Scalars, resources.Mask]:
    """What users can have of each node, and whether they want more."""
    wanted = knowledge.wanted[:, CPU_TIME]
    whole = knowledge.supply[:, CPU_TIME]
    asked = np.bincount(knowledge.node, wanted, len(whole))
    given = knowledge.given()[:, CPU_TIME]
    busy = waiting.BUSY_WITH_STALL * whole
    unmet = (given >= busy) & (asked >= UNMET * given)
    enough = np.minimum(SHORT * whole, whole + LACKING * knowledge.one_cpu)
    short = ((asked >= enough) | unmet) & (asked > 0)
    return np.where(short, given.clip(busy, whole), whole), short


class _Heaviness:
    """How heavy users, or their cells, would be with other CPU time.

    :ivar owner: (n,) index, of each cell, of what is weighed: its user where
        the metric looks at users' sums alone, itself elsewhere.
    :ivar user: (k,) index of the user of each.
    """

    def __init__(self, knowledge: foresight_model.Knowledge) -> None:
        self._known = knowledge
        names, user = np.unique(knowledge.user, return_inverse=True)
        self._user = user.reshape(-1)
        every = np.arange(len(knowledge.node))
        if knowledge.weigh_users is None:
            self.owner, self.user = every, self._user
            self._weigh, self._used = knowledge.weigh, knowledge.wanted
        else:
            self.owner, self.user = self._user, np.arange(len(names))
            self._weigh = knowledge.weigh_users
            self._used = grouping.sum_by(
                self._user, knowledge.wanted, len(names)
            )

    def __call__(
        self, got: usage_model.Scalars
    ) -> tuple[usage_model.Scalars, usage_model.Scalars]:
        """Weigh what the rows of the demand would get."""
        cell = self._known.demand.cell
        owner = self.owner[cell]
        cpu = np.bincount(owner, got, len(self.user)).astype(np.float64)
        heavy = self._with(cpu)
        of_user = np.bincount(self.user, cpu)[self.user]
        more = self._with(cpu + _MORE * cpu)
        step = np.where(of_user > 0, _MORE * of_user, 1.0)
        return heavy, ((more - heavy) / step).clip(0.0)

    def _with(self, cpu: usage_model.Scalars) -> usage_model.Scalars:
        used = self._used.copy()
        used[:, CPU_TIME] = cpu
        return self._weigh(used)


def _centred(
    knowledge: foresight_model.Knowledge,
    rows: maxmin.Rows,
    found: maxmin.Division,
) -> usage_model.Scalars:
    """One weight for each cell, neutral in the middle of its node's."""
    nodes = len(knowledge.supply)
    first = np.searchsorted(
        knowledge.demand.cell, np.arange(len(knowledge.node))
    )
    high, low = np.full(nodes, -np.inf), np.full(nodes, np.inf)
    np.maximum.at(high, rows.node, found.log)
    np.minimum.at(low, rows.node, found.log)
    known = np.isfinite(high)
    middle = np.where(known, high, 0.0) + np.where(known, low, 0.0)
    return np.asarray(found.log[first] - middle[knowledge.node] / 2)
