# SPDX-License-Identifier: Apache-2.0

"""Borders small enough to be worked out by hand."""

import dataclasses

import numpy as np

from fairness_lab.border_sim import world as world_module
from fairness_lab.queue_sim import workload
from nova_fairness.planners.border import demand
from tests.unit.fairness_lab.queue_sim import small_clouds

ONE, WHOLE = small_clouds.ONE, small_clouds.WHOLE
TWO = workload.Size(2, 2048)
BROAD = workload.Size(4, 1, servers=2)
"""A job that needs two whole hosts."""


def world(
    jobs=(),
    requests=(),
    limits=None,
    cloud_hosts_at_start=0,
    rules=None,
    **more,
):
    """Hosts of 4 cores, at cycles of 10 s.

    :param jobs: tuples of when, group, size and run time.
    :param limits: by job; twice the run time if none are given.
    :param requests: the same of servers.
    """
    asked = small_clouds.cloud(sorted(jobs, key=lambda each: each[0]))
    stream = asked.stream
    if limits is None:
        limits = 2 * stream.lifetime_s
    known = {'boot_s', 'migrate_s', 'adjust_s', 'operator'} & more.keys()
    mine = {key: more.pop(key) for key in known}
    return world_module.World(
        small_clouds.cloud(sorted(requests, key=lambda each: each[0]), **more),
        world_module.Jobs(
            dataclasses.replace(
                asked.owners, shares=more.get('shares', (1.0, 1.0))
            ),
            stream,
            np.array(limits, dtype=float),
        ),
        cloud_hosts_at_start,
        rules or demand.BorderRules(patience_s=0.0, stay_s=0.0),
        **{'boot_s': 0.0, 'migrate_s': 10.0, 'adjust_s': None, **mine},
    )
