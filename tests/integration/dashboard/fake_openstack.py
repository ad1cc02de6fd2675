# SPDX-License-Identifier: Apache-2.0

"""What Horizon talks to, over HTTP on loopback.

Real: the HTTP interface of this product (routes, policies, schemas), the
endpoint and the client of its calls, the cluster service with its cycles, and
its store. Fakes: Keystone, Nova, Placement, the conductor, the hosts and their
agents, the transport between these, migration plans, and hosts that move to
and from a batch system.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import datetime as dt
import json
import threading
import time
from typing import Any
from wsgiref import simple_server

import webob

from api_ext import http_request
from nova_fairness import exception
from nova_fairness.cluster.admission import intake
from nova_fairness.cluster.api import requests as operations
from nova_fairness.cluster.eviction import preemption as evictions
from nova_fairness.cluster.messages import parser
from nova_fairness.model import cluster
from nova_fairness.planners.fairqueue import planner as queue
from nova_fairness.planners.preemption import planner as preemption
from nova_fairness.rpc import requests as rpc
from tests.fixtures import fake_cloud as fake_services
from tests.integration.dashboard import fake_keystone
from tests.integration.dashboard import fake_launch
from tests.unit.api_ext import fake_agents
from tests.unit.api_ext import fake_cloud
from tests.unit.api_ext import fake_requests
from tests.unit.cluster import test_service
from tests.unit.cluster.api import test_dry_run

ALICE, BOB, CAROL = fake_cloud.ALICE, fake_cloud.BOB, fake_cloud.CAROL
RED, BLUE = fake_cloud.RED, fake_cloud.BLUE
SLOW = fake_cloud.ALICES
SUMMARY = (
    'This VM is slowed down by sharing: it gets 0.25 CPU and wants 1.00 CPU.'
)
RUN_S = 600.0
"""For which servers of the past ran."""

HOUR_S = 3600.0


class FakeMoves(operations.ClusterOperations):
    """The real operations, but for migration plans and the border."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._fake = fake_requests.FakeOperations()

    def plans(self, marker: str | None, limit: int) -> Any:
        return self._fake.plans(marker, limit)

    def plan(self, uuid: str) -> Any:
        return self._fake.plan(uuid)

    def approve(self, uuid: str) -> Any:
        return self._fake.approve(uuid)

    def stop(self, uuid: str) -> Any:
        return self._fake.stop(uuid)

    def border(self) -> Any:
        return self._fake.border()

    def hosts(self, marker: str | None, limit: int) -> Any:
        return self._fake.hosts(marker, limit)

    def host(self, name: str) -> Any:
        return self._fake.host(name)

    def move(self, name: str) -> Any:
        return self._fake.move(name)

    def stay(self, name: str) -> Any:
        return self._fake.stay(name)


def _iso(at_s: float) -> str:
    return dt.datetime.fromtimestamp(at_s, dt.UTC).strftime(
        '%Y-%m-%dT%H:%M:%S'
    )


@dataclasses.dataclass(frozen=True)
class CloudSize:
    """What a cloud has more than others in tests.

    :ivar hosts: full ones.
    :ivar requests: that wait.
    :ivar projects: with shares.
    :ivar kept_s: for which the interface keeps answers of agents.
    """

    hosts: int = 0
    requests: int = 0
    projects: int = 0
    kept_s: float = 0.0

    @property
    def host_names(self) -> list[str]:
        """Names of these hosts."""
        return [f'more{number:04}' for number in range(self.hosts)]


