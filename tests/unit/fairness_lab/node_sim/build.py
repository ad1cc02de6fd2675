# SPDX-License-Identifier: Apache-2.0


"""Small clouds for tests."""

import dataclasses

import numpy as np

from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import values as scenario_module
from nova_fairness import plugins
from nova_fairness.model import resources

CPU = resources.RESOURCES.index('cpu_time')
READ = resources.RESOURCES.index('disk_read')
WRITTEN = resources.RESOURCES.index('disk_written')
MEMORY = resources.RESOURCES.index('memory')
WIDTH = len(resources.RESOURCES)


def wants(**amounts):
    """A demand; what is not named is zero."""
    return resources.RESOURCES.vector(**amounts)


def story(vms, *, nodes=('n0',), rounds=20, interval_s=10.0, **more):
    """A story of VMs: (name, user, node, CPUs wanted)."""
    return cloud_module.ScenarioDraft(
        name='test',
        description='a test',
        interval_s=interval_s,
        rounds=rounds,
        nodes=tuple(scenario_module.NodeSpec(name) for name in nodes),
        user_weight=more.pop('user_weight', {}),
        vms=tuple(scenario_module.Vm(name, user) for name, user, *_ in vms),
        changes=tuple(
            cloud_module.VmChange(
                0, name, node, wants(cpu_time=cpus, memory=1e6)
            )
            for name, _, node, cpus in vms
        ),
        **more,
    )


def cloud(vms, **more):
    """The same as arrays."""
    return story(vms, **more).cloud()


ONE_NODE = (
    ('heavy-1', 'user1', 'n0', np.inf),
    ('heavy-2', 'user1', 'n0', np.inf),
    ('light', 'user2', 'n0', np.inf),
)

TWO_NODES = (
    ('first', 'user2', 'n0', np.inf),
    ('other', 'user3', 'n1', 0.4),
    ('second', 'user2', 'n1', 0.4),
    ('single', 'user1', 'n0', np.inf),
)


def setup(metric='DominantShareMetric', policy='feedback', **more):
    """Agents; the policy ``none`` steers nothing."""
    plugin = None if policy == 'none' else plugins.load_policy(policy)
    made = model.Setup(metric, policy, plugins.load_metric(metric), plugin)
    return dataclasses.replace(made, **more)


def by_user(cloud, moment, column=CPU):
    """What each user received of one resource."""
    return np.bincount(
        cloud.user_of_vm, moment.received[:, column], len(cloud.users)
    )
