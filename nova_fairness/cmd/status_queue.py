# SPDX-License-Identifier: Apache-2.0

"""Checks of ``nova-fairness-status`` for the queue."""

from collections.abc import Callable
import contextlib
import functools
import pathlib
import time
from typing import NamedTuple

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nova_fairness.cluster import clocks
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import placement
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cmd import queue_commands
from nova_fairness.cmd import status_results as results
from nova_fairness.conf import cluster as cluster_conf
from nova_fairness.model import wording
from nova_fairness.relay import link
from nova_fairness.runtime import signatures


def check_tables(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check that the database answers, with tables of this version."""
    engine = database.open_engine(conf.fairness_cluster.database)
    with database.translate_errors():
        schema.check_revision(engine)
        revision = schema.current_revision(engine)
    return results.success(f'the tables have revision {revision}')


def check_clock(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check that the clocks of this host and of the database agree."""
    engine = database.open_engine(conf.fairness_cluster.database)
    seen = clocks.Clocks(
        time.time, clocks.uptime_s, database.Tables(engine).server_time
    )
    if fault := seen.look():
        return results.failure(
            f'{fault}: the service suspends irreversible actions; set the'
            ' clock'
        )
    return results.success('the clocks of host and database agree')


def check_keys(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check the file of keys, which only its owner may read."""
    path = pathlib.Path(conf.fairness_cluster.key_file)
    sealing.read_key_file(path)
    return results.success(f'{path} is readable by its owner only')


def check_signing(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check that agents trust messages of the service."""
    if not conf.transport_url:
        return results.success('no agents: transport_url is not set')
    signs = signatures.signer(conf, conf.fairness_exchange.domain)
    if signs is None:
        return results.success('agents use no keys')
    return results.success('the key of the service can sign')


def check_relay(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check that a relay receives the messages to conductor, on all
    brokers.
    """
    missing = []
    for url, names in queue_commands.brokers(conf):
        found = link.Link(url, names, declares=False)
        with contextlib.closing(found):
            queue = names.conductor if names.holds else names.unrouted
            if not found.taken(queue):
                missing.append(queue)
    if missing:
        return results.failure(
            f'queue {" and ".join(missing)}: it is missing, contains messages,'
            ' or has no consumer; start nova-fairness-relay'
        )
    return results.success('a relay receives from every broker')


def check_cloud(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check that Placement answers."""
    options = conf.fairness_cluster
    rooms = clients.connect(options.cloud, options.region_name).placement
    count = len(placement.Placement(rooms).provider_trees())
    return results.success(
        f'Placement answers, with {wording.counted(count, "host")}'
    )


class _Exchange(NamedTuple):
    """The exchange to which services of Nova send."""

    exchange: str
    durable: bool


_RABBIT = 'oslo_messaging_rabbit'
_DURABLE = ('amqp_durable_queues', 'rabbit_quorum_queue')
"""Options of oslo.messaging that make declarations durable."""


def check_exchanges(
    nova: str, nova_api: str, conf: cfg.ConfigOpts
) -> upgradecheck.Result:
    """Check that nova-api, and no other service, sends to the relay.

    :param nova: configuration file of all services of Nova.
    :param nova_api: further file that only nova-api reads.
    """
    if not pathlib.Path(nova).exists():
        return results.success(f'no Nova on this machine: no file {nova}')
    ours = conf.fairness_cluster
    others, api = (
        _configured_exchange(nova),
        _configured_exchange(nova, nova_api),
    )
    target = _Exchange(ours.nova_exchange, ours.nova_exchange_durable)
    if others != target:
        return results.failure(
            f'{nova}: services of Nova use {_exchange_text(others)}, and'
            f' [fairness_cluster] expects {_exchange_text(target)}'
        )
    if api.exchange == target.exchange:
        return results.warning(
            f'nova-api: it sends to {target.exchange} and bypasses the relay,'
            f' so no request waits; set [DEFAULT] control_exchange ='
            f' {ours.front_exchange} in {nova_api}'
        )
    front = _Exchange(ours.front_exchange, True)
    if api != front:
        return results.failure(
            f'{nova_api}: nova-api uses {_exchange_text(api)}, but the relay'
            f' reads from {_exchange_text(front)}'
        )
    return results.success(f'only nova-api sends to {front.exchange}')


def _configured_exchange(*paths: str) -> _Exchange:
    conf = cfg.ConfigOpts()
    conf.register_opt(cfg.StrOpt('control_exchange', default='nova'))
    conf.register_opts([cfg.BoolOpt(name) for name in _DURABLE], _RABBIT)
    there = [path for path in paths if pathlib.Path(path).exists()]
    conf([], default_config_files=there, default_config_dirs=[])
    durable = any(conf[_RABBIT][name] for name in _DURABLE)
    return _Exchange(conf.control_exchange, durable)


def _exchange_text(sends: _Exchange) -> str:
    how = 'durable' if sends.durable else 'not durable'
    return f'the exchange {sends.exchange}, {how}'


CHECKS: tuple[results.Named, ...] = (
    ('Database of requests', check_tables),
    ('Clocks', check_clock),
    ('Keys of messages', check_keys),
    ('Key of the service', check_signing),
    ('Relay', check_relay),
    ('Cloud', check_cloud),
)
"""Checks of the queue, by name."""


def checks(
    path: pathlib.Path, nova: str, nova_api: str
) -> tuple[results.Named, ...]:
    """Return the checks with the configuration of a file.

    :param path: configuration file of the queue.
    :param nova: configuration file of all services of Nova.
    :param nova_api: further file that only nova-api reads.
    """
    looked = functools.partial(check_exchanges, nova, nova_api)
    named: tuple[results.Named, ...] = (
        *CHECKS,
        ('Exchanges of Nova', looked),
    )
    return tuple(
        (name, _with_configuration_file(check, path)) for name, check in named
    )


def _with_configuration_file(
    check: results.Check, path: pathlib.Path
) -> Callable[[cfg.ConfigOpts], upgradecheck.Result]:
    def bound(_: cfg.ConfigOpts) -> upgradecheck.Result:
        conf = cfg.ConfigOpts()
        cluster_conf.register_opts(conf)
        conf(['--config-file', str(path)], project=queue_commands.PROJECT)
        return check(conf)

    return bound