class FakeOpenStack:
    """A cloud of one host that is full; users wait.

    :param path: of a directory for the store.
    :param has_queue: whether the cluster service answers.
    :param size: of a cloud with more than that.
    """

    def __init__(
        self,
        path: Any,
        *,
        has_queue: bool = True,
        size: CloudSize | None = None,
    ) -> None:
        self.world = test_service.World(path)
        self.world.now = time.time()
        self._names: dict[str, str] = {}
        self._size = size or CloudSize()
        self.keystone = fake_keystone.FakeKeystone(fake_cloud.TOKENS)
        self._fill()
        self._fill_more()
        self.process = self.world.process()
        self.waits = self._ask('batch-waits', RED, ALICE)
        self.later = self._ask('batch-later', RED, ALICE)
        self.secret = self._ask('carol-secret', BLUE, CAROL)
        self._ask_more()
        self._run()
        self._has_queue = has_queue
        self._client = self._connected()
        kind = FakeManyAgents if self._size.hosts else fake_agents.FakeClient
        self.agents = kind(*self._agents())
        self.fairness = fake_cloud.FakeCloud(
            None,
            of_client=self.agents,
            connect_requests=lambda: self._client,
            locate=self._locate,
            kept_s=self._size.kept_s,
        )

    def _agents(self) -> Iterator[fake_agents.FakeAgent]:
        """One on each host; each knows all others."""
        names = ('cmp1', *self._size.host_names)
        for name in names:
            vms = [
                fake_agents.FakeVm(SLOW, ALICE, RED, 0.5),
                fake_agents.FakeVm(fake_cloud.BOBS, BOB, RED, 0.1),
            ]
            peers = tuple(each for each in names if each != name)
            yield FakeSlowAgent(name, vms, peers=peers)

    def _connected(self) -> rpc.RequestsClient:
        """A client of the process that leads."""
        answers = FakeMoves(
            self.world.store, self.process, trial=test_dry_run.trial
        )
        kind = fake_requests.FakeRpc if self._has_queue else FakeSilence
        return rpc.RequestsClient(kind(answers))

    def _fill(self) -> None:
        """A host that is full for ten minutes, as past servers were."""
        world, now = self.world, self.world.now
        world.accounts = (
            cluster.Account(RED, None, 2.0, budget_hours=100_000.0),
            cluster.Account(BLUE, None, 1.0),
            cluster.Account(f'{RED}/{ALICE}', RED, 1.0),
        )
        world.cloud.add_host('cmp1', 4)
        for number in range(5):
            world.cloud.live(
                f'past{number}', 3, _iso(now - HOUR_S),
                _iso(now - HOUR_S + RUN_S), project=RED,
            )  # fmt: skip
        world.cloud.live(SLOW, 3, _iso(now - 60.0), project=RED)
        world.cloud.servers[SLOW] |= {'user_id': ALICE}
        world.cloud.build(SLOW, 'cmp1', {'VCPU': 3, 'MEMORY_MB': 100})
        self._names[SLOW] = 'web-slow'

    def _fill_more(self) -> None:
        """Hosts that are full for long, and projects with shares."""
        world = self.world
        for name in self._size.host_names:
            server = fake_services.name_uuid(f'on {name}')
            world.cloud.add_host(name, 4)
            world.cloud.live(server, 4, _iso(world.now - 60.0), project=BLUE)
            world.cloud.build(server, name, {'VCPU': 4, 'MEMORY_MB': 100})
        more = [f'{n:032x}' for n in range(1, 1 + self._size.projects)]
        self.keystone.projects |= {each: f'project-{each}' for each in more}
        world.accounts += tuple(
            cluster.Account(each, None, 1.0) for each in more
        )

    def _ask_more(self) -> None:
        """Requests that wait, of two projects in turn."""
        for number in range(self._size.requests):
            owner = ((RED, ALICE), (BLUE, CAROL))[number % 2]
            self._ask(f'job-{number}', *owner)

    def _ask(
        self,
        name: str,
        project: str,
        user: str,
        vcpus: int = 4,
        *,
        flavor: str = 'small',
        ago_s: float = 0.0,
    ) -> str:
        """A user asks Nova for a server, or did it some time ago."""
        server = fake_services.name_uuid(name)
        self.world.cloud.add_server(server, project, user)
        cast = test_service.build(name, server, vcpus, project)
        body = cast.body
        for old, new in (('u', user), ('small', flavor)):
            assert f'\\"{old}\\"'.encode() in body
            body = body.replace(
                f'\\"{old}\\"'.encode(), f'\\"{new}\\"'.encode()
            )
        at_s = self.world.now - ago_s
        self.world.store.store_message(
            dataclasses.replace(cast, body=body, received_at=at_s)
        )
        self._names[server] = name
        return server

    def _run(self) -> None:
        """Cycles until starts are estimated."""
        for _ in range(2):
            for step_s in (0.0, 29.0, 32.0):
                self.world.go(step_s)
                self.process.cycle()
                self.process.estimate(5.0)

    def evict(self) -> str:
        """Let a preemptible server of alice make room for one of carol.

        :returns: UUID of the server that leaves.
        """
        world = self.world
        world.plan = evictions.Planner(
            queue.plan, preemption.LEAST, preemption.USUAL
        )
        rules = parser.PreemptibleRules(projects=frozenset({RED}))
        self.process = world.process(
            'other', terms=intake.AdmissionOptions(preemptible=rules)
        )
        self._client = self._connected()
        world.go(31.0)
        self._cycles(60.0, 1)
        spot = self._ask('spot-one', RED, ALICE, 1)
        world.cloud.servers[spot]['flavor'] = {
            'vcpus': 1, 'ram': 100, 'disk': 0
        }  # fmt: skip
        self._cycles(60.0, 2)
        world.cloud.build(spot, 'cmp1', {'VCPU': 1, 'MEMORY_MB': 100})
        world.cloud.servers[spot]['OS-SRV-USG:launched_at'] = _iso(world.now)
        self._cycles(60.0, 1)
        self._ask('carol-urgent', BLUE, CAROL, 1)
        self._cycles(300.0, round(preemption.USUAL.least_run_s / 300.0) + 1)
        return spot

    def start_late(self, flavor: str, waited_s: float) -> None:
        """Start a server of a flavor that waited as long."""
        late = self._ask('late', RED, ALICE, 1, flavor=flavor, ago_s=waited_s)
        self._cycles(60.0, 1)
        told = self.world.store.request(late).request
        assert told.state.value == 'starting', told

    def _cycles(self, every_s: float, count: int) -> None:
        for _ in range(count):
            self.world.go(every_s)
            self.process.cycle()

    def _locate(self, context: Any, uuid: str) -> http_request.Owner:
        """Whose a server is, as Nova says it."""
        found = self.world.cloud.servers[uuid]
        return http_request.Owner(
            found['OS-EXT-SRV-ATTR:host'] or '',
            found['user_id'],
            found['tenant_id'],
            self._names.get(uuid, ''),
            {'BUILD': 'building'}.get(found['status'], 'active'),
        )

    @property
    def servers(self) -> Mapping[str, str]:
        """UUIDs of servers by their names."""
        return {name: uuid for uuid, name in self._names.items()}

    def cycle(self) -> None:
        """Let the service look at its cloud."""
        self.process.cycle()

    def __call__(self, environ: Any, start_response: Any) -> Any:
        request = webob.Request(environ)
        if request.path_info.startswith('/identity'):
            answer = self.keystone.answer(request)
        elif '/servers' in request.path_info:
            answer = self._servers(request)
        elif found := fake_launch.answer(request.path_info):
            answer = found
        elif request.path_info.rstrip('/') in ('/v2.1', ''):
            answer = webob.Response(json=_version(request))
        else:
            answer = self.fairness
        return answer(environ, start_response)

    def _servers(self, request: webob.Request) -> webob.Response:
        """Those of the project of the token, as Nova lists them.

        Administrators may list those of all projects.
        """
        who = fake_cloud.TOKENS.get(request.headers.get('X-Auth-Token', ''))
        if who is None:
            return webob.Response(status=401)
        is_all = 'all_tenants' in request.params
        if is_all and 'admin' not in who['roles']:
            return webob.Response(status=403)
        found = [
            fake_launch.server_for_list(
                each, self._names.get(each['id'], each['id'])
            )
            for each in self.world.cloud.servers.values()
            if is_all or each['tenant_id'] == who.get('project_id')
        ]
        if (marker := request.params.get('marker')) is not None:
            ids = [each['id'] for each in found]
            found = found[ids.index(marker) + 1 :]
        if (wanted := request.path_info.rpartition('/')[2]) in (
            self.world.cloud.servers
        ):
            return self._server(wanted, who)
        limit = int(request.params.get('limit', 1000))
        return webob.Response(json={'servers': found[:limit]})

    def _server(self, uuid: str, who: Mapping[str, Any]) -> webob.Response:
        """One of the project of the token; of any for administrators."""
        found = self.world.cloud.servers[uuid]
        is_own = found['tenant_id'] == who.get('project_id')
        if not is_own and 'admin' not in who['roles']:
            return webob.Response(status=404)
        name = self._names.get(uuid, uuid)
        return webob.Response(json={'server': {**found, 'name': name}})


