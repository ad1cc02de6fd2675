# SPDX-License-Identifier: Apache-2.0

"""Builders of the parts that move hosts between batch system and cloud."""

from collections.abc import Callable
import pathlib
import threading

from oslo_config import cfg

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.batch import system
from nova_fairness.cluster import service
from nova_fairness.cluster.assembly import evictions
from nova_fairness.cluster.border import cloud_hosts
from nova_fairness.cluster.border import controller
from nova_fairness.cluster.border import departure_notices
from nova_fairness.cluster.border import host_drain
from nova_fairness.cluster.border import hosts_file
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.openstack import placement
from nova_fairness.cluster.store import store as store_module
from nova_fairness.cluster.usage import pledges
from nova_fairness.model import eviction
from nova_fairness.planners.border import demand
from nova_fairness.runtime import watched_file

LOOKS_A_PLEDGE = 10
"""Number of border cycles between two adjustments of batch shares. Slurm
computes shares every 300 s by default, which is ten cycles by default.
"""


def build_border_controller(
    conf: cfg.ConfigOpts,
    store: store_module.Store,
    made: service.Service,
    stopped: threading.Event,
) -> controller.BorderController | None:
    """Build the controller that moves hosts; ``None`` without batch system.

    :raises ConfigurationError: if the batch system or the file of hosts is
        invalid.
    """
    options, queue = conf.fairness_partition, conf.fairness_cluster
    if not options.batch:
        return None
    batch, file = load_batch_system(conf), _open_hosts_file(conf)
    pledging = pledges.PledgeKeeper(
        store, batch, queue.half_life, LOOKS_A_PLEDGE * queue.hosts_interval
    )
    made.charging.counted = pledging.counted
    # The border works beside the queue, so it has its own caches of Nova.
    cloud = clients.connect(queue.cloud, queue.region_name)
    nova = nova_module.Nova(cloud.nova)
    room = placement.Placement(cloud.placement)
    patience = evictions.eviction_timeouts(queue)
    clock = _clock_of_service(made)
    leaving = evictions.build_evictor(
        patience, store, nova, room, cloud, clock
    )
    actions = host_drain.Actions(
        _parse_actions(queue.room_actions), _parse_actions(options.end_actions)
    )
    return controller.BorderController(
        store,
        made,
        file,
        batch,
        cloud_hosts.CloudSide(
            nova,
            room,
            store.leaves,
            patience,
            options.live_migrate,
            options.settle,
        ),
        host_drain.HostDrain(store.leaves, nova, leaving, clock, actions),
        departure_notices.DepartureNotices(
            cloud.nova, _features_directory(options)
        ),
        _border_rules(options),
        clock,
        stopped,
        queue.hosts_interval,
        pledging,
    )


def _clock_of_service(made: service.Service) -> Callable[[], float]:
    """Return the clock of the service, which ignores wrong jumps of the
    host's clock.
    """
    return lambda: made.clocks.now()


def load_batch_system(conf: cfg.ConfigOpts) -> system.BatchSystem:
    """Load the plugin of the configured batch system.

    :raises ConfigurationError: if the plugin or its parameters are invalid.
    """
    options = conf.fairness_partition
    try:
        return plugins.load_batch(options.batch, options.batch_parameters)
    except exception.PluginError as error:
        raise exception.ConfigurationError(
            f'[fairness_partition] batch, batch_parameters: {error}'
        ) from error


def _open_hosts_file(
    conf: cfg.ConfigOpts,
) -> watched_file.WatchedFile[hosts_file.BorderFile]:
    path = pathlib.Path(conf.fairness_partition.hosts_file)
    try:
        return hosts_file.open_watched_file(path)
    except exception.BadPartition as error:
        raise exception.ConfigurationError(
            f'[fairness_partition] hosts_file: {error}'
        ) from error


def _features_directory(
    options: cfg.ConfigOpts.GroupAttr,
) -> pathlib.Path | None:
    if not options.features_path:
        return None
    path = pathlib.Path(options.features_path)
    if not path.is_dir():
        raise exception.ConfigurationError(
            f'[fairness_partition] features_path: {path} is not a directory'
        )
    return path


def _parse_actions(names: list[str]) -> tuple[eviction.EvictionAction, ...]:
    return tuple(map(eviction.EvictionAction, names))


def _border_rules(options: cfg.ConfigOpts.GroupAttr) -> demand.BorderRules:
    contended = options.contended
    return demand.BorderRules(
        patience_s=options.patience,
        spare_cores=options.spare_cores,
        stay_s=options.stay,
        most_moving=options.most_moving,
        most_per_day=options.most_per_day,
        ttl_s=options.time_to_live,
        end_vms=bool(options.end_actions),
        contended=contended if contended >= 0 else None,
    )
