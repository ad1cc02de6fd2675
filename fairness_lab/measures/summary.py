# SPDX-License-Identifier: Apache-2.0


"""Results of a run: what each user wanted and received, settled."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness.model import resources


class Summary:
    """An observer that averages over the second half of a run.

    :param cloud: that is simulated.
    """

    def __init__(self, cloud: cloud_module.Cloud) -> None:
        shape = (len(cloud.users), len(resources.RESOURCES))
        self._cloud = cloud
        self._from = cloud.rounds // 2
        self._rounds = 0
        self._demand = np.zeros(shape)
        self._received = np.zeros(shape)
        self._heaviness = np.zeros(len(cloud.users))
        self._used = np.zeros(len(resources.RESOURCES))

    def see(self, moment: model.RoundMoment) -> None:
        """Add a round, if it counts."""
        if moment.round < self._from:
            return
        count = len(self._cloud.users)
        self._rounds += 1
        for total, values in (
            (self._demand, moment.demand),
            (self._received, moment.received),
        ):
            for place in range(total.shape[1]):
                total[:, place] += np.bincount(
                    self._cloud.user_of_vm, values[:, place], count
                )
        self._heaviness += moment.user_heaviness
        self._used += moment.received.sum(axis=0)

    def result(self) -> Mapping[str, Any]:
        """Users, and how much of the nodes was used."""
        rounds = max(1, self._rounds)
        cloud = self._cloud
        return {
            'window': {
                'from_round': self._from,
                'to_round': cloud.rounds,
            },
            'used': _by_resource_name(
                self._used / rounds / np.maximum(cloud.capacity.sum(0), 1e-300)
            ),
            'users': {
                user: {
                    'weight': float(cloud.user_weight[row]),
                    'heaviness': _rounded(self._heaviness[row] / rounds),
                    'demand': _by_resource_name(self._demand[row] / rounds),
                    'received': _by_resource_name(
                        self._received[row] / rounds
                    ),
                }
                for row, user in enumerate(cloud.users)
            },
        }


def _by_resource_name(amounts: resources.Vector) -> dict[str, float]:
    names = resources.RESOURCES.names
    return dict(zip(names, map(_rounded, amounts), strict=True))


def _rounded(number: float) -> float:
    """Nine digits: more would be noise in a file for people."""
    return float(f'{number:.9g}')