class FakeSlowAgent(fake_agents.FakeAgent):
    """An agent whose server wants more than it gets."""

    def instance(self, uuid: str) -> Any:
        answer = super().instance(uuid)
        answer['instance'] |= {
            'summary': SUMMARY,
            'advice': ['Use fewer CPUs for a while, and it gets more.'],
            'usage': {'cpu_time': 0.25, 'disk_read': 2e6, 'memory': 3e9},
            'endowment': {'cpu_time': 0.5, 'disk_read': 1e7, 'memory': 2e9},
            'weights_last_hour': [
                {'at': f'2026-11-22T01:{minute:02}:00Z', 'weights': {'cpu': w}}
                for minute, w in enumerate((1.0, 0.9, 0.9, 0.6, 0.7, 0.5))
            ],
        }
        return answer

    def _previewed(self, name: str) -> Any:
        """Bob has what he wants; alice does not, and weighs more."""
        found = super()._previewed(name)
        found['users'][ALICE] |= {'name': 'alice'}
        found['users'][BOB] |= {'name': 'bob', 'gets_cpus': 1.0}
        for each in found['instances']:
            each['weight_ratio'] = 3.0 if each['user'] == ALICE else 1.0
        return found


class FakeManyAgents(fake_agents.FakeClient):
    """Agents whose status takes this process nothing.

    Each writes its own on its host. Here it is written once, and read by the
    real client each time.
    """

    def __init__(self, *agents: fake_agents.FakeAgent) -> None:
        super().__init__(*agents)
        self._written: dict[str, str] = {}

    def _call(self, host: str, method: str, arguments: Any) -> Any:
        if method != 'get_status':
            return super()._call(host, method, arguments)
        if host not in self._written:
            answer = super()._call(host, method, arguments)
            self._written[host] = json.dumps(answer)
        return json.loads(self._written[host])


