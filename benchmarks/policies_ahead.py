# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Where the default policy would end, from what users want: experiments.

The model's rows are cells: what one user has on one node. It begins with
neutral weights, not with those in force, so that its end follows from what is
wanted alone: it does not depend on who has how much now, and so neither on
when that was reported.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import itertools

import numpy as np
import numpy.typing as npt

from nova_fairness.decide import array_policy
from nova_fairness.decide import bounds
from nova_fairness.decide import levels
from nova_fairness.decide.policies import feedback
from nova_fairness.model import resources
from nova_fairness.sim import ideal

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]

AHEAD = 80
"""Rounds that are run on the model."""

SHORT = 1.01
"""A node is short of what is wanted so many times or more."""

WAITS = 0.995
"""Who gets less of what he wants than this waits. The policy's own limit of
90 % is for what kernels tell of waiting; the model knows what is wanted."""

TIMED = np.flatnonzero(resources.RESOURCES.time_shared)

COLUMN = {
    place: resources.CONTROLS.index(item.control)
    for place, item in enumerate(resources.RESOURCES)
    if item.control is not None
}
"""Of the control that steers each resource."""


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """What users have on nodes.

    :ivar node: (n,) index of each cell's node.
    :ivar user: (n,) index of its user.
    :ivar wanted: (n, r) per second; of memory what is held.
    :ivar used: (n, r) likewise.
    :ivar size: (n, c) > 0: what the kernel weighs it by at weight 1.
    """

    node: Places
    user: Places
    wanted: Floats
    used: Floats
    size: Floats

    def only(self, chosen: Bools) -> 'Cells':
        """Give some of them."""
        return Cells(*(values[chosen] for values in self.columns()))

    def columns(self) -> list[npt.NDArray]:
        return [
            getattr(self, field.name) for field in dataclasses.fields(self)
        ]

    @classmethod
    def joined(cls, parts: Iterable['Cells']) -> 'Cells':
        columns = zip(*(part.columns() for part in parts), strict=True)
        return cls(*map(np.concatenate, columns))


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """What one node knows.

    :ivar cells: of the nodes that it knows.
    :ivar capacity: (m, r) per second.
    :ivar quota: (u, r) per second.
    :ivar beyond: (u, r) used on nodes of which there are no cells.
    """

    cells: Cells
    capacity: Floats
    quota: Floats
    beyond: Floats


@dataclasses.dataclass(frozen=True, eq=False)
class End:
    """Where the policy ends.

    :ivar weights: (n, c) of the cells.
    :ivar got: (n, r) per second.
    :ivar short: (m, r) whether more is wanted of a node than it has.
    """

    weights: Floats
    got: Floats
    short: Bools


def stacked(models: Sequence[Model]) -> Model:
    """Put models side by side; they know nothing of each other."""
    nodes = np.cumsum([0, *(len(item.capacity) for item in models)])
    users = np.cumsum([0, *(len(item.quota) for item in models)])
    return Model(
        cells=Cells.joined(
            dataclasses.replace(
                item.cells,
                node=item.cells.node + nodes[place],
                user=item.cells.user + users[place],
            )
            for place, item in enumerate(models)
        ),
        capacity=np.concatenate([item.capacity for item in models]),
        quota=np.concatenate([item.quota for item in models]),
        beyond=np.concatenate([item.beyond for item in models]),
    )


def ends(
    models: Sequence[Model], ratio: float, share: str, ahead: int = AHEAD
) -> list[End]:
    """Say of each model where the default policy ends, in one run."""
    found = end(stacked(models), ratio, share, ahead)
    cells = np.cumsum([0, *(len(item.cells.node) for item in models)])
    nodes = np.cumsum([0, *(len(item.capacity) for item in models)])
    return [
        End(
            found.weights[begin:until],
            found.got[begin:until],
            found.short[first:last],
        )
        for (begin, until), (first, last) in zip(
            itertools.pairwise(cells), itertools.pairwise(nodes), strict=True
        )
    ]


