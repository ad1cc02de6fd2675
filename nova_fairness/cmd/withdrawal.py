# SPDX-License-Identifier: Apache-2.0

"""Command that removes all changes of the cluster service in other systems."""

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

DESCRIPTION = (
    'enable the hosts that the service disabled, and remove its metadata of'
    ' servers'
)
"""Description of the command in the help."""

_NOTHING_LEFT = 'all changes in Nova and in the batch system are removed'
_WITHOUT_BATCH = (
    'all changes in Nova are removed; the batch system was not checked:'
    ' [fairness_partition] batch is empty; if the service drained nodes, set'
    ' the former value and run the command again'
)


def withdraw(conf: cfg.ConfigOpts) -> None:
    """Enable hosts and remove metadata, and print each change.

    :raises ConfigurationError: if the configured batch system does not exist.
    :raises ClusterError: if a change could not be removed, or a service is
        still the leader.
    """
    options = conf.fairness_cluster
    store = storage.open_store(conf)
    leader = store.leader()
    now = store.database_time() or time.time()
    if leader.holder and now - leader.since < options.lease:
        raise exception.ClusterError(
            f'service {leader.holder}: still the leader: it would disable'
            ' hosts again; stop it first'
        )
    has_batch = bool(conf.fairness_partition.batch)
    batch = border.load_batch_system(conf) if has_batch else None
    cloud = clients.connect(options.cloud, options.region_name)
    removing = withdrawal.Withdrawal(cloud.nova, batch, _print_change)
    left = removing.remove()
    for sentence in left:
        sys.stderr.write(plain.lines(f'{sentence}\n'))
    if left:
        raise exception.ClusterError(
            wording.counted(len(left), 'change was', 'changes were')
            + ' not removed; run the command again'
        )
    _print_change(_NOTHING_LEFT if has_batch else _WITHOUT_BATCH)


def _print_change(sentence: str) -> None:
    sys.stdout.write(plain.lines(f'{sentence}\n'))
