# SPDX-License-Identifier: Apache-2.0

"""Hosts that a real Slurm and the real Nova share, and who uses them when."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import pathlib
import subprocess
import tempfile
import threading
import time
import types

import sqlalchemy as sa

from nova_fairness.model import border
from tests.fixtures import slurm_cluster
from tests.fixtures.nova_cloud import cloud as cloud_module
from tests.fixtures.nova_cloud import fake_hosts
from tests.fixtures.nova_cloud import guest_image
from tests.fixtures.nova_cloud import infrastructure
from tests.fixtures.nova_cloud import waiting
from tests.integration.nova import watching

NODES = slurm_cluster.NODES
HOSTS = tuple(f'm{n}' for n in range(1, len(NODES) + 1))
USUAL = dict.fromkeys(HOSTS[:-1], 'batch') | {HOSTS[-1]: 'cloud'}
"""Side of each host when a test begins."""

OWNER = 'carol'
LEASE_S = '10'
"""After which another process acts. A busy machine takes longer for a look
than a lease that is shorter still, and then nobody ever acts to the end."""

LOOK_S = 2.0
"""In which Slurm tells a watcher what it has; else it is away."""

_SIDES = """
SELECT host FROM nova.services WHERE `binary` = 'nova-compute'
  AND deleted = 0 AND disabled = 0 AND host LIKE 'fake-%'
UNION SELECT host FROM nova.instances
  WHERE deleted = 0 AND host LIKE 'fake-%'"""
_DISABLED = """
SELECT host, disabled FROM nova.services
WHERE `binary` = 'nova-compute' AND deleted = 0 AND host LIKE 'fake-%'"""
_BUILT = """
SELECT i.uuid, i.host, UNIX_TIMESTAMP(e.start_time),
  UNIX_TIMESTAMP(COALESCE(i.deleted_at, UTC_TIMESTAMP()))
