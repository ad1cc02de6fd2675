# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-cluster``: decides which requests start next."""

import sys
import warnings

# Libraries import eventlet where it is installed; this program never runs it.
warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')

from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType.THREADING)

from collections.abc import Iterator  # noqa: E402
import contextlib  # noqa: E402
import functools  # noqa: E402
import os  # noqa: E402
import pathlib  # noqa: E402
import socket  # noqa: E402
import threading  # noqa: E402

from oslo_config import cfg  # noqa: E402

from nova_fairness import exception  # noqa: E402
from nova_fairness.cluster import event_notifications  # noqa: E402
from nova_fairness.cluster import service  # noqa: E402
from nova_fairness.cluster.admission import dispatcher  # noqa: E402
from nova_fairness.cluster.api import requests as requests_module  # noqa: E402
from nova_fairness.cluster.assembly import border as border_assembly  # noqa: E402
from nova_fairness.cluster.assembly import move_plans  # noqa: E402
from nova_fairness.cluster.assembly import planner  # noqa: E402
from nova_fairness.cluster.assembly import queue_service  # noqa: E402
from nova_fairness.cluster.assembly import storage  # noqa: E402
from nova_fairness.cluster.border import controller  # noqa: E402
from nova_fairness.cluster.move_plans import plan_controller  # noqa: E402
from nova_fairness.cluster.store import database  # noqa: E402
from nova_fairness.cluster.store import schema  # noqa: E402
from nova_fairness.cluster.store import sealing  # noqa: E402
from nova_fairness.cluster.store import store as store_module  # noqa: E402
from nova_fairness.cmd import exported_requests  # noqa: E402
from nova_fairness.cmd import ledger  # noqa: E402
from nova_fairness.cmd import queue_commands  # noqa: E402
from nova_fairness.cmd import repeated_checks  # noqa: E402
from nova_fairness.cmd import withdrawal  # noqa: E402
from nova_fairness.model import cast as cast_module  # noqa: E402
from nova_fairness.model import plain  # noqa: E402
from nova_fairness.model import reason  # noqa: E402
from nova_fairness.model import request  # noqa: E402
from nova_fairness.observe import notifications  # noqa: E402
from nova_fairness.observe import queue  # noqa: E402
from nova_fairness.relay import hints  # noqa: E402
from nova_fairness.relay import jobs  # noqa: E402
from nova_fairness.relay import link  # noqa: E402
from nova_fairness.relay import topology  # noqa: E402
from nova_fairness.rpc import client  # noqa: E402
from nova_fairness.rpc import protocol  # noqa: E402
from nova_fairness.rpc import requests  # noqa: E402
from nova_fairness.rpc import server  # noqa: E402
from nova_fairness.runtime import signatures  # noqa: E402
from nova_fairness.runtime import supervision  # noqa: E402
from nova_fairness.runtime import transport  # noqa: E402

_OTHER_LEADS = 'another process is the leader; stop the service on the host'
_NOT_STARTED = {request.State.SENDING, *request.UNSENT}
_RESEALED_AT_ONCE = 1000
_START_QUEUES = ('conductor', 'scheduler')
"""Queues of Nova that a start passes before any API shows it."""


class ConductorSender(dispatcher.Sender):
    """Sends held messages to Nova's conductor.

    :param url: URL of the broker.
    :param places: names on the broker.
    """

    def __init__(self, url: str, places: topology.Places) -> None:
        self._url = url
        self._places = places
        self._link: link.Link | None = None

    def connect(self) -> None:
        """Open a new connection. An old connection can be broken without an
        error.
        """
        self._close()
        self._link = link.Link(self._url, self._places)

    def send(self, cast: cast_module.Cast) -> None:
        """Send a message to conductor.

        :raises NoListener: if no queue accepted it; the message is then lost.
        :raises BrokerAway: if there is no connection.
        """
        if self._link is None:
            raise exception.BrokerAway('broker: not connected')
        delivery = link.Delivery('', cast.key, cast.body, cast.properties, 0)
        self._link.publish(self._places.target, delivery)
        unheard = self._link.settle()
        self._close()
        if unheard:
            raise exception.NoListener(
                'conductor: message not delivered: its queue does not exist'
            )

    def is_drained(self) -> bool:
        """Return whether the queues of conductor and of the services that it
        calls are empty.
        """
        self.connect()
        try:
            return self._link is not None and all(
                self._link.taken(queue) for queue in _START_QUEUES
            )
        finally:
            self._close()

    def _close(self) -> None:
        if self._link is not None:
            self._link.close()
        self._link = None


