# SPDX-License-Identifier: Apache-2.0

"""Short ways to write VMs, readings and reports down."""

import numpy as np

from nova_fairness.model import instance
from nova_fairness.model import node
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import sample

RESOURCES = resources.RESOURCES
NAN = float('nan')


def vm(uuid, pid=1, user='anna', project='lab', vcpus=1, memory=1024):
    return instance.Incarnation(
        instance.Instance(
            uuid=uuid,
            domain_name=f'instance-{uuid}',
            vcpus=vcpus,
            memory_bytes=memory,
            user_id=user,
            project_id=project,
        ),
        pid=pid,
        start_ticks=100 + pid,
    )


def reading(time_s, rows, stall=None, read_at=None):
    """rows: (incarnation, amounts by resource) in order."""
    count = len(rows)
    totals = [RESOURCES.vector(**amounts) for _vm, amounts in rows]
    return sample.Sample(
        time_s=time_s,
        incarnations=tuple(item for item, _amounts in rows),
        totals=np.array(totals).reshape(count, len(RESOURCES)),
        cpu_stall_s=np.full(count, NAN) if stall is None else np.array(stall),
        read_at_s=(
            np.full(count, time_s) if read_at is None else np.array(read_at)
        ),
    )


def node_report(
    host, users, interval_s=10.0, metric='GreedinessMetric', **capacity
):
    """users: UserTotals by id."""
    return report.NodeReport(
        host=host,
        boot_id='boot',
        sequence=1,
        interval_s=interval_s,
        metric=metric,
        resources=node.NodeResources(
            host=host,
            cpus=(0,),
            speed_factor=1.0,
            capacity=RESOURCES.vector(**capacity),
        ),
        users=users,
    )


def user_totals(heaviness=0.0, endowment=None, usage=None, instances=1):
    return report.UserTotals(
        instance_heaviness=heaviness,
        endowment=RESOURCES.vector(**(endowment or {})),
        usage=RESOURCES.vector(**(usage or {})),
        instances=instances,
    )


def view(*reports):
    return report.View(
        reports={item.host: item for item in reports},
        age_s={item.host: 0.0 for item in reports},
        left_out={},
    )
