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
    """Where an account stands.

    :ivar account: with its name, parent and share.
    :ivar part: of the cloud by shares if everybody wanted something, 0 to 1.
    :ivar used: decayed part of the cloud by class, >= 0, with all below.
    :ivar factor: ``2^(-U_E / S)``, see :func:`.factors.classic`: 0.5 for one
        who has used exactly their share, 1 for one who used nothing.
    """

    account: cluster.Account
    part: float
    used: Mapping[str, float]
    factor: float


def standings(
    snapshot: cluster.ClusterSnapshot, project: str | None = None
) -> list[AccountStanding]:
    """Accounts with those below each after it, siblings by name.

    :param snapshot: of the cloud.
    :param project: only this one, with all below it; ``None`` for all.
    """
    accounts = tree_module.completed(
        snapshot.accounts, snapshot.used.keys() - {''}, _users(snapshot)
    )
    by_name = {each.name: each for each in accounts}
    tree = tree_module.AccountTree(accounts)
    part = tree.part(np.ones(len(tree), dtype=bool))
    history = tree.table(snapshot.history, len(snapshot.classes))
    counted = (history * snapshot.counts).max(axis=1, initial=0.0)
    use = factors.normalised(tree, counted)
    factor = factors.classic(tree, use, part)
    return [
        AccountStanding(
            by_name[tree.names[at]],
            float(part[at]),
            dict(zip(snapshot.classes, history[at].tolist(), strict=True)),
            float(factor[at]),
        )
        for at in _depth_first(tree, project)
    ]


def _users(snapshot: cluster.ClusterSnapshot) -> set[tuple[str, str]]:
    """Users with their projects who wait for something or used it."""
    found = {(each.project, each.user) for each in snapshot.requests}
    for name in snapshot.history:
        project, slash, user = name.partition('/')
        # Those of a project that is gone fade unseen.
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