def _upgrade(conf: cfg.ConfigOpts) -> None:
    # A new file of SQLite will hold requests of all users.
    before = os.umask(0o077)
    try:
        engine = database.open_engine(conf.fairness_cluster.database)
        schema.upgrade_tables(engine)
    finally:
        os.umask(before)
    sys.stdout.write(
        plain.lines(f'database: revision {schema.current_revision(engine)}\n')
    )


def _new_key(conf: cfg.ConfigOpts) -> None:
    path = pathlib.Path(conf.fairness_cluster.key_file)
    sealing.add_key(path)
    sys.stdout.write(
        plain.lines(
            f'{path}: new key added; services use it after a restart\n'
        )
    )


def _reseal(conf: cfg.ConfigOpts) -> None:
    store, last = storage.open_store(conf), ''
    while (end := store.reseal_messages(last, _RESEALED_AT_ONCE)) is not None:
        last = end
    path = pathlib.Path(conf.fairness_cluster.key_file)
    sealing.remove_old_keys(path)
    sys.stdout.write(
        plain.lines(f'{path}: all messages are encrypted with its first key\n')
    )


def _service(
    conf: cfg.ConfigOpts, closing: move_plans.ClosedHosts
) -> tuple[service.Service, store_module.Store]:
    broker, places = queue_commands.broker(conf), queue_commands.places(conf)
    sender = ConductorSender(broker, places)
    made, store = queue_service.assemble(conf, sender, closing)
    if conf.fairness_partition.batch:
        closing.add(store.nodes.hosts_leaving_cloud)
    return made, store


@contextlib.contextmanager
def _answering(
    conf: cfg.ConfigOpts,
    made: service.Service,
    store: store_module.Store,
    signs: signatures.Signatures | None,
    moving: controller.BorderController | None,
    planned: plan_controller.PlanController | None,
    checks: repeated_checks.RepeatedChecks,
) -> Iterator[None]:
    """Answer RPCs of nova-api during a ``with`` block, if a transport is
    configured.
    """
    if not conf.transport_url:
        yield
        return
    operations = requests_module.ClusterOperations(
        store,
        made,
        signs,
        moving,
        planned,
        lambda: checks.warnings,
        functools.partial(planner.build_trial_planner, conf, made.quarantine),
        functools.partial(planner.order_in_force, conf, made.quarantine),
    )
    serving = server.FairnessServer(
        transport.open_transport(conf, client.ALLOWED_REMOTE_MODULES),
        conf.fairness_exchange.domain,
        socket.gethostname(),
        requests.RequestsEndpoint(operations),
        protocol.REQUESTS_TOPIC,
    )
    serving.start()
    try:
        yield
    finally:
        serving.stop()


@contextlib.contextmanager
def _watched(
    conf: cfg.ConfigOpts,
    made: service.Service,
    store: store_module.Store,
    relay: queue_commands.Relay | None,
    moving: controller.BorderController | None,
    planned: plan_controller.PlanController | None,
) -> Iterator[None]:
    """Count requests and send notifications about them during a ``with``
    block.
    """
    host = socket.gethostname()
    postman = notifications.postman(conf, f'{queue_commands.PROJECT}.{host}')
    post = postman.post if postman else lambda _: None
    readers = {
        'project': reason.Audience.MEMBER,
        'operator': reason.Audience.OPERATOR,
    }[conf.fairness_cluster.notification_audience]
    watch = event_notifications.RequestWatch(store, made, post, host, readers)
    border = event_notifications.BorderWatch(store, moving, post, host)
    plan_watch = event_notifications.PlanWatch(store, planned, post, host)
    collector = queue.QueueCollector(
        watch.queue,
        relay.told if relay else None,
        border.border if moving else None,
        plan_watch.plans if planned else None,
    )
    if postman:
        postman.start()
    try:
        with queue_commands.metrics_served(conf, 'prometheus_port', collector):
            yield
    finally:
        if postman:
            postman.stop()


def _signer(conf: cfg.ConfigOpts) -> signatures.Signatures | None:
    """Create the signer of messages to agents; return ``None`` without agents
    or keys.

    :raises ConfigurationError: if the key cannot sign.
    """
    if not conf.transport_url:
        return None
    return signatures.signer(conf, conf.fairness_exchange.domain)


