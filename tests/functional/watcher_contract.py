# SPDX-License-Identifier: Apache-2.0

"""Runs the strategy with Watcher's own classes, where Watcher is installed.

``test_watcher.py`` starts it in a virtual environment of its own; it prints
what came of it as JSON.
"""

import json
import sys
import uuid

from oslo_config import cfg
from watcher.common import utils
from watcher.decision_engine.loading import default
from watcher.decision_engine.model import element
from watcher.decision_engine.model import model_root

PROJECT = str(uuid.UUID(int=7))


def node(model, name, **more):
    made = element.ComputeNode(
        uuid=str(uuid.UUID(int=len(name) * 1000 + ord(name[-1]))),
        hostname=name,
        disabled_reason=None,
        memory=65536,
        memory_mb_reserved=0,
        disk=1000,
        disk_gb_reserved=0,
        vcpus=8,
        vcpu_reserved=0,
        memory_ratio=1.0,
        vcpu_ratio=1.0,
        disk_ratio=1.0,
        **more,
    )
    model.add_node(made)
    return made


def server(model, on, number, vcpus, **more):
    made = element.Instance(
        uuid=str(uuid.UUID(int=number)),
        name=f's{number}',
        memory=1024 * vcpus,
        disk=10,
        vcpus=vcpus,
        metadata={},
        project_id=PROJECT,
        host=on.hostname,
        **more,
    )
    model.add_instance(made)
    model.map_instance(made, on)


def cloud(locked=False, disabled=False):
    """Two of three hosts are enough."""
    model = model_root.ModelRoot()
    status = 'disabled' if disabled else 'enabled'
    a, b, c = (
        node(model, 'a'),
        node(model, 'b', status=status),
        node(model, 'c'),
    )
    server(model, a, 1, 4)
    server(model, b, 2, 4)
    server(model, c, 3, 2, locked=locked)
    return model


def executed(model, **parameters):
    strategy = default.DefaultStrategyLoader().load('fair_consolidation')
    strategy._compute_model = model
    strategy.input_parameters = utils.Struct(parameters)
    solution = strategy.execute()
    for action in solution.actions:
        given = action['input_parameters']
        model.migrate_instance(
            model.get_instance_by_uuid(given['resource_id']),
            model.get_node_by_name(given['source_node']),
            model.get_node_by_name(given['destination_node']),
        )
    return {
        'goal': strategy.goal.name,
        'actions': solution.actions,
        'efficacy': [
            {key: each[key] for key in ('name', 'value')}
            for each in solution.global_efficacy
        ],
        'free': [
            min(model.get_node_free_resources(each).values())
            for each in model.get_all_compute_nodes().values()
        ],
    }


def main():
    cfg.CONF([], project='watcher', default_config_files=[])
    model = cloud()
    told = {
        'first': executed(model),
        'second': executed(model),
        'locked': executed(cloud(locked=True)),
        'disabled': executed(cloud(disabled=True)),
        'dear': executed(cloud(), dearest_mb=1000),
        'schema': default.DefaultStrategyLoader()
        .load('fair_consolidation')
        .get_schema(),
    }
    json.dump(told, sys.stdout)


if __name__ == '__main__':
    main()
