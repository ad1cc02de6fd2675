# SPDX-License-Identifier: Apache-2.0

"""The share tree as its owners read it (Slurm's ``sshare``)."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.shares import factors
from nova_fairness.shares import tree as tree_module


@dataclasses.dataclass(frozen=True, slots=True)
class AccountStanding:
    """Share and use of an account.

    :ivar account: the account, with its name, parent and share.
    :ivar part: part of the cloud by shares if all accounts had requests, 0 to
        1.
    :ivar used: decayed use of the account and all below it, as parts of the
        cloud by class, >= 0.
    :ivar factor: ``2^(-U_E / S)``, see :func:`.factors.classic_factor`: 0.5 if
        the use is exactly the share, 1 without use.
    """

    account: cluster.Account
    part: float
    used: Mapping[str, float]
    factor: float


def standings(
    snapshot: cluster.ClusterSnapshot, project: str | None = None
) -> list[AccountStanding]:
    """Standings of accounts, depth first, siblings by name.

    :param snapshot: of the cloud.
    :param project: project to return, with all accounts below it; ``None``
        for all accounts.
    """
    accounts = tree_module.with_missing_accounts(
        snapshot.accounts, snapshot.used.keys() - {''}, _active_users(snapshot)
    )
    by_name = {each.name: each for each in accounts}
    tree = tree_module.AccountTree(accounts)
    part = tree.part(np.ones(len(tree), dtype=bool))
    history = tree.table(snapshot.history, len(snapshot.classes))
    counted = (history * snapshot.counts).max(axis=1, initial=0.0)
    use = factors.normalised_use(tree, counted)
    factor = factors.classic_factor(tree, use, part)
    return [
        AccountStanding(
            by_name[tree.names[at]],
            float(part[at]),
            dict(zip(snapshot.classes, history[at].tolist(), strict=True)),
            float(factor[at]),
        )
        for at in _depth_first(tree, project)
    ]


def _active_users(snapshot: cluster.ClusterSnapshot) -> set[tuple[str, str]]:
    """Pairs of project and user with requests or past use."""
    found = {(each.project, each.user) for each in snapshot.requests}
    for name in snapshot.history:
        project, slash, user = name.partition('/')
        # Users of a project that is gone are not shown.
        if slash and project in snapshot.used:
            found.add((project, user))
    return {(project, user) for project, user in found if project}


def _depth_first(
    tree: tree_module.AccountTree, project: str | None
) -> Iterator[int]:
    children = tree.children()
    stack = list(reversed(children[tree_module.ROOT]))
    if project is not None:
        stack = [tree.place(project)] if project in tree.names else []
    while stack:
        at = stack.pop()
        yield at
        stack += reversed(children[at])