def _run(conf: cfg.ConfigOpts) -> None:
    signs = _signer(conf)
    closing = move_plans.ClosedHosts()
    made, store = _service(conf, closing)
    stopped = queue_commands.stop_event()
    manager = supervision.ServiceManager()
    relay = (
        queue_commands.create_relay(conf, stopped, manager)
        if conf.with_relay
        else None
    )
    listener = hints.HintListener(
        queue_commands.broker(conf),
        queue_commands.places(conf),
        stopped,
        made.hint,
    )
    moving = border_assembly.build_border_controller(
        conf, store, made, stopped
    )
    planned = move_plans.build_plan_controller(conf, store, made, stopped)
    if planned:
        closing.add(planned.closing)
    checks = repeated_checks.RepeatedChecks(conf, stopped)
    work = [
        listener,
        checks,
        *(relay.work if relay else ()),
        *([moving] if moving else ()),
        *([planned] if planned else ()),
    ]
    with (
        _resigning_at_end(made),
        _watched(conf, made, store, relay, moving, planned),
        jobs.running(work, stopped),
        _answering(conf, made, store, signs, moving, planned, checks),
        manager.serving(),
    ):
        made.run(stopped, conf.fairness_cluster.interval, manager)


@contextlib.contextmanager
def _resigning_at_end(made: service.Service) -> Iterator[None]:
    """Resign at the end of a ``with`` block, so that another process can
    become the leader.

    Threads that did not end in time cannot write to the database after that.
    """
    try:
        yield
    finally:
        made.resign()


def _drain(conf: cfg.ConfigOpts) -> None:
    made, store = _service(conf, move_plans.ClosedHosts())
    stopped = queue_commands.stop_event()
    with _resigning_at_end(made):
        _drain_until(stopped, conf, made, store)


def _drain_until(
    stopped: threading.Event,
    conf: cfg.ConfigOpts,
    made: service.Service,
    store: store_module.Store,
) -> None:
    """Start all waiting requests.

    :raises StillWaiting: if the command is stopped before all have started.
    """
    why = ''
    while not stopped.is_set():
        try:
            left = made.drain()
        except exception.NotLeading as error:
            said = f'{_OTHER_LEADS} {error}'
        except exception.ClusterError as error:
            said = str(error)
        else:
            if not left and not store.messages_without_request(1):
                sys.stdout.write('queue: empty, all requests have started\n')
                return
            said = ''
        if said not in ('', why):
            sys.stderr.write(plain.lines(f'{said}\n'))
        why = said or why
        stopped.wait(conf.fairness_cluster.interval)
    for record in store.requests(_NOT_STARTED):
        sys.stdout.write(
            plain.lines(
                f'request {record.request.uuid} is'
                f' {record.request.state.value}: {record.why.sentence}\n'
            )
        )
    raise exception.StillWaiting(
        'queue: not empty: the command was stopped; run it again'
    )


_OPTIONS = [
    cfg.BoolOpt(
        'with-relay',
        default=False,
        help='Also run the relay in this process, which is sufficient for a'
        ' small cloud.',
    ),
    cfg.StrOpt(
        'to',
        default='',
        help='Path of the file that export-ledger (*.csv or *.parquet) or'
        ' export-requests (*.csv) writes.',
    ),
    cfg.BoolOpt(
        'anonymous',
        default=False,
        help='Let export-requests replace the names of projects and users by'
        ' numbers.',
    ),
]
"""Options of the command line."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line of the cluster service.

    :returns: 0 on success, 1 if the command fails, 2 on wrong usage or
        configuration.
    """
    return queue_commands.main(
        'nova-fairness-cluster',
        'Service of the fair-share queue of Nova.',
        {
            'run': (_run, 'decide which requests start next until stopped'),
            'drain': (_drain, 'start all waiting requests, then end'),
            'upgrade': (
                _upgrade,
                'upgrade the tables of the database to this version',
            ),
            'new-key': (
                _new_key,
                'add a new key as the first one to the file of keys',
            ),
            'reseal': (
                _reseal,
                'encrypt all messages with the first key, remove other keys',
            ),
            'export-ledger': (
                ledger.export,
                'write the charges of all accounts to a file',
            ),
            'export-requests': (
                exported_requests.export,
                'write requests to a file that the simulator reads',
            ),
            'check-ledger': (
                ledger.check,
                'compute the ledger again from all charges, and compare it',
            ),
            'withdraw': (withdrawal.withdraw, withdrawal.DESCRIPTION),
        },
        arguments,
        _OPTIONS,
    )
