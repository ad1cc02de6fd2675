# SPDX-License-Identifier: Apache-2.0

"""Creation of the OpenAPI document from the table of routes."""

from collections.abc import Mapping
from collections.abc import Sequence
import http
import re
import typing
from typing import Any

from api_ext import faults
from api_ext.schemas import fault
from api_ext.schemas import patterns
from nova_fairness import version

if typing.TYPE_CHECKING:
    from api_ext import routes

JSON = 'application/json'

_PLACES = {
    'host': 'Name of a host.',
    'id': 'ID of a user or project, or "me" for the owner of the token.',
    'order': 'Name of an order of the queue.',
    'uuid': 'UUID of an instance, a request or a preemption.',
}


def create_document(table: Sequence['routes.Route']) -> Mapping[str, Any]:
    """Create the OpenAPI 3.1 document of routes."""
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        operations = paths.setdefault(route.path, _path_parameters(route.path))
        operations[route.method.lower()] = _operation(route)
    return {
        'openapi': '3.1.0',
        'info': {
            'title': 'nova-fairness',
            'summary': 'Fair sharing of an OpenStack cloud while it runs',
            'version': version.release(),
            'license': {'name': 'Apache-2.0', 'identifier': 'Apache-2.0'},
        },
        'servers': [{'url': '/v2.1'}],
        'security': [{'token': []}],
        'paths': paths,
        'components': {
            'securitySchemes': {
                'token': {
                    'type': 'apiKey',
                    'in': 'header',
                    'name': 'X-Auth-Token',
                }
            },
            'responses': {
                str(code): _fault(kind)
                for code, kind in faults.FAULTS_BY_CODE.items()
            },
        },
    }


def _path_parameters(path: str) -> dict[str, Any]:
    parameters = [
        {
            'name': name,
            'in': 'path',
            'required': True,
            'description': _PLACES[name],
            'schema': {
                'type': 'string',
                'pattern': patterns.BY_PLACEHOLDER[name],
            },
        }
        for name in re.findall(r'{(\w+)}', path)
    ]
    return {'parameters': parameters} if parameters else {}


def _operation(route: 'routes.Route') -> dict[str, Any]:
    operation: dict[str, Any] = {
        'operationId': route.name,
        'summary': route.summary,
        'parameters': [
            {'name': name, 'in': 'query', 'required': False, 'schema': schema}
            for name, schema in route.query['properties'].items()
        ],
        'responses': {
            str(route.status): {
                'description': http.HTTPStatus(route.status).phrase,
                'content': {JSON: {'schema': route.answer}},
            },
            **{
                str(code): {'$ref': f'#/components/responses/{code}'}
                for code in sorted(route.faults)
            },
        },
    }
    if route.body is not None:
        operation['requestBody'] = {
            'required': True,
            'content': {JSON: {'schema': route.body}},
        }
    return operation


def _fault(kind: type[faults.Fault]) -> dict[str, Any]:
    described: dict[str, Any] = {'description': (kind.__doc__ or '').strip()}
    if kind is not faults.Unauthorized:
        described['content'] = {
            JSON: {'schema': fault.body_schema(kind.code, kind.key)}
        }
    # Keystone's middleware, before this filter, answers requests without a
    # token.
    return described
