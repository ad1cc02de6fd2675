# SPDX-License-Identifier: Apache-2.0

"""Use and shares of accounts with waiting requests, as input of orders."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.shares import ledger
from nova_fairness.shares import tree as tree_module

Floats = npt.NDArray[np.float64]
Requests = Sequence[request_model.Request]


class WaitingAccounts:
    """Accounts of waiting requests, with their use.

    :param waiting: requests.
    :param snapshot: state of the cloud.
    :param charge: part of granted amounts that counts as used, 0 to 1.

    :ivar classes: (c,) names of the classes.
    :ivar tree: share tree with the project and the user of every request.
    :ivar history: (a, c) decayed use of each account and all below it, as a
        part of the cloud, with granted amounts, times the class weights.
    :ivar wants: (a,) whether each account has a waiting request.
    :ivar part: (a,) part of the cloud of each account, by the shares of the
        accounts with waiting requests.
    :ivar capacity: (c,) capacity of the cloud.
    """

    def __init__(
        self,
        waiting: Requests,
        snapshot: cluster.ClusterSnapshot,
        charge: float = 0.0,
    ) -> None:
        self.classes = snapshot.classes
        wanting = {(each.project, each.user) for each in waiting}
        bands = {each.band for each in waiting}
        wanting.update(
            (project, user)
            for project, user, band in snapshot.wanting
            if band in bands
        )
        self.tree = tree_module.completed_tree(snapshot.accounts, (), wanting)
        self.capacity: Floats = snapshot.inventory.capacity.sum(
            axis=0, dtype=np.float64
        )
        self.history = self.tree.table(snapshot.history, len(self.classes))
        if charge:
            granted = self.tree.table(snapshot.granted, len(self.classes))
            self.history += charge * granted
        self._counts = snapshot.counts
        self.history *= self._counts
        self.wants = np.zeros(len(self.tree), dtype=bool)
        names = [request_model.account_of(*each) for each in wanting]
        self.wants[[self.tree.place(name) for name in names]] = True
        self.part = self.tree.part(self.wants)
        self._told: dict[str, cluster.Factors] = {}

    def asked(self, request: request_model.Request) -> Floats:
        """Return the amounts of all servers of a request, (c,)."""
        each = cluster.amounts_vector(
            dict(request.demand.amounts), self.classes
        )
        return each.astype(np.float64) * len(request.servers)

    def asked_part(self, request: request_model.Request) -> Floats:
        """Return the amounts of a request as weighted parts of the cloud,
        (c,).
        """
        asked = ledger.parts_of_capacity(self.asked(request), self.capacity)
        return asked * self._counts

    def uses(self, request: request_model.Request) -> cluster.Factors:
        """Return the use of a request's project and of its user, divided by
        their shares.

        Accounts without a share are left out.
        """
        account = request.account
        if account not in self._told:
            named = {
                cluster.PROJECT_USE: self.tree.place(request.project),
                cluster.USER_USE: self.tree.place(account),
            }
            self._told[account] = {
                name: float(self.history[at].max(initial=0.0) / self.part[at])
                for name, at in named.items()
                if self.part[at] > 0
            }
        return self._told[account]
