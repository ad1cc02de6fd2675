# SPDX-License-Identifier: Apache-2.0

"""Connections between the nodes of a run: the hub, the links, Redis."""

import pathlib

from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed.nodes import hub
from fairness_lab.testbed.nodes import node as node_module
from fairness_lab.testbed.nodes import redis_server
from nova_fairness import exception


def needed(scenario: scenario_module.Scenario) -> bool:
    """Whether a scenario has anything between its nodes."""
    return scenario.redis or len(scenario.nodes) > 1


class Wiring:
    """The network of one run; open it, link nodes, close it.

    :param run: directory of the run.
    :param redis: whether a Redis is on it.
    """

    def __init__(self, run: pathlib.Path, *, redis: bool) -> None:
        self._hub = hub.Hub(run)
        self._redis = redis_server.RedisServer(run) if redis else None

    def open(self) -> None:
        """Bring it up, without nodes.

        :raises LabError: if something does not come up.
        """
        self._hub.start()
        if self._redis is not None:
            self._redis.open(self._hub)

    def close(self) -> None:
        """Remove it.

        :raises LabError: if something does not go away.
        """
        if self._redis is not None:
            self._redis.close()
        self._hub.stop()

    def link(self, node: node_module.TestNode) -> None:
        """Link a node that runs.

        :raises LabError: if it cannot be linked.
        """
        self._hub.link(node.name, node.pid, hub.node_number(node.index))

    def cut(self, node: str) -> None:
        """Take the link of a node down."""
        self._hub.cut(node)

    def heal(self, node: str) -> None:
        """Take it up again."""
        self._hub.heal(node)

    def redis(self) -> redis_server.RedisServer:
        """Redis of the run.

        :raises LabError: if the scenario has none.
        """
        if self._redis is None:
            raise exception.LabError('this run has no Redis')
        return self._redis
