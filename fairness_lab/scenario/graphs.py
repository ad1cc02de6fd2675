# SPDX-License-Identifier: Apache-2.0


"""Which users have VMs on which nodes."""

import numpy as np

from fairness_lab.scenario import chance
from fairness_lab.scenario import recipes
from fairness_lab.simulator import model

_WHERE = 40


def members(recipe: recipes.Recipe) -> list[model.Indices]:
    """Say who is where.

    :returns: for each node the indices of its users, ascending, not empty.
    """
    nodes = np.arange(recipe.nodes)
    if recipe.graph is recipes.Graph.CHAIN:
        return [np.array([node, node + 1]) for node in nodes]
    if recipe.graph is recipes.Graph.STAR:
        return [np.array([0, node + 1]) for node in nodes]
    degree = min(recipe.degree, recipe.nodes)
    users = np.arange(recipe.users)
    keys = chance.uniform(
        recipe.seed, _WHERE, users[:, np.newaxis], nodes[np.newaxis, :]
    )
    chosen = np.argpartition(keys, degree - 1, axis=1)[:, :degree]
    member = np.zeros(keys.shape, dtype=np.bool_)
    member[users[:, np.newaxis], chosen] = True
    # A node that nobody drew has one user: nodes are there for somebody.
    empty = np.flatnonzero(~member.any(axis=0))
    member[empty % recipe.users, empty] = True
    return [np.flatnonzero(member[:, node]) for node in nodes]


def nodes_of(members: list[model.Indices], users: int) -> list[list[int]]:
    """Give the nodes of each user.

    :param members: as :func:`members` gives it.
    :param users: how many there are.
    """
    result: list[list[int]] = [[] for _ in range(users)]
    for node, present in enumerate(members):
        for user in present:
            result[int(user)].append(node)
    return result