FROM nova.instances i
JOIN nova.instance_actions a ON a.instance_uuid = i.uuid
JOIN nova.instance_actions_events e ON e.action_id = a.id
WHERE i.host LIKE 'fake-%' AND e.event LIKE 'compute%build_and_run_instance'
"""
_DONE = """
SELECT action FROM nova.instance_actions WHERE instance_uuid = :server"""
_REPORTED = """
SELECT host, UNIX_TIMESTAMP(last_seen_up) FROM nova.services
WHERE `binary` = 'nova-compute' AND deleted = 0 AND host LIKE 'fake-%'"""
_STANDS = 'SELECT host, state, version FROM fairness.nodes'


@dataclasses.dataclass(frozen=True)
class Use:
    """A time in which one side had something on a host.

    :ivar what: number of the job, or UUID of the server.
    :ivar host: name of the machine.
    :ivar begun: seconds of the epoch; the record counts whole ones.
    :ivar ended: likewise.
    """

    what: str
    host: str
    begun: float
    ended: float


class Crossing:
    """Four hosts of both; the last is the cloud's, the others are Slurm's.

    :ivar slurm: the real one.
    :ivar fakes: the hosts in Nova.
    """

    def __init__(
        self,
        cloud: cloud_module.Cloud,
        slurm: slurm_cluster.SlurmCluster,
        fakes: fake_hosts.FakeHosts,
    ) -> None:
        self.cloud, self.slurm, self.fakes = cloud, slurm, fakes
        self._of_batch = dict(zip(HOSTS, NODES, strict=True))
        self._of_cloud = dict(zip(HOSTS, fakes.names, strict=True))
        path = infrastructure.socket_of(cloud.controller)
        self._engine = sa.create_engine(
            f'mysql+pymysql://root@localhost/?unix_socket={path}',
            isolation_level='AUTOCOMMIT',
        )

    def write_down(self, path: pathlib.Path) -> None:
        """Name the hosts of both sides, as an operator does."""
        path.write_text(
            'hosts:\n'
            + ''.join(
                f'- {{name: {host}, batch: {self._of_batch[host]},'
                f' cloud: {self._of_cloud[host]}, cores: {self.slurm.cpus}}}\n'
                for host in HOSTS
            )
        )

    def hand_over(self) -> None:
        """Close one side of each host, as an operator does first."""
        for host in HOSTS[:-1]:
            about = {
                'status': 'disabled',
                'disabled_reason': f'{border.MARK}: it is of batch',
            }
            path = f'/os-services/{self._service(host)}'
            self.cloud.admin.put('compute', path, about)
        self.slurm.drain(NODES[-1], f'{border.MARK}: it is of the cloud')

    def _service(self, host: str) -> str:
        path = '/os-services?binary=nova-compute'
        listed = self.cloud.admin.get('compute', path)['services']
        names = {each['host']: each['id'] for each in listed}
        return str(names[self._of_cloud[host]])

    def states(self) -> dict[str, str]:
        """Where hosts stand by what is stored."""
        return {host: state for host, state, _ in self._select(_STANDS)}

    def await_state(self, host: str, *states: str) -> str:
        """Wait until a host stands in one of some states."""
        watching.eventually(
            lambda: self.states().get(host) in states,
            lambda: (host, states, self.states(), self.faults()),
        )
        return self.states()[host]

    def faults(self) -> object:
        """What keeps hosts from moving, as operators read it."""
        answer = self.cloud.admin.ask('GET', 'compute', '/fairness/partition')
        if answer.status != 200:
            return answer
        return answer.body['partition']['faults']

    def act(self, host: str, action: str) -> None:
        """``move`` a host, or ``cancel`` it, as soon as it is answered."""
        path = f'/fairness/partition/hosts/{host}/action'
        answers = []

        def is_done() -> bool:
            ask = self.cloud.admin.ask('POST', 'compute', path, {action: None})
            answers.append(ask)
            return ask.status in (200, 202)

        watching.eventually(is_done, lambda: answers[-1])

    def is_open(self, host: str, side: border.BorderSide) -> bool:
        """Whether a side takes work there, as it says itself."""
        if side is border.BorderSide.CLOUD:
            closed = {row[0]: row[1] for row in self._select(_DISABLED)}
            return not closed[self._of_cloud[host]]
        states = self.slurm.states(LOOK_S)
        return self._takes(states[self._of_batch[host]])

    @staticmethod
    def _takes(state: str) -> bool:
        return state.rstrip('*~#$@') in ('idle', 'mixed', 'allocated')

    def of_batch(self) -> set[str]:
        """Hosts on which Slurm has, or may start, a job."""
        states = self.slurm.states(LOOK_S)
        nodes = {name for name, each in states.items() if self._takes(each)}
        jobs = self.slurm.run(
            'squeue', '-ht', 'R,CG', '-o', '%N', timeout_s=LOOK_S
        )
        for line in jobs.splitlines():
            nodes.update(self.slurm.nodes_of(line.strip()))
        return {h for h, node in self._of_batch.items() if node in nodes}

    def of_cloud(self) -> set[str]:
        """Hosts on which Nova has, or may start, a server."""
        names = {row[0] for row in self._select(_SIDES)}
        return {h for h, name in self._of_cloud.items() if name in names}

    def boot(self, name: str, host: str | None = None) -> str:
        """Ask for a server of one core, on a host or on any of them."""
        return self.cloud.boot(
            OWNER,
            name,
            host and self._of_cloud[host],
            guest_image.IDLE,
            zone=None if host else fake_hosts.ZONE,
        )

    def job(self, until: pathlib.Path, host: str | None, *options: str) -> str:
        """A job that ends by itself when a file comes."""
        where = ('-w', self._of_batch[host]) if host else ()
        command = f'while [ ! -e {until} ]; do sleep 0.2; done'
        return self.slurm.submit(*where, *options, command=command)

    def job_state(self, job: str) -> str:
        """Such as ``RUNNING``."""
        shown = self.slurm.run('squeue', '-hj', job, '-o', '%T', '-t', 'all')
        return shown.strip()

    def host_of(self, server: str) -> str:
        """Machine that a server is on."""
        found = self.cloud.show(server)['OS-EXT-SRV-ATTR:host']
        return {name: h for h, name in self._of_cloud.items()}[found]

    def actions(self, server: str) -> list[str]:
        """All that was ever asked of a server, as Nova recorded it."""
        return [row[0] for row in self._select(_DONE, server=server)]

    def uses(self) -> tuple[list[Use], list[Use]]:
        """What ran where and when, by each side's own record of it."""
        of_batch = {node: host for host, node in self._of_batch.items()}
        of_cloud = {name: host for host, name in self._of_cloud.items()}
        jobs = [
            Use(each.name, of_batch[node], each.began, each.ended)
            for each in self.slurm.ended()
            for node in each.nodes
        ]
        servers = [
            Use(uuid, of_cloud[name], float(begun), float(ended))
            for uuid, name, begun, ended in self._select(_BUILT)
        ]
        return jobs, servers

    def start_computes(self) -> None:
        """Start nova-compute of all hosts, and wait until it is there.

        What its predecessor said last counts for a while.
        """
        begun = int(time.time())
        self.fakes.start()

        def report() -> bool:
            told = {row[0]: row[1] for row in self._select(_REPORTED)}
            return all((told[name] or 0) > begun for name in self.fakes.names)

        watching.eventually(report, lambda: self._select(_REPORTED))

    def overlaps(self) -> list[tuple[Use, Use]]:
        """Jobs and servers that a host had at once, by both records."""
        jobs, servers = self.uses()
        return [
            (job, server)
            for job in jobs
            for server in servers
            if job.host == server.host
            and job.begun < server.ended
            and server.begun < job.ended
        ]

    def _select(self, query: str, **named: str) -> list[sa.Row[tuple[str]]]:
        with self._engine.connect() as connection:
            return list(connection.execute(sa.text(query), named))

    def close(self) -> None:
        """Leave the database."""
        self._engine.dispose()


