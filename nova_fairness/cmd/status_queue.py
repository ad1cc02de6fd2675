# SPDX-License-Identifier: Apache-2.0

"""What ``nova-fairness-status`` looks at where requests wait."""

from collections.abc import Callable
import contextlib
import pathlib

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nova_fairness.cluster import clients
from nova_fairness.cluster import placement
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cmd import queueing
from nova_fairness.cmd import status_results as results
from nova_fairness.conf import cluster as cluster_conf
from nova_fairness.relay import link


def tables(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Look whether the database answers, with tables of this version."""
    engine = database.connect(conf.fairness_cluster.database)
    with database.failures():
        schema.check(engine)
        revision = schema.present(engine)
    return results.success(f'the tables have the revision {revision}')


def keys(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Read the keys, which must be for their owner only."""
    path = pathlib.Path(conf.fairness_cluster.key_file)
    sealing.read(path)
    return results.success(f'{path} can be read, by its owner only')


def relay(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Look whether a relay stands in front of conductor, on all brokers."""
    missing = []
    for url, names in queueing.brokers(conf):
        found = link.Link(url, names, declares=False)
        with contextlib.closing(found):
            queue = names.conductor if names.holds else names.unrouted
            if not found.taken(queue):
                missing.append(queue)
    if missing:
        return results.failure(
            f'{" and ".join(missing)}: the queue is missing, holds messages,'
            ' or no nova-fairness-relay receives from it'
        )
    return results.success('a relay receives from every broker')


def cloud(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Ask Placement as the service does."""
    rooms = clients.connect(conf.fairness_cluster.cloud).placement
    count = len(placement.Placement(rooms).trees())
    return results.success(f'Placement answers, with {count} hosts')


CHECKS: tuple[results.Named, ...] = (
    ('Database of requests', tables),
    ('Keys of messages', keys),
    ('Relay', relay),
    ('Cloud', cloud),
)
"""What the queue in front of Nova needs, by name."""


def checks(path: pathlib.Path) -> tuple[results.Named, ...]:
    """The checks with the configuration of a file."""
    return tuple((name, _with(check, path)) for name, check in CHECKS)


def _with(
    check: results.Check, path: pathlib.Path
) -> Callable[[cfg.ConfigOpts], upgradecheck.Result]:
    def bound(_: cfg.ConfigOpts) -> upgradecheck.Result:
        conf = cfg.ConfigOpts()
        cluster_conf.register_opts(conf)
        conf(['--config-file', str(path)], project=queueing.PROJECT)
        return check(conf)

    return bound
