# SPDX-License-Identifier: Apache-2.0

"""The command that removes the traces of the cluster service elsewhere."""

import sys
import time

from oslo_config import cfg

from nova_fairness import exception
from nova_fairness.cluster import withdrawal
from nova_fairness.cluster.assembly import border
from nova_fairness.cluster.assembly import storage
from nova_fairness.cluster.openstack import clients
from nova_fairness.model import plain
from nova_fairness.model import wording

DESCRIPTION = 'open the hosts that it closed, remove its metadata of servers'
"""Description of the command in the help."""

_NOTHING_LEFT = 'nothing is left in Nova and in the batch system'
_WITHOUT_BATCH = (
    'nothing is left in Nova; no drained node was looked for:'
    ' [fairness_partition] batch is empty; if the service drained nodes, set'
    ' it as it was and run the command again'
)


def withdraw(conf: cfg.ConfigOpts) -> None:
    """Open hosts and remove metadata, and print each change.

    :raises ConfigurationError: if there is no such batch system.
    :raises ClusterError: if something could not be removed, or a service still
        leads.
    """
    options = conf.fairness_cluster
    store = storage.open_store(conf)
    leader = store.leader()
    now = store.database_time() or time.time()
    if leader.holder and now - leader.since < options.lease:
        raise exception.ClusterError(
            f'service {leader.holder}: leads, and would close hosts again;'
            ' stop it first'
        )
    has_batch = bool(conf.fairness_partition.batch)
    batch = border.batch_system(conf) if has_batch else None
    cloud = clients.connect(options.cloud, options.region_name)
    removing = withdrawal.Withdrawal(cloud.nova, batch, _tell)
    left = removing.remove()
    for sentence in left:
        sys.stderr.write(plain.lines(f'{sentence}\n'))
    if left:
        raise exception.ClusterError(
            wording.counted(len(left), 'thing was', 'things were')
            + ' not removed; run the command again'
        )
    _tell(_NOTHING_LEFT if has_batch else _WITHOUT_BATCH)


def _tell(sentence: str) -> None:
    sys.stdout.write(plain.lines(f'{sentence}\n'))
