# SPDX-License-Identifier: Apache-2.0

"""The OpenAPI document, and the interface against it."""

import jsonschema
import pytest

from api_ext import routes
from api_ext.schemas import action
from tests.unit.api_ext import fake_cloud
from tests.unit.api_ext import fake_requests


@pytest.fixture
def document(cloud):
    answer = cloud.ask('alice', 'GET', '/fairness/openapi.json')
    assert answer.status_code == 200
    return answer.json


def test_the_openapi_document_names_every_url_and_method(document):
    named = {
        (path, method.upper())
        for path, item in document['paths'].items()
        for method in item
        if method != 'parameters'
    }
    assert named == {(route.path, route.method) for route in routes.ROUTES}


def test_the_openapi_document_has_the_schemas_of_the_route_table(document):
    operation = document['paths']['/fairness/{host}/action']['post']
    body = operation['requestBody']['content']['application/json']['schema']
    assert body == action.REQUEST
    assert set(body['properties']) == set(action.METHODS)


def test_every_schema_is_valid_json_schema():
    for route in routes.ROUTES:
        for schema in (route.query, route.answer, route.body or True):
            jsonschema.Draft202012Validator.check_schema(schema)


def test_openapi_describes_all_url_parameters_and_faults(document):
    for path, item in document['paths'].items():
        places = {part['name'] for part in item.get('parameters', ())}
        assert places == {
            segment[1:-1]
            for segment in path.split('/')
            if segment.startswith('{')
        }
    for route in routes.ROUTES:
        known = document['components']['responses']
        assert {str(code) for code in route.faults} <= set(known)


BODIES = {
    'actOnHost': {'set-metric': {'name': 'TrialMetric'}},
    'actOnRequest': {'cancel': None},
    'setShare': {'account': '1' * 32, 'share': 2.0},
    'setLimits': {'account': '1' * 32, 'time_limit': 3600.0},
    'setTarget': {'target': 1},
    'actOnPartitionHost': {'move': None},
    'createPlan': {'empty': 'h1'},
    'actOnPlan': {'approve': None},
    'createGroup': {
        'name': 'web',
        'rate': 70.0,
        'project_id': fake_cloud.RED,
    },
    'setGroup': {
        'name': 'batch',
        'count': 2,
        'project_id': fake_cloud.RED,
    },
}

URLS = {
    'listPlugins': '/fairness',
    'showDocument': '/fairness/openapi.json',
    'actOnHost': '/fairness/all/action',
    'listHosts': '/fairness/hosts?limit=1',
    'showHost': '/fairness/hosts/cmp1',
    'previewHost': '/fairness/hosts/cmp1/preview',
    'listUsers': '/fairness/users?limit=1',
    'showUser': f'/fairness/users/{fake_cloud.ALICE}',
    'listProjects': '/fairness/projects?limit=1',
    'showProject': f'/fairness/projects/{fake_cloud.RED}',
    'showInstance': f'/fairness/instances/{fake_cloud.ALICES}',
    'listRequests': '/fairness/requests?limit=1&all_projects=true',
    'showRequest': f'/fairness/requests/{fake_requests.REDS}',
    'actOnRequest': f'/fairness/requests/{fake_requests.REDS}/action',
    'listShares': '/fairness/shares?limit=1&all_projects=true',
    'setShare': '/fairness/shares',
    'listLimits': '/fairness/limits?limit=1&all_projects=true',
    'setLimits': '/fairness/limits',
    'previewOrder': '/fairness/orders/multifactor/preview?parameters=age=2',
    'listGroups': '/fairness/groups?limit=1&all_projects=true',
    'createGroup': '/fairness/groups',
    'setGroup': '/fairness/groups',
    'listPrices': '/fairness/prices?limit=1',
    'listPricesOfHost': '/fairness/hosts/cmp1/prices?limit=1',
    'listPreemptions': '/fairness/preemptions?limit=1&all_projects=true',
    'showPreemption': f'/fairness/preemptions/{fake_requests.LENT}',
    'showPartition': '/fairness/partition',
    'setTarget': '/fairness/partition',
    'listPartitionHosts': '/fairness/partition/hosts?limit=1',
    'showPartitionHost': '/fairness/partition/hosts/h1',
    'actOnPartitionHost': '/fairness/partition/hosts/h1/action',
    'listPlans': '/fairness/plans?limit=1',
    'createPlan': '/fairness/plans',
    'showPlan': f'/fairness/plans/{fake_requests.PLANS[0]}',
    'actOnPlan': f'/fairness/plans/{fake_requests.PLANS[0]}/action',
    'showCapacity': '/fairness/capacity',
    'showStatus': '/fairness/status',
    'listWaits': '/fairness/waits?limit=1&all_projects=true',
}


@pytest.mark.parametrize('who', ['admin', 'alice'])
@pytest.mark.parametrize('is_partial', [False, True])
@pytest.mark.parametrize('route', routes.ROUTES, ids=lambda route: route.name)
def test_every_answer_matches_its_openapi_schema(
    cloud, route, is_partial, who
):
    cloud.client.silent = {'cmp2'} if is_partial else set()
    body = BODIES.get(route.name)
    answer = cloud.ask(who, route.method, URLS[route.name], body)
    if who == 'admin':
        assert answer.status_code == route.status
    if answer.status_code == route.status:
        jsonschema.Draft202012Validator(route.answer).validate(answer.json)
    else:
        assert answer.status_code in route.faults
