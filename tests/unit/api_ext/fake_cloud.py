# SPDX-License-Identifier: Apache-2.0

"""What is around the filter: Keystone's middleware and the rest of Nova."""

from collections.abc import Callable
import json
from typing import Any

from oslo_config import cfg
from oslo_context import context
import webob

from api_ext import agents
from api_ext import application
from api_ext import enforcement
from tests.unit.api_ext import fake_agents
from tests.unit.api_ext import fake_requests

ALICE = 'a' * 32
BOB = 'b' * 32
CAROL = 'c' * 32
RED = '1' * 32
BLUE = '2' * 32
ALICES = '11111111-1111-4111-8111-111111111111'
BOBS = '22222222-2222-4222-8222-222222222222'
CAROLS = '33333333-3333-4333-8333-333333333333'
MEMBER = ['member', 'reader']

TOKENS: dict[str, dict[str, Any]] = {
    'admin': {
        'user_id': 'd' * 32,
        'project_id': '9' * 32,
        'roles': ['admin', *MEMBER],
    },
    'auditor': {
        'user_id': 'e' * 32,
        'system_scope': 'all',
        'roles': ['reader'],
    },
    'alice': {'user_id': ALICE, 'project_id': RED, 'roles': MEMBER},
    'bob': {'user_id': BOB, 'project_id': RED, 'roles': MEMBER},
    'carol': {'user_id': CAROL, 'project_id': BLUE, 'roles': MEMBER},
    'nobody': {'user_id': 'f' * 32, 'project_id': BLUE, 'roles': []},
}


def client() -> fake_agents.FakeClient:
    """Two hosts, three users, two projects."""
    one = fake_agents.FakeAgent(
        'cmp1',
        [
            fake_agents.FakeVm(ALICES, ALICE, RED, 0.5),
            fake_agents.FakeVm(BOBS, BOB, RED, -0.25),
        ],
        peers=('cmp2',),
        heaviness_elsewhere={CAROL: 1.0},
    )
    two = fake_agents.FakeAgent(
        'cmp2',
        [fake_agents.FakeVm(CAROLS, CAROL, BLUE, 1.0)],
        peers=('cmp1',),
        heaviness_elsewhere={ALICE: 0.5, BOB: -0.25},
    )
    one.metrics['TrialMetric'] = 'An experiment.'
    return fake_agents.FakeClient(one, two)


class FakeCloud:
    """A WSGI application with the filter's core in it.

    The token is the name of somebody in :data:`TOKENS`.
    """

    def __init__(
        self,
        tmp_path: Any,
        *,
        of_client: fake_agents.FakeClient | None = None,
        **services: Any,
    ) -> None:
        self.client = of_client or client()
        limits = agents.CallLimits(
            kept_s=services.pop('kept_s', 0.0),
            silent_s=services.pop('silent_s', 0.0),
        )
        self.agents = agents.Agents(self.client, limits)
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        self.enforcement = enforcement.Enforcement(conf)
        services.setdefault('connect', lambda: self.agents)
        self.requests = fake_requests.FakeRequests()
        services.setdefault('connect_requests', lambda: self.requests.client)
        self.own = application.Application(
            application.Services(
                enforcement=self.enforcement,
                wall=lambda: fake_agents.NOW_S,
                **services,
            )
        )

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Any:
        request = webob.Request(environ)
        path = environ['PATH_INFO']
        if path.startswith('/v2.1/'):
            environ['SCRIPT_NAME'] = '/v2.1'
            environ['PATH_INFO'] = path.removeprefix('/v2.1')
        if not application.is_fairness_request(environ):
            return webob.Response('Nova itself')(environ, start_response)
        who = TOKENS.get(request.headers.get('X-Auth-Token', ''))
        of = who and context.RequestContext(overwrite=False, **who)
        return self.own.answer(request, of)(environ, start_response)

    def ask(
        self,
        who: str | None,
        method: str,
        url: str,
        body: Any = None,
        **headers: str,
    ) -> webob.Response:
        """Ask as somebody; a body that is no bytes is written as JSON."""
        request = webob.Request.blank(f'/v2.1{url}', method=method)
        request.headers.update(
            {name.replace('_', '-'): text for name, text in headers.items()}
        )
        if who is not None:
            request.headers['X-Auth-Token'] = who
        if body is not None:
            is_raw = isinstance(body, bytes)
            request.body = body if is_raw else json.dumps(body).encode()
            request.headers.setdefault('Content-Type', 'application/json')
        return request.get_response(self)