def end(model: Model, ratio: float, share: str, ahead: int = AHEAD) -> End:
    """Run the default policy on the model.

    :param ratio: largest to smallest weight of a node.
    :param share: by which users are compared: dominant, or the mean of all.
    """
    cells, policy = model.cells, feedback.FeedbackPolicy()
    count, nodes = len(cells.node), len(model.capacity)
    short = _short(model)
    contended = np.zeros((nodes, len(resources.CONTROLS)), dtype=np.bool_)
    for place in TIMED:
        contended[:, COLUMN[place]] |= short[:, place]
    weights = np.ones((count, len(resources.CONTROLS)))
    got = _divided(model, short, weights)
    if not short.any():
        return End(weights, got, short)
    memory = policy.nothing(count, nodes)
    smoothed = _heaviness(model, got, share)
    for _ in range(ahead):
        crowd = array_policy.Crowd(
            node=cells.node,
            nodes=nodes,
            heaviness=smoothed[cells.user],
            user=cells.user,
            vcpus=cells.size[:, resources.CONTROLS.index(_CPU)],
            contended=contended,
            wanting=_waiting(cells, got, short),
        )
        wished, memory = policy.decide(crowd, weights, memory, 1.0)
        weights = bounds.bounded(wished, weights, ratio, _STEP)
        got = _divided(model, short, weights)
        # As agents do: the policy's numbers are made for it.
        smoothed = (smoothed + _heaviness(model, got, share)) / 2
    return End(weights, got, short)


_CPU = resources.Control.CPU
_STEP = 4.0


def _short(model: Model) -> Bools:
    """Tell of which nodes more is wanted than they have, (m, r)."""
    cells, nodes = model.cells, len(model.capacity)
    short = np.zeros(model.capacity.shape, dtype=np.bool_)
    for place in TIMED:
        wanted = np.bincount(cells.node, cells.wanted[:, place], nodes)
        short[:, place] = wanted > SHORT * model.capacity[:, place]
    return short


def _divided(model: Model, short: Bools, weights: Floats) -> Floats:
    """Say what each cell gets, (n, r): each resource for itself."""
    cells, got = model.cells, model.cells.wanted.copy()
    for place in np.flatnonzero(short.any(axis=0)):
        column = COLUMN[place]
        got[:, place], _ = levels.fill(
            model.capacity[:, place],
            cells.node,
            cells.wanted[:, place],
            cells.size[:, column] * weights[:, column],
        )
    return got


def _heaviness(model: Model, got: Floats, share: str) -> Floats:
    """Weigh the users by what they get, (u,)."""
    users = len(model.quota)
    parts = np.zeros_like(model.quota)
    for place in range(parts.shape[1]):
        total = np.bincount(model.cells.user, got[:, place], users)
        total += model.beyond[:, place]
        quota = model.quota[:, place]
        parts[:, place] = np.where(quota > 0, total, 0.0) / np.where(
            quota > 0, quota, 1.0
        )
    return ideal.share_of(parts, share)


def _waiting(cells: Cells, got: Floats, short: Bools) -> Bools:
    waiting = np.zeros(
        (len(cells.node), len(resources.CONTROLS)), dtype=np.bool_
    )
    for place in np.flatnonzero(short.any(axis=0)):
        lacking = got[:, place] < WAITS * cells.wanted[:, place]
        waiting[:, COLUMN[place]] |= lacking & short[cells.node, place]
    return waiting


def near(cells: Cells, place: int, hops: int) -> Bools:
    """Choose the cells within some hops of a node.

    One hop is from a node to all others on which a user of it has VMs.

    :param place: index of the node.
    """
    nodes = np.zeros(int(cells.node.max(initial=place)) + 1, dtype=np.bool_)
    users = np.zeros(int(cells.user.max(initial=0)) + 1, dtype=np.bool_)
    nodes[place] = True
    for _ in range(hops):
        users[cells.user[nodes[cells.node]]] = True
        nodes[cells.node[users[cells.user]]] = True
    return nodes[cells.node]