class Sampler:
    """Looks at both sides all the time.

    Slurm is asked before and after Nova: who has a host at both times had it
    in between.

    :ivar looks: at which both sides answered.
    :ivar both: hosts that both sides used, with when.
    """

    def __init__(self, crossing: Crossing) -> None:
        self.looks = 0
        self.both: list[tuple[float, str]] = []
        self._crossing = crossing
        self._ended = threading.Event()
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> 'Sampler':
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._failed is not None and kind is None:
            raise self._failed

    def _work(self) -> None:
        while not self._ended.wait(0.2):
            try:
                self._look()
            except subprocess.SubprocessError:
                # Slurm is away.
                continue
            except Exception as error:
                self._failed = error
                return

    def _look(self) -> None:
        before = self._crossing.of_batch()
        cloud = self._crossing.of_cloud()
        found = before & cloud & self._crossing.of_batch()
        self.both += [(time.time(), host) for host in sorted(found)]
        self.looks += 1


@contextlib.contextmanager
def made(
    cloud: cloud_module.Cloud,
    queue: waiting.Queue,
    make: Callable[..., slurm_cluster.SlurmCluster] = (
        slurm_cluster.SlurmCluster
    ),
) -> Iterator[Crossing]:
    """A Slurm beside a cloud with the same hosts; none is left of both.

    :param make: of what is given to a :class:`.slurm_cluster.SlurmCluster`.
    """
    # Sockets of munge lie below /tmp: paths of pytest are too long for them.
    with tempfile.TemporaryDirectory(prefix='slurm-') as name:
        top = pathlib.Path(name)
        top.chmod(0o755)
        slurm = make(top, cloud.controller.command)
        try:
            slurm.start()
            with fake_hosts.running_fake_hosts(
                cloud, len(NODES), slurm.cpus
            ) as fakes:
                yield from _shared(cloud, queue, slurm, fakes)
        finally:
            slurm.stop()


def _shared(
    cloud: cloud_module.Cloud,
    queue: waiting.Queue,
    slurm: slurm_cluster.SlurmCluster,
    fakes: fake_hosts.FakeHosts,
) -> Iterator[Crossing]:
    crossing = Crossing(cloud, slurm, fakes)
    try:
        crossing.hand_over()
        crossing.write_down(slurm.top / 'partition.yaml')
        yield crossing
    finally:
        crossing.close()
        queue.beside()
        queue.restart(lease=LEASE_S)
        cloud.capacity()
        queue.set()


def begin(
    crossing: Crossing,
    queue: waiting.Queue,
    more: Mapping[str, str] = types.MappingProxyType({}),
    **options: str,
) -> None:
    """Have the service move hosts, and wait until all are where they were.

    :param more: options of the queue.
    :param options: of ``[fairness_partition]``.
    """
    slurm = crossing.slurm
    usual = {
        'batch': 'slurm',
        'batch_parameters': 'timeout_s:5',
        'hosts_file': str(slurm.top / 'partition.yaml'),
        'patience': '1',
        'stay': '0',
        'settle': '5',
        'most_per_day': '99',
        'time_to_live': '600',
    }
    queue.beside(
        {
            'fairness_cluster': {'hosts_interval': '1'},
            'fairness_partition': usual | options,
        },
        {'SLURM_CONF': str(slurm.conf)},
    )
    queue.restart(lease=LEASE_S, **more)
    crossing.cloud.capacity()
    for host, side in USUAL.items():
        if crossing.await_state(host, 'batch', 'cloud') != side:
            # A test before this one failed.
            crossing.act(host, 'move')
    for host, side in USUAL.items():
        crossing.await_state(host, side)