class FakeSilence(fake_requests.FakeRpc):
    """The transport of a cloud that has no cluster service."""

    def call(self, host: Any, method: str, **arguments: Any) -> Any:
        raise exception.HostNotReached('no cluster service')


def _version(request: webob.Request) -> dict[str, Any]:
    return {
        'version': {
            'id': 'v2.1', 'status': 'CURRENT', 'version': '2.96',
            'min_version': '2.1', 'updated': '2013-07-23T11:33:21Z',
            'links': [{'rel': 'self', 'href': f'{request.host_url}/v2.1/'}],
        }
    }  # fmt: skip


class _Handler(simple_server.WSGIRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class FakeEndpoint:
    """An address on loopback, and the cloud behind it.

    :param server: that listens.
    """

    def __init__(self, server: simple_server.WSGIServer) -> None:
        self._server = server
        self.url = f'http://127.0.0.1:{server.server_port}'

    def show(self, cloud: FakeOpenStack) -> None:
        """Serve another cloud from now on."""
        cloud.keystone.url = self.url
        self._server.set_app(cloud)

    @property
    def keystone(self) -> str:
        """URL of Keystone."""
        return f'{self.url}/identity/v3'


@contextlib.contextmanager
def serving() -> Iterator[FakeEndpoint]:
    """An address where one cloud after the other is served."""
    server = simple_server.WSGIServer(('127.0.0.1', 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield FakeEndpoint(server)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
