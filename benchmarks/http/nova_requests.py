# SPDX-License-Identifier: Apache-2.0

"""Requests of ``api_latency.py`` to nova-api, and their users."""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import http.client
import time

from tests.fixtures.nova_cloud import cloud as cloud_module
from tests.fixtures.nova_cloud import fixtures
from tests.fixtures.nova_cloud import places
from tests.fixtures.nova_cloud import rest

AFRESH, WITHOUT = places.MORE_APIS
"""Further processes: one keeps no answers, and one has no filter."""


@dataclasses.dataclass(frozen=True)
class Request:
    """One request.

    :ivar service: the process that is asked.
    :ivar user: whose token goes with it; empty for none.
    :ivar status: that is expected.
    """

    service: str
    user: str
    path: str
    status: int = 200


def cheapest_request(service: str, user: str) -> Request:
    """Cheapest request that is authenticated."""
    return Request(service, user, '/v2.1/nothing', 404)


def users_request(service: str, user: str) -> Request:
    """Request that the bar is about."""
    own = '' if user == 'admin' else '/me'
    return Request(service, user, f'/v2.1/fairness/users{own}')


KINDS: Mapping[str, Request] = {
    'authentication, admin': cheapest_request('compute', 'admin'),
    'authentication, alice': cheapest_request('compute', 'alice'),
    'authentication, admin, process 2': cheapest_request(AFRESH, 'admin'),
    'authentication, alice, process 2': cheapest_request(AFRESH, 'alice'),
    'servers, admin': Request(
        'compute', 'admin', '/v2.1/servers?all_tenants=1'
    ),
    'servers, alice': Request('compute', 'alice', '/v2.1/servers'),
    'users, admin, kept': users_request('compute', 'admin'),
    'users, alice, kept': users_request('compute', 'alice'),
    'users, admin, afresh': users_request(AFRESH, 'admin'),
    'users, alice, afresh': users_request(AFRESH, 'alice'),
}

COMPARED: Mapping[str, Request] = {
    'GET /': Request('', '', '/'),
    'GET /v2.1/nothing': cheapest_request('', 'alice'),
    'GET /v2.1/servers': Request('', 'alice', '/v2.1/servers'),
}


class Client:
    """Sends requests, one after the other."""

    def __init__(self, cloud: cloud_module.Cloud) -> None:
        self._tokens = {'admin': cloud.admin.token} | {
            name: session.token for name, session in cloud.users.items()
        }
        self._connections: dict[str, http.client.HTTPConnection] = {
            service: rest.Connection(cloud.controller, places.PORTS[service])
            for service in ('compute', *places.MORE_APIS)
        }

    def ask(self, request: Request) -> tuple[float, bytes]:
        """Send one and read all of the answer.

        :returns: milliseconds, and the body.
        :raises RuntimeError: if the answer is not what is expected.
        """
        headers = {'OpenStack-API-Version': rest.VERSIONS}
        if request.user:
            headers['X-Auth-Token'] = self._tokens[request.user]
        connection = self._connections[request.service]
        began_s = time.perf_counter()
        connection.request('GET', request.path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        taken_s = time.perf_counter() - began_s
        if answer.status != request.status:
            raise RuntimeError(f'{request}: {answer.status} {body!r}')
        return taken_s * 1e3, body

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()


@contextlib.contextmanager
def servers(cloud: cloud_module.Cloud, image: str) -> Iterator[None]:
    """Have the servers of the tests run."""
    made = [
        cloud.boot(user, name, host, image)
        for name, (user, host) in fixtures.SERVERS.items()
    ]
    try:
        for server in made:
            cloud.await_status(server)
        yield
    finally:
        cloud.delete(made)
