# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-cluster``: says which requests start next."""

import os
import sys
import warnings

# Libraries import eventlet where it is installed; this program never runs it.
warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')

from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType.THREADING)

import pathlib  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

from oslo_config import cfg  # noqa: E402
from oslo_log import log  # noqa: E402

from nova_fairness import exception  # noqa: E402
from nova_fairness import version  # noqa: E402
from nova_fairness.cluster import clients  # noqa: E402
from nova_fairness.cluster import election  # noqa: E402
from nova_fairness.cluster import execute  # noqa: E402
from nova_fairness.cluster import limits  # noqa: E402
from nova_fairness.cluster import placement  # noqa: E402
from nova_fairness.cluster import servers  # noqa: E402
from nova_fairness.cluster import service  # noqa: E402
from nova_fairness.cluster import snapshot  # noqa: E402
from nova_fairness.cluster.store import database  # noqa: E402
from nova_fairness.cluster.store import schema  # noqa: E402
from nova_fairness.cluster.store import store as store_module  # noqa: E402
from nova_fairness.conf import cluster as cluster_conf  # noqa: E402
from nova_fairness.model import cast as cast_module  # noqa: E402
from nova_fairness.planners.fairqueue import planner  # noqa: E402
from nova_fairness.relay import link  # noqa: E402
from nova_fairness.relay import topology  # noqa: E402

PROJECT = 'nova-fairness-cluster'


class ConductorSender(execute.Sender):
    """Sends held messages where they were going.

    :param url: of the broker.
    :param places: names on it.
    """

    def __init__(self, url: str, places: topology.Places) -> None:
        self._url = url
        self._places = places
        self._link: link.Link | None = None

    def connect(self) -> None:
        """Connect anew: an old connection may be dead without knowing."""
        self._close()
        self._link = link.Link(self._url, self._places)

    def send(self, cast: cast_module.Cast) -> None:
        """Send a message; what nobody listens to is not there."""
        if self._link is None:
            raise exception.BrokerAway('there is no connection')
        delivery = link.Delivery('', cast.key, cast.body, cast.properties, 0)
        self._link.publish(self._places.target, delivery)
        unheard = self._link.settle()
        self._close()
        if unheard:
            raise exception.BrokerAway('conductor does not listen')

    def _close(self) -> None:
        if self._link is not None:
            self._link.close()
        self._link = None


def _configuration(arguments: list[str]) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    cluster_conf.register_opts(conf)
    conf.register_cli_opt(
        cfg.StrOpt(
            'command',
            positional=True,
            required=False,
            default='run',
            choices=['run', 'upgrade'],
            help='run: say who starts next until stopped. upgrade: bring the '
            'tables of the database to this version.',
        )
    )
    log.register_options(conf)
    conf(
        arguments,
        project=PROJECT,
        version=version.release(),
        description='Requests wait in front of Nova until there is room.',
    )
    if not (conf.log_file or conf.log_dir or conf.use_journal):
        conf.set_default('use_stderr', True)
    log.setup(conf, PROJECT)
    return conf


def _upgrade(conf: cfg.ConfigOpts) -> None:
    engine = database.connect(conf.fairness_cluster.database)
    schema.upgrade(engine)
    sys.stdout.write(
        f'the tables have the revision {schema.present(engine)}\n'
    )


def _service(conf: cfg.ConfigOpts) -> service.Service:
    options = conf.fairness_cluster
    if not options.broker:
        raise exception.ConfigurationError(
            '[fairness_cluster] broker must name the broker of Nova'
        )
    # Before anything is opened: choices are checked when they are read.
    rules = service.Rules(
        options.longest_wait or None, options.unreadable == 'pass'
    )
    given = (
        limits.read(pathlib.Path(options.limits_file))
        if options.limits_file
        else {}
    )
    store = store_module.open_store(
        options.database, pathlib.Path(options.key_file)
    )
    rooms, nova_api = clients.connect(options.cloud)
    room, nova = placement.Placement(rooms), servers.Nova(nova_api)
    places = topology.Places(
        options.front_exchange,
        options.nova_exchange,
        options.nova_exchange_durable,
    )
    sender = ConductorSender(options.broker, places)
    holder = f'{socket.gethostname()}:{os.getpid()}'
    return service.Service(
        store,
        election.Election(
            store, holder, options.lease, time.time, time.monotonic
        ),
        snapshot.Reader(room, nova, given),
        execute.Executor(store, room, nova, sender, time.time),
        nova,
        planner.plan,
        time.time,
        rules,
    )


def _run(conf: cfg.ConfigOpts) -> None:
    made = _service(conf)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    made.run(stopped, conf.fairness_cluster.interval)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    :returns: 0 on success, 1 if it cannot start, 2 on wrong usage or
        configuration.
    """
    given = sys.argv[1:] if arguments is None else arguments
    try:
        conf = _configuration(given)
        {'run': _run, 'upgrade': _upgrade}[conf.command](conf)
    except (cfg.Error, exception.ConfigurationError) as error:
        sys.stderr.write(f'{PROJECT}: {error}\n')
        return 2
    except exception.FairnessError as error:
        sys.stderr.write(f'{PROJECT}: {error}\n')
        return 1
    return 0
