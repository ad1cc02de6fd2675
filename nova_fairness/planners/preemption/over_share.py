# SPDX-License-Identifier: Apache-2.0

"""How far accounts are over their shares, and evictions that follow.

The use of an account is its ledger, its grants since, and the present amounts
of its preemptible servers. Its level is that beside its part of the cloud by
shares, in the class that it uses most by the weights of the classes
(:func:`counts`): 1 is exactly its share.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.shares import tree as tree_module

Floats = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]
Places = tree_module.Places

_HIGHEST = 7
"""Of a grade: 64 times the share and more."""


def counts(snapshot: cluster.ClusterSnapshot) -> Floats:
    """Weights of parts of the cloud, by class, (c,), 0 to 1.

    They are the weights by which use is charged, divided by the largest: the
    class of largest weight counts as it is. 0 for all if none has a weight.
    """
    weights = snapshot.counts
    largest = weights.max(initial=0.0)
    counted: Floats = weights / largest if largest > 0 else weights
    return counted


class Levels:
    """Levels of all accounts that have or want something.

    :param snapshot: of the cloud.
    """

    def __init__(self, snapshot: cluster.ClusterSnapshot) -> None:
        owners = {
            *((each.project, each.user) for each in snapshot.running),
            *((each.project, each.user) for each in snapshot.requests),
        }
        self._tree = tree_module.completed_tree(snapshot.accounts, (), owners)
        width = len(snapshot.classes)
        self._use = sum(
            (
                self._tree.table(each, width)
                for each in (
                    snapshot.history,
                    snapshot.granted,
                    tree_module.preemptible_parts(snapshot),
                )
            ),
            np.zeros((len(self._tree), width)),
        ) * counts(snapshot)
        wants = np.zeros(len(self._tree), dtype=bool)
        wants[[self.place(*each) for each in owners]] = True
        self._part = self._tree.part(wants)
        self.level = self._over(self._use, self._part)

    def place(self, project: str, user: str) -> int:
        """The row of a user's account."""
        return self._tree.place(request_model.account_of(project, user))

    def part(self, place: int) -> float:
        """Part of the cloud of an account, 0 to 1."""
        return float(self._part[place])

    def grades(self) -> Floats:
        """How far accounts are over their shares, (a,), for a comparison.

        From the top of the tree down, as Slurm's fair tree goes: an account in
        a branch that is further over its share is so, too. A whole number is
        a level twice as high at the top; below it counts an eighth each.
        """
        with np.errstate(divide='ignore'):
            steps = np.floor(np.log2(self.level)) + 1
        grades: Floats = np.clip(steps, 0, _HIGHEST)
        scale = np.ones(len(grades))
        for at, up in enumerate(self._tree.parent.tolist()):
            if up != tree_module.ROOT:
                scale[at] = scale[up] / (_HIGHEST + 1)
                grades[at] = grades[up] + scale[at] * grades[at]
        return grades

    def may_leave_for(
        self,
        place: int,
        asked: Floats,
        owners: Places,
        lost: Floats,
        margin: float = 1.0,
    ) -> Marks:
        """Tell which preemptible servers may leave for a preemptible request.

        Where the paths of the two accounts part, the branch of the preemptor
        with its request must be lower than the branch of the victim's account
        without the victim, so many times as the margin says. So two never take
        each other's room in turns: for the way back the levels would have to
        be the other way round (Kueue's rule of the final share, KEP-1714).

        :param place: of the account that asks.
        :param asked: (c,) part of the cloud, as :func:`counts` says.
        :param owners: (v,) places of the victims' accounts.
        :param lost: (v, c) part that each would lose, as :func:`counts` says.
        :param margin: >= 1.
        """
        mine, theirs = self._branches(place, owners)
        after = self._over(self._use[mine] + asked, self._part[mine])
        left = np.maximum(self._use[theirs] - lost, 0.0)
        lower = margin * after < self._over(left, self._part[theirs])
        may: Marks = lower & (owners != place)
        return may

    def _branches(self, place: int, owners: Places) -> tuple[Places, Places]:
        """Places below the last account that both paths go through."""
        path = self._path(place)
        found = {}
        for other in np.unique(owners).tolist():
            both = zip(path, self._path(other), strict=False)
            apart = [pair for pair in both if pair[0] != pair[1]]
            found[other] = apart[0] if apart else (place, int(other))
        pairs = np.array(
            [found[other] for other in owners.tolist()], dtype=np.intp
        ).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def _path(self, place: int) -> Sequence[int]:
        """From the top down to an account."""
        path = []
        while place != tree_module.ROOT:
            path.append(place)
            place = int(self._tree.parent[place])
        return path[::-1]

    @staticmethod
    def _over(use: Floats, part: Floats) -> Floats:
        """Largest use in times of its part; infinite without a part."""
        most = use.max(axis=-1, initial=0.0)
        none = np.where(most > 0, np.inf, 0.0)
        level: Floats = np.divide(most, part, out=none, where=part > 0)
        return level
