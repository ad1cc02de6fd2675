# SPDX-License-Identifier: Apache-2.0

"""Excess of accounts over their shares, and the evictions that it permits.

The use of an account is its ledger, its grants since, and the present amounts
of its preemptible servers. Its level is this use divided by its part of the
cloud by shares, in the class with the largest weighted use
(:func:`class_weights`). A level of 1 is exactly its share.
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
"""Largest grade of a level: 64 times the share or more."""


def class_weights(snapshot: cluster.ClusterSnapshot) -> Floats:
    """Return the weights of the resource classes, 0 to 1, (c,).

    They are the weights by which use is charged, divided by the largest
    weight. They are 0 if no class has a weight.
    """
    weights = snapshot.counts
    largest = weights.max(initial=0.0)
    counted: Floats = weights / largest if largest > 0 else weights
    return counted


class ShareLevels:
    """Levels of all accounts with servers or requests: their use divided by
    their share.

    :param snapshot: state of the cloud.
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
        ) * class_weights(snapshot)
        wants = np.zeros(len(self._tree), dtype=bool)
        wants[[self.place(*each) for each in owners]] = True
        self._part = self._tree.part(wants)
        self.level = self._largest_excess(self._use, self._part)

    def place(self, project: str, user: str) -> int:
        """Return the row of the account of a user."""
        return self._tree.place(request_model.account_of(project, user))

    def part(self, place: int) -> float:
        """Return the part of the cloud that the shares give to an account,
        0 to 1.
        """
        return float(self._part[place])

    def grades(self) -> Floats:
        """Return the excess of accounts over their shares as comparable
        numbers, (a,).

        As in Slurm's fair tree, levels count from the top of the tree down:
        all accounts in a branch with a larger excess have a larger grade. At
        the top, a grade one higher is a level twice as high. On each level
        below, a grade counts an eighth of one on the level above.
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
        """Return whether preemptible servers may be evicted for a preemptible
        request, (v,).

        Two branches are compared below the last common account: the branch of
        the preemptor with its request, and the branch of the victim's account
        without the victim. The level of the first, times the margin, must be
        lower than the level of the second. So two accounts never take each
        other's room in turns: the way back would need the opposite order of
        levels (Kueue's rule of the final share, KEP-1714).

        :param place: row of the account of the request.
        :param asked: (c,) weighted part of the cloud of the request; see
            :func:`class_weights`.
        :param owners: (v,) rows of the accounts of the victims.
        :param lost: (v, c) weighted part of the cloud that each victim's
            account would lose.
        :param margin: factor of the preemptor's level, >= 1.
        """
        mine, theirs = self._branches(place, owners)
        after = self._largest_excess(self._use[mine] + asked, self._part[mine])
        left = np.maximum(self._use[theirs] - lost, 0.0)
        lower = margin * after < self._largest_excess(left, self._part[theirs])
        may: Marks = lower & (owners != place)
        return may

    def _branches(self, place: int, owners: Places) -> tuple[Places, Places]:
        """Return the rows of the accounts just below the last common
        account.
        """
        path = self._path_from_top(place)
        found = {}
        for other in np.unique(owners).tolist():
            both = zip(path, self._path_from_top(other), strict=False)
            apart = [pair for pair in both if pair[0] != pair[1]]
            found[other] = apart[0] if apart else (place, int(other))
        pairs = np.array(
            [found[other] for other in owners.tolist()], dtype=np.intp
        ).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def _path_from_top(self, place: int) -> Sequence[int]:
        """Return the rows of the accounts from the top of the tree down to
        an account.
        """
        path = []
        while place != tree_module.ROOT:
            path.append(place)
            place = int(self._tree.parent[place])
        return path[::-1]

    @staticmethod
    def _largest_excess(use: Floats, part: Floats) -> Floats:
        """Return the largest use divided by the part; infinite without a
        part.
        """
        most = use.max(axis=-1, initial=0.0)
        none = np.where(most > 0, np.inf, 0.0)
        level: Floats = np.divide(most, part, out=none, where=part > 0)
        return level
