# SPDX-License-Identifier: Apache-2.0

"""Shared code of the commands of the queue."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import signal
import sys
import threading
from urllib import parse

from oslo_config import cfg
from oslo_log import log

from nova_fairness import exception
from nova_fairness import version
from nova_fairness.cluster.admission import message_store_client
from nova_fairness.cluster.assembly import storage
from nova_fairness.cmd import known_options
from nova_fairness.conf import cluster as cluster_conf
from nova_fairness.model import plain
from nova_fairness.observe import endpoint
from nova_fairness.observe import queue as queue_observe
from nova_fairness.relay import jobs as jobs_module
from nova_fairness.relay import link
from nova_fairness.relay import service_heartbeat
from nova_fairness.relay import topology
from nova_fairness.runtime import safe_log
from nova_fairness.runtime import supervision

LOG = log.getLogger(__name__)

PROJECT = 'nova-fairness-cluster'

AWAY_LEASES = 10
"""Number of leases without a leader after which the service counts as down."""

LEAST_AWAY_S = 60.0
"""Shortest time until the service counts as down, seconds. A database can
restart in this time without effect on builds.
"""

_SCHEMES = ('amqp', 'amqps')

Command = Callable[[cfg.ConfigOpts], None]


def main(
    program: str,
    description: str,
    commands: Mapping[str, tuple[Command, str]],
    arguments: Sequence[str] | None,
    options: Sequence[cfg.Opt] = (),
) -> int:
    """Run a command line.

    :param commands: functions and descriptions of commands, by name; the first
        command is the default.
    :param options: options of the command line.
    :returns: 0 on success, 1 if the command fails, 2 on wrong usage or
        configuration.
    """
    given = sys.argv[1:] if arguments is None else arguments
    try:
        conf = _configuration(program, description, commands, given, options)
        _find_command(commands, conf.command)(conf)
    except (cfg.Error, exception.ConfigurationError) as error:
        sys.stderr.write(plain.lines(f'{program}: {error}\n'))
        return 2
    except exception.FairnessError as error:
        sys.stderr.write(plain.lines(f'{program}: {error}\n'))
        return 1
    return 0


def _find_command(
    commands: Mapping[str, tuple[Command, str]], name: str
) -> Command:
    if name not in commands:
        raise exception.ConfigurationError(
            f'command {name!r} is unknown; expected {" or ".join(commands)}'
        )
    return commands[name][0]


def _configuration(
    program: str,
    description: str,
    commands: Mapping[str, tuple[Command, str]],
    given: Sequence[str],
    options: Sequence[cfg.Opt],
) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    cluster_conf.register_opts(conf)
    usual = cluster_conf.CONFIG_FILE
    command = cfg.StrOpt(
        'command',
        positional=True,
        required=False,
        default=next(iter(commands)),
        help=' '.join(
            f'{name}: {told}.' for name, (_, told) in commands.items()
        ),
    )
    conf.register_cli_opts([command, *options])
    log.register_options(conf)
    conf(
        given,
        project=PROJECT,
        prog=program,
        version=version.release(),
        description=description,
        default_config_files=[str(usual)] if usual.is_file() else [],
    )
    if not (conf.log_file or conf.log_dir or conf.use_journal):
        conf.set_default('use_stderr', True)
    log.setup(conf, program)
    safe_log.install()
    known_options.warn_of_unknown_options(conf)
    return conf


def places(conf: cfg.ConfigOpts, holds: bool = True) -> topology.Places:
    """Return the names of exchanges and queues on a broker.

    :param holds: whether builds are held on this broker.
    :raises ConfigurationError: if the options contradict each other.
    """
    options = conf.fairness_cluster
    if options.front_exchange == options.nova_exchange:
        raise exception.ConfigurationError(
            '[fairness_cluster] front_exchange and nova_exchange: both are'
            f' {options.nova_exchange}; set different names'
        )
    return topology.Places(
        options.front_exchange,
        options.nova_exchange,
        options.nova_exchange_durable,
        holds=holds,
    )


def broker(conf: cfg.ConfigOpts) -> str:
    """Return the URL of the broker on which builds are held.

    :raises ConfigurationError: if the option is empty, or not the URL of a
        broker.
    """
    return _checked_url('broker', conf.fairness_cluster.broker)


def brokers(conf: cfg.ConfigOpts) -> list[tuple[str, topology.Places]]:
    """Return the URLs of all brokers that nova-api uses, with the names on
    each.

    :raises ConfigurationError: if an option is wrong.
    """
    further = [
        (_checked_url('cell_broker', url), places(conf, holds=False))
        for url in conf.fairness_cluster.cell_broker
    ]
    return [(broker(conf), places(conf)), *further]


def _checked_url(option: str, url: str) -> str:
    """Check and return one or more URLs. Errors do not contain them, because
    URLs contain passwords.
    """
    if not url:
        raise exception.ConfigurationError(
            f'[fairness_cluster] {option}: empty; set the URL of the broker'
            ' that Nova uses'
        )
    try:
        parts = [parse.urlsplit(each) for each in url.split(';')]
        good = all(
            each.scheme in _SCHEMES and each.hostname and each.port != 0
            for each in parts
        )
    except ValueError:
        good = False
    if not good:
        raise exception.ConfigurationError(
            f'[fairness_cluster] {option}: not a URL of a broker; expected'
            ' one such as amqp://user:password@host:5672//'
        )
    return url


@dataclasses.dataclass(frozen=True)
class Relay:
    """The relay on all brokers.

    :ivar jobs: jobs that process the queues of the brokers.
    :ivar lookout: detects that the service is down; ``None`` if builds are
        always held.
    """

    jobs: Sequence[jobs_module.QueueJob] = ()
    lookout: service_heartbeat.Lookout | None = None

    @property
    def work(self) -> list[jobs_module.ThreadWork]:
        """All jobs of the relay, each for one thread."""
        return [*self.jobs, *([self.lookout] if self.lookout else [])]

    def told(self) -> tuple[Mapping[str, int], bool]:
        """Return the number of messages by outcome, and whether builds are
        forwarded without holding.
        """
        is_open = self.lookout is not None and self.lookout.is_away()
        return jobs_module.count_outcomes(self.jobs), is_open


def create_relay(
    conf: cfg.ConfigOpts,
    stopped: threading.Event,
    manager: supervision.ServiceManager,
) -> Relay:
    """Create the relay, ready to start.

    :param manager: receives a sign of life of each job.
    :raises ConfigurationError: if an option is wrong.
    :raises StoreError: if the database answers, but is not usable.
    """
    found = brokers(conf)
    hold = message_store_client.MessageStoreClient(
        lambda: storage.open_store(conf)
    ).hold
    lookout = _lookout(conf, stopped)
    for each in found:
        _declare(*each)
    is_open = lookout.is_away if lookout else None
    made = [
        job
        for url, names in found
        for job in jobs_module.of_broker(url, names, stopped, hold, is_open)
    ]
    for job in made:
        job.beat = manager.loop()
    return Relay(made, lookout)


def _lookout(
    conf: cfg.ConfigOpts, stopped: threading.Event
) -> service_heartbeat.Lookout | None:
    options = conf.fairness_cluster
    if options.fail_mode == 'hold':
        return None
    pulse = message_store_client.MessageStoreClient(
        lambda: storage.open_store(conf)
    ).leader_epoch
    away_s = max(LEAST_AWAY_S, AWAY_LEASES * options.lease)
    return service_heartbeat.Lookout(pulse, away_s, stopped)


@contextlib.contextmanager
def metrics_served(
    conf: cfg.ConfigOpts, option: str, collector: queue_observe.QueueCollector
) -> Iterator[None]:
    """Serve metrics during a ``with`` block, if an option sets a port.

    :raises ConfigurationError: if it cannot listen on the port.
    """
    section = cluster_conf.GROUP.name
    served = endpoint.open_endpoint(
        conf.fairness_observe, conf[section][option], collector, section
    )
    if served is None:
        yield
        return
    served.start()
    try:
        yield
    finally:
        served.stop()


def _declare(url: str, names: topology.Places) -> None:
    """Check the declarations on a broker; log a warning if the broker does not
    answer.
    """
    try:
        link.Link(url, names).close()
    except exception.DeclaredOtherwise as error:
        raise exception.ConfigurationError(
            '[fairness_cluster] front_exchange, nova_exchange or'
            f' nova_exchange_durable: it differs from Nova: {error}; set the'
            ' values of Nova'
        ) from error
    except exception.BrokerAway as error:
        LOG.warning('%s', error)


def stop_event() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    return stopped
