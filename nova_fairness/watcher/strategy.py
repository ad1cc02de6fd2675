# SPDX-License-Identifier: Apache-2.0

"""The consolidation planner as a strategy of OpenStack Watcher.

Only Watcher loads this module, and only this module imports Watcher. The plan
does not use facts that Watcher's model lacks, such as traits and aggregates:
Nova's scheduler checks each migration to a named host.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import numpy as np
from watcher.decision_engine.model import element
from watcher.decision_engine.strategy.strategies import base

from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import planner
from nova_fairness.planners.consolidation import rules as rules_module
from nova_fairness.planners.consolidation import waves

_CLASSES = ('DISK_GB', 'MEMORY_MB', 'VCPU')
_ALONE = waves.MoveConcurrency(1, 1)


class FairConsolidation(base.ServerConsolidationBaseStrategy):  # type: ignore[misc]
    """Empties hosts by live migration, with as few moves as are needed.

    *Description*

    The least used hosts are emptied; smaller servers make room for larger
    ones over up to three levels. The state after a plan leads to no further
    plan.

    *Requirements*

    The compute model; no datasource is needed.

    *Limitations*

    Actions are in an order in which each finds room. So the planner
    ``weight`` must run one migration at a time (``[watcher_planners.weight]
    parallelization = migrate:1``).
    """

    @classmethod
    def get_name(cls) -> str:
        """Return the name of the strategy in audits."""
        return 'fair_consolidation'

    @classmethod
    def get_display_name(cls) -> str:
        """Return the name of the strategy for people."""
        return 'Consolidation with few moves'

    @classmethod
    def get_translatable_display_name(cls) -> str:
        """Return the name for people; it is not translated."""
        return cls.get_display_name()

    @classmethod
    def get_config_opts(cls) -> list[Any]:
        """Return no options: no datasource is needed."""
        return []

    @classmethod
    def get_schema(cls) -> Mapping[str, Any]:
        """Return the schema of an audit's parameters."""
        return {
            'properties': {
                'rule': {
                    'description': 'Rule that chooses a host among those with'
                    ' room',
                    'type': 'string',
                    'enum': sorted(weighers.RULES),
                    'default': 'fullest',
                },
                'dearest_mb': {
                    'description': 'Most memory that is sent to empty one'
                    ' host, MB; 0 for any',
                    'type': 'integer',
                    'minimum': 0,
                    'default': 0,
                },
                'partial': {
                    'description': 'Whether servers of hosts that cannot be'
                    ' emptied move to fuller hosts',
                    'type': 'boolean',
                    'default': False,
                },
            }
        }

    def pre_execute(self) -> None:
        """Check that the compute model is available."""
        self._pre_execute()

    def do_execute(self, audit: Any = None) -> None:
        """Compute the migration plan, and add its moves to the solution."""
        self._nodes = self.compute_model.get_all_compute_nodes()
        given = self.input_parameters
        rules = rules_module.ConsolidationRules(
            rule=weighers.RULES[given.get('rule') or 'fullest'],
            dearest_mb=given.get('dearest_mb') or None,
            partial=bool(given.get('partial')),
            concurrency=_ALONE,
        )
        self._plan = planner.consolidate(self._snapshot(), rules)
        by_name = {each.hostname: each for each in self._nodes.values()}
        for move in self._plan.moves:
            self.add_action_migrate(
                self.compute_model.get_instance_by_uuid(move.server),
                'live',
                by_name[move.source],
                by_name[move.target],
            )

    def post_execute(self) -> None:
        """Report the result of the plan to Watcher."""
        before, after = self._plan.busy
        self.solution.set_efficacy_indicators(
            compute_nodes_count=len(self._nodes),
            released_compute_nodes_count=before - after,
            instance_migrations_count=len(self._plan.moves),
        )
        self.solution.model = self.compute_model

    def _snapshot(self) -> cluster.ClusterSnapshot:
        """Return the snapshot of the cloud for the planner."""
        nodes = sorted(self._nodes.values(), key=lambda each: each.uuid)
        capacity = np.array([_capacity(each) for each in nodes], np.int64)
        capacity = capacity.reshape(len(nodes), len(_CLASSES))
        used = np.zeros_like(capacity)
        running = []
        for row, node in enumerate(nodes):
            for server in self._servers_on(node):
                amounts = _amounts_of_server(server)
                used[row] += cluster.amounts_vector(dict(amounts), _CLASSES)
                running.append(_running_server(node, server, amounts))
        return cluster.ClusterSnapshot(
            _CLASSES,
            tuple(
                cluster.Provider(
                    node.uuid, node.hostname, takes=_accepts_servers(node)
                )
                for node in nodes
            ),
            cluster.Inventory(capacity, used, capacity, used * 0 + 1),
            running=tuple(running),
        )

    def _servers_on(self, node: Any) -> Iterable[Any]:
        found = self.compute_model.get_node_instances(node)
        return sorted(found, key=lambda each: each.uuid)


def _capacity(node: Any) -> tuple[int, int, int]:
    return (
        int(node.disk_gb_capacity),
        int(node.memory_mb_capacity),
        int(node.vcpu_capacity),
    )


def _amounts_of_server(server: Any) -> tuple[tuple[str, int], ...]:
    named = zip(
        _CLASSES, (server.disk, server.memory, server.vcpus), strict=True
    )
    return tuple((name, int(each)) for name, each in named if each)


def _running_server(
    node: Any, server: Any, amounts: tuple[tuple[str, int], ...]
) -> cluster.Running:
    """Return a server; without a demand if it must not be moved."""
    moves = (
        server.state == element.InstanceState.ACTIVE.value
        and not server.locked
        and not server.watcher_exclude
    )
    return cluster.Running(
        node.hostname,
        server.project_id,
        amounts,
        0.0,
        uuid=server.uuid,
        demand=request.Demand(amounts) if moves else None,
    )


def _accepts_servers(node: Any) -> bool:
    return bool(
        node.status == element.ServiceState.ENABLED.value
        and node.state == element.ServiceState.ONLINE.value
    )
