# SPDX-License-Identifier: Apache-2.0

"""Application that answers requests below ``/fairness``; it uses webob, but no
module of Nova.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import json
import logging
import re
import time
from typing import Any

import webob

from api_ext import agents as agents_module
from api_ext import enforcement
from api_ext import faults
from api_ext import http_request
from api_ext import microversion
from api_ext import openapi
from api_ext import routes
from api_ext import validation
from api_ext.schemas import patterns
from nova_fairness.rpc import requests as requests_module
from nova_fairness.runtime import safe_log

LOG = logging.getLogger(__name__)

LARGEST_BODY = 64 * 1024
"""Largest size of a request body, bytes."""

ME = 'me'

_FORM = 'application/x-www-form-urlencoded'
"""Content-Type that curl sends by default."""

_ACTION = '/action'
"""End of the paths that also accept JSON with the Content-Type
:data:`_FORM`.
"""

_OURS = re.compile(
    r'(?:/(?P<project>[0-9a-f-]+))?(?P<path>/fairness(?:/.*)?)', re.DOTALL
)


def is_fairness_request(environ: Mapping[str, Any]) -> bool:
    """Return whether the path of a WSGI request belongs to this API."""
    return _split(environ) is not None


def _split(environ: Mapping[str, Any]) -> re.Match[str] | None:
    return _OURS.fullmatch(environ.get('PATH_INFO', ''))


@dataclasses.dataclass(frozen=True)
class Services:
    """Dependencies of the handlers.

    :ivar enforcement: checks policy rules.
    :ivar connect: returns the client of the agents, one per process.
    :ivar connect_requests: returns the client of the cluster service.
    :ivar max_limit: largest number of items per page.
    :ivar locate: finds instances in Nova; ``None`` without Nova.
    :ivar wall: returns the seconds since the Unix epoch.
    """

    enforcement: enforcement.Enforcement
    connect: Callable[[], agents_module.Agents]
    connect_requests: Callable[[], requests_module.RequestsClient]
    max_limit: int = 1000
    locate: http_request.Locate | None = None
    wall: Callable[[], float] = time.time


class Application:
    """WSGI-independent application of the fairness API.

    :param services: dependencies of the handlers.
    """

    def __init__(self, services: Services) -> None:
        safe_log.install()
        self._services = services
        self._queries = {
            route.name: validation.SchemaValidator(route.query)
            for route in routes.ROUTES
        }
        self._bodies = {
            route.name: validation.SchemaValidator(route.body)
            for route in routes.ROUTES
            if route.body is not None
        }

    def answer(self, request: webob.Request, context: Any) -> webob.Response:
        """Return the response to a request of this API.

        :param context: context of oslo.context with the caller; ``None`` if
            the caller is unknown.
        """
        headers: dict[str, str] = {}
        try:
            headers = microversion.check_versions(request.headers)
            status, body = self._answer(request, context)
        except faults.Fault as fault:
            LOG.info(
                '%s %r: %s',
                request.method,
                request.environ.get('PATH_INFO'),
                fault,
            )
            status, body = fault.code, fault.body()
            headers |= fault.headers
        response = webob.Response(
            status=status,
            body=json.dumps(body).encode('ascii'),
            content_type=openapi.JSON,
        )
        response.headers.update(headers)
        return response

    def _answer(
        self, request: webob.Request, context: Any
    ) -> tuple[int, Mapping[str, Any]]:
        caller = self._caller(context)
        route, names = _route(request, caller)
        if route.rules:
            self._require(caller, route, request)
        caller_request = http_request.CallerRequest(
            caller=caller,
            names=_path_values(names, route, caller),
            query=validation.parse_query(
                request.query_string, self._queries[route.name]
            ),
            body=self._body(request, route),
            url=request.path_url,
            connect=self._services.connect,
            max_limit=self._services.max_limit,
            now_s=self._services.wall(),
            connect_requests=self._services.connect_requests,
            locate=self._services.locate,
        )
        return route.status, route.handler(caller_request)

    def _require(
        self,
        caller: enforcement.Caller,
        route: routes.Route,
        request: webob.Request,
    ) -> None:
        """Check that one of the rules of a route permits the request.

        A refusal names the rule of the request, if its body can be parsed.

        :raises Forbidden: if no rule permits it.
        """
        if any(caller.is_allowed(rule) for rule in route.rules):
            return
        rules: tuple[str, ...] = route.rules[:1]
        if route.rule_of is not None:
            try:
                rules = (route.rule_of(self._body(request, route)),)
            except faults.Fault:
                raise faults.Forbidden(
                    "Policy doesn't allow any of these actions to be "
                    'performed.'
                ) from None
        caller.require(*rules)

    def _caller(self, context: Any) -> enforcement.Caller:
        if context is None:
            raise faults.Unauthorized('The request has no valid token.')
        return enforcement.Caller(context, self._services.enforcement)

    def _body(self, request: webob.Request, route: routes.Route) -> Any:
        if route.body is None:
            return None
        types = {openapi.JSON}
        if route.path.endswith(_ACTION):
            types.add(_FORM)
        body = validation.parse_json(_read(request, types))
        self._bodies[route.name].check(body, 'body')
        return body


def _route(
    request: webob.Request, caller: enforcement.Caller
) -> tuple[routes.Route, Mapping[str, str]]:
    """Find the route of a request.

    :returns: the route, and the values of the placeholders of its path.
    :raises Fault: if the path, or the method for this path, does not exist.
    """
    match = _split(request.environ)
    if match is None:
        raise faults.NotFound('The resource could not be found.')
    project = match['project']
    if project is not None and project != caller.project_id:
        raise faults.BadRequest(
            f"Malformed request URL: URL's project_id '{project[:64]}' "
            f"doesn't match Context's project_id '{caller.project_id}'"
        )
    try:
        path = match['path'].encode('latin-1').decode('utf-8')
    except ValueError as error:
        raise faults.BadRequest('The URL is not in UTF-8.') from error
    found = routes.find_routes(path)
    if not found.by_method:
        raise faults.NotFound('The resource could not be found.')
    method = 'GET' if request.method == 'HEAD' else request.method
    route = found.by_method.get(method)
    if route is None:
        raise faults.BadMethod(
            f'Method {request.method[:20]} is not allowed for this path.',
            {'Allow': ', '.join(sorted(found.by_method))},
        )
    return route, found.names[route.name]


def _path_values(
    given: Mapping[str, str], route: routes.Route, caller: enforcement.Caller
) -> Mapping[str, str]:
    """Check the values in the path, and replace ``me`` by the caller's ID."""
    names = {}
    for place, value in given.items():
        name = validation.validated_name(
            place, value, patterns.BY_PLACEHOLDER[place]
        )
        names[place] = name
        if place == 'id' and name == ME:
            names[place] = _own_id(route, caller)
    return names


def _own_id(route: routes.Route, caller: enforcement.Caller) -> str:
    is_project = '/projects/' in route.path
    own = caller.project_id if is_project else caller.user_id
    if own is None:
        what = 'project' if is_project else 'user'
        raise faults.BadRequest(f'The token has no {what}.')
    return own


def _read(request: webob.Request, types: Collection[str]) -> bytes:
    """Read a body of at most :data:`LARGEST_BODY` bytes.

    :param types: allowed Content-Types.
    :raises TooLarge: if the body is larger.
    :raises BadMediaType: if it has another Content-Type.
    """
    too_large = faults.TooLarge(
        f'The body is larger than {LARGEST_BODY} bytes.'
    )
    if (request.content_length or 0) > LARGEST_BODY:
        raise too_large
    if request.content_type not in types:
        raise faults.BadMediaType(
            f'Content-Type: got {request.content_type[:60]!r}, expected '
            f'{openapi.JSON}'
        )
    if not request.is_body_readable:
        return b''
    text: bytes = request.body_file.read(LARGEST_BODY + 1)
    if len(text) > LARGEST_BODY:
        raise too_large
    return text
