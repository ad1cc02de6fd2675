# SPDX-License-Identifier: Apache-2.0

"""Table of routes with their permissions, schemas and handlers.

The application serves this table, and the OpenAPI document is created from it.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

from api_ext import http_request
from api_ext import openapi
from api_ext.handlers import action as action_handler
from api_ext.handlers import capacity as capacity_handler
from api_ext.handlers import dry_run as dry_run_handler
from api_ext.handlers import group as group_handler
from api_ext.handlers import host as host_handler
from api_ext.handlers import instance as instance_handler
from api_ext.handlers import limit as limit_handler
from api_ext.handlers import partition as partition_handler
from api_ext.handlers import plan as plan_handler
from api_ext.handlers import plugin as plugin_handler
from api_ext.handlers import preemption as preemption_handler
from api_ext.handlers import price as price_handler
from api_ext.handlers import project as project_handler
from api_ext.handlers import request as request_handler
from api_ext.handlers import share as share_handler
from api_ext.handlers import status as status_handler
from api_ext.handlers import user as user_handler
from api_ext.handlers import wait as wait_handler
from api_ext.policies import action as action_policies
from api_ext.policies import capacity as capacity_policies
from api_ext.policies import document as document_policies
from api_ext.policies import host as host_policies
from api_ext.policies import order as order_policies
from api_ext.policies import partition as partition_policies
from api_ext.policies import plan as plan_policies
from api_ext.policies import plugin as plugin_policies
from api_ext.policies import price as price_policies
from api_ext.policies import project as project_policies
from api_ext.policies import status as status_policies
from api_ext.policies import user as user_policies
from api_ext.schemas import action as action_schemas
from api_ext.schemas import capacity as capacity_schemas
from api_ext.schemas import document as document_schemas
from api_ext.schemas import dry_run as dry_run_schemas
from api_ext.schemas import group as group_schemas
from api_ext.schemas import host as host_schemas
from api_ext.schemas import instance as instance_schemas
from api_ext.schemas import limit as limit_schemas
from api_ext.schemas import order as order_schemas
from api_ext.schemas import owner as owner_schemas
from api_ext.schemas import partition as partition_schemas
from api_ext.schemas import plan as plan_schemas
from api_ext.schemas import plugin as plugin_schemas
from api_ext.schemas import preemption as preemption_schemas
from api_ext.schemas import price as price_schemas
from api_ext.schemas import request as request_schemas
from api_ext.schemas import share as share_schemas
from api_ext.schemas import status as status_schemas
from api_ext.schemas import url
from api_ext.schemas import wait as wait_schemas

_ALWAYS = (400, 401, 403, 503)


@dataclasses.dataclass(frozen=True)
class Route:
    """One HTTP method of one path.

    :ivar path: path with placeholders, such as ``/fairness/hosts/{host}``.
    :ivar handler: handler of the route.
    :ivar answer: schema of the response body.
    :ivar rules: names of policy rules; one of them must permit the request;
        empty if the handler checks the policy.
    :ivar rule_of: returns the name of the rule for a body.
    :ivar faults: HTTP status codes of possible errors.
    """

    name: str
    method: str
    path: str
    summary: str
    handler: Callable[[http_request.CallerRequest], http_request.Answer]
    answer: Mapping[str, Any]
    rules: tuple[str, ...] = ()
    query: Mapping[str, Any] = dataclasses.field(
        default_factory=lambda: url.NOTHING
    )
    body: Mapping[str, Any] | None = None
    status: int = 200
    faults: tuple[int, ...] = _ALWAYS
    rule_of: Callable[[Any], str] | None = None


def _document(_: http_request.CallerRequest) -> http_request.Answer:
    return openapi.create_document(ROUTES)


ROUTES: Sequence[Route] = (
    Route(
        name='listPlugins',
        method='GET',
        path='/fairness',
        summary='List the installed metrics and policies',
        handler=plugin_handler.index,
        answer=plugin_schemas.LIST,
        rules=(plugin_policies.LIST,),
    ),
    Route(
        name='showDocument',
        method='GET',
        path='/fairness/openapi.json',
        summary='Show this document',
        handler=_document,
        answer=document_schemas.SHOW,
        rules=(document_policies.SHOW,),
        faults=(400, 401, 403),
    ),
    Route(
        name='actOnHost',
        method='POST',
        path='/fairness/{host}/action',
        summary='Execute an action on a host, or on all hosts',
        handler=action_handler.perform,
        answer=action_schemas.ANSWER,
        rules=action_policies.ANY,
        rule_of=action_policies.rule_for_body,
        body=action_schemas.REQUEST,
        status=202,
        faults=(*_ALWAYS, 404, 409, 413, 415),
    ),
    Route(
        name='listHosts',
        method='GET',
        path='/fairness/hosts',
        summary='List the hosts that have an agent',
        handler=host_handler.index,
        answer=host_schemas.LIST,
        rules=(host_policies.LIST,),
        query=host_schemas.QUERY,
    ),
    Route(
        name='showHost',
        method='GET',
        path='/fairness/hosts/{host}',
        summary='Show the state of the agent of a host and its view of others',
        handler=host_handler.show,
        answer=host_schemas.SHOW,
        rules=(host_policies.SHOW,),
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='previewHost',
        method='GET',
        path='/fairness/hosts/{host}/preview',
        summary='Show which users would gain or lose if a host enforced '
        'weights',
        handler=host_handler.preview,
        answer=host_schemas.PREVIEW,
        rules=(host_policies.PREVIEW,),
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='listUsers',
        method='GET',
        path='/fairness/users',
        summary='List the heaviness of users',
        handler=user_handler.index,
        answer=owner_schemas.USER_LIST,
        rules=(user_policies.LIST,),
        query=owner_schemas.QUERY,
    ),
    Route(
        name='showUser',
        method='GET',
        path='/fairness/users/{id}',
        summary='Show the heaviness of a user',
        handler=user_handler.show,
        answer=owner_schemas.USER_SHOW,
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='listProjects',
        method='GET',
        path='/fairness/projects',
        summary='List the heaviness of projects',
        handler=project_handler.index,
        answer=owner_schemas.PROJECT_LIST,
        rules=(project_policies.LIST,),
        query=owner_schemas.QUERY,
    ),
    Route(
        name='showProject',
        method='GET',
        path='/fairness/projects/{id}',
        summary='Show the heaviness of a project',
        handler=project_handler.show,
        answer=owner_schemas.PROJECT_SHOW,
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='showInstance',
        method='GET',
        path='/fairness/instances/{uuid}',
        summary='Show the usage and weights of an instance, with advice',
        handler=instance_handler.show,
        answer=instance_schemas.SHOW,
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='listRequests',
        method='GET',
        path='/fairness/requests',
        summary='List requests, the oldest first; running and ended ones on '
        'demand',
        handler=request_handler.index,
        answer=request_schemas.LIST,
        query=request_schemas.QUERY,
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='showRequest',
        method='GET',
        path='/fairness/requests/{uuid}',
        summary='Show a request, its state and the reason for it',
        handler=request_handler.show,
        answer=request_schemas.SHOW,
        query=request_schemas.SHOW_QUERY,
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='actOnRequest',
        method='POST',
        path='/fairness/requests/{uuid}/action',
        summary='Cancel, start, hold or extend a request',
        handler=request_handler.perform,
        answer=request_schemas.SHOW,
        body=request_schemas.ACTION,
        status=202,
        faults=(*_ALWAYS, 404, 409, 413, 415),
    ),
    Route(
        name='listWaits',
        method='GET',
        path='/fairness/waits',
        summary='List waits of requests, by project, flavor or reason',
        handler=wait_handler.index,
        answer=wait_schemas.LIST,
        query=wait_schemas.QUERY,
        faults=_ALWAYS,
    ),
    Route(
        name='listShares',
        method='GET',
        path='/fairness/shares',
        summary='List shares of accounts and their use',
        handler=share_handler.index,
        answer=share_schemas.LIST,
        query=share_schemas.QUERY,
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='setShare',
        method='PUT',
        path='/fairness/shares',
        summary='Set or unset the share of an account',
        handler=share_handler.set_share,
        answer=share_schemas.DONE,
        body=share_schemas.SET,
        faults=(*_ALWAYS, 404, 409, 413, 415),
    ),
    Route(
        name='listLimits',
        method='GET',
        path='/fairness/limits',
        summary='List limits of accounts on waits, run time and amounts',
        handler=limit_handler.index,
        answer=limit_schemas.LIST,
        query=limit_schemas.QUERY,
        faults=_ALWAYS,
    ),
    Route(
        name='setLimits',
        method='PUT',
        path='/fairness/limits',
        summary='Set or unset limits of an account',
        handler=limit_handler.set_limits,
        answer=limit_schemas.DONE,
        body=limit_schemas.SET,
        faults=(*_ALWAYS, 404, 409, 413, 415),
    ),
    Route(
        name='previewOrder',
        method='GET',
        path='/fairness/orders/{order}/preview',
        summary='Show which requests would start next with another order',
        handler=dry_run_handler.preview_order,
        answer=dry_run_schemas.SHOW,
        rules=(order_policies.PREVIEW,),
        query=order_schemas.QUERY,
        faults=(*_ALWAYS, 409),
    ),
    Route(
        name='listGroups',
        method='GET',
        path='/fairness/groups',
        summary='List groups of servers with spending rates',
        handler=group_handler.index,
        answer=group_schemas.LIST,
        query=group_schemas.QUERY,
        faults=_ALWAYS,
    ),
    Route(
        name='createGroup',
        method='POST',
        path='/fairness/groups',
        summary='Create a group of servers with a spending rate',
        handler=group_handler.create,
        answer=group_schemas.SHOW,
        body=group_schemas.CREATE,
        faults=(*_ALWAYS, 409, 413, 415),
    ),
    Route(
        name='setGroup',
        method='PUT',
        path='/fairness/groups',
        summary='Change the spending rate of a group, or delete the group',
        handler=group_handler.set_group,
        answer=group_schemas.SHOW,
        body=group_schemas.SET,
        faults=(*_ALWAYS, 404, 409, 413, 415),
    ),
    Route(
        name='listPrices',
        method='GET',
        path='/fairness/prices',
        summary='List the price of each host: the spending rate of its '
        'servers',
        handler=price_handler.index,
        answer=price_schemas.LIST,
        query=price_schemas.QUERY,
        faults=_ALWAYS,
    ),
    Route(
        name='listPricesOfHost',
        method='GET',
        path='/fairness/hosts/{host}/prices',
        summary='List the past prices of a host, the newest first',
        handler=price_handler.past_prices,
        answer=price_schemas.LIST,
        rules=(price_policies.HISTORY,),
        query=price_schemas.QUERY,
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='listPreemptions',
        method='GET',
        path='/fairness/preemptions',
        summary='List preemptions, the newest first',
        handler=preemption_handler.index,
        answer=preemption_schemas.LIST,
        query=preemption_schemas.QUERY,
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='showPreemption',
        method='GET',
        path='/fairness/preemptions/{uuid}',
        summary='Show a preemption: its victim, its preemptor and its outcome',
        handler=preemption_handler.show,
        answer=preemption_schemas.SHOW,
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='showPartition',
        method='GET',
        path='/fairness/partition',
        summary='Show demand and hosts of batch system and cloud',
        handler=partition_handler.show_border,
        answer=partition_schemas.SHOW_BORDER,
        rules=(partition_policies.LIST,),
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='setTarget',
        method='PUT',
        path='/fairness/partition',
        summary='Set the number of hosts that the cloud is to have',
        handler=partition_handler.set_target,
        answer=partition_schemas.TARGET,
        rules=(partition_policies.TARGET,),
        body=partition_schemas.TARGET,
        faults=(*_ALWAYS, 404, 409, 413, 415),
    ),
    Route(
        name='listPartitionHosts',
        method='GET',
        path='/fairness/partition/hosts',
        summary='List hosts that move between batch system and cloud',
        handler=partition_handler.index,
        answer=partition_schemas.LIST,
        rules=(partition_policies.LIST,),
        query=partition_schemas.QUERY,
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='showPartitionHost',
        method='GET',
        path='/fairness/partition/hosts/{host}',
        summary='Show a host that moves between batch system and cloud',
        handler=partition_handler.show,
        answer=partition_schemas.SHOW,
        rules=(partition_policies.SHOW,),
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='actOnPartitionHost',
        method='POST',
        path='/fairness/partition/hosts/{host}/action',
        summary='Move a host between batch system and cloud, or cancel a move',
        handler=partition_handler.perform,
        answer=partition_schemas.SHOW,
        body=partition_schemas.ACTION,
        status=202,
        faults=(*_ALWAYS, 404, 409, 413, 415),
    ),
    Route(
        name='listPlans',
        method='GET',
        path='/fairness/plans',
        summary='List migration plans, the newest first',
        handler=plan_handler.index,
        answer=plan_schemas.LIST,
        rules=(plan_policies.LIST,),
        query=plan_schemas.QUERY,
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='createPlan',
        method='POST',
        path='/fairness/plans',
        summary='Propose a migration plan that empties a host',
        handler=plan_handler.create,
        answer=plan_schemas.SHOW,
        rules=(plan_policies.CREATE,),
        body=plan_schemas.CREATE,
        status=202,
        faults=(*_ALWAYS, 404, 409, 413, 415),
    ),
    Route(
        name='showPlan',
        method='GET',
        path='/fairness/plans/{uuid}',
        summary='Show a migration plan with expected and measured results',
        handler=plan_handler.show,
        answer=plan_schemas.SHOW,
        rules=(plan_policies.SHOW,),
        faults=(*_ALWAYS, 404),
    ),
    Route(
        name='actOnPlan',
        method='POST',
        path='/fairness/plans/{uuid}/action',
        summary='Approve or stop a migration plan',
        handler=plan_handler.perform,
        answer=plan_schemas.SHOW,
        body=plan_schemas.ACTION,
        status=202,
        faults=(*_ALWAYS, 404, 409, 413, 415),
    ),
    Route(
        name='showCapacity',
        method='GET',
        path='/fairness/capacity',
        summary='Show the use of the cloud, and the servers that could start',
        handler=capacity_handler.show,
        answer=capacity_schemas.SHOW,
        rules=(capacity_policies.SHOW,),
    ),
    Route(
        name='showStatus',
        method='GET',
        path='/fairness/status',
        summary='Show the leader, waiting requests, evictions and warnings',
        handler=status_handler.show,
        answer=status_schemas.SHOW,
        rules=(status_policies.SHOW,),
    ),
)


@dataclasses.dataclass(frozen=True)
class PathRoutes:
    """The routes of one path.

    :ivar by_method: routes by HTTP method.
    :ivar names: values of the placeholders of each route, by the name of the
        route.
    """

    by_method: Mapping[str, Route]
    names: Mapping[str, Mapping[str, str]]


def find_routes(path: str) -> PathRoutes:
    """Find the routes of a path.

    :param path: decoded path that begins with ``/fairness``; one slash at its
        end is ignored.
    """
    segments = path.removesuffix('/').split('/')
    by_method: dict[str, Route] = {}
    names: dict[str, Mapping[str, str]] = {}
    for route in ROUTES:
        taken = _placeholder_values(route.path.split('/'), segments)
        if taken is not None and route.method not in by_method:
            by_method[route.method] = route
            names[route.name] = taken
    return PathRoutes(by_method, names)


def _placeholder_values(
    pattern: Sequence[str], segments: Sequence[str]
) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    taken = {}
    for expected, segment in zip(pattern, segments, strict=True):
        if expected.startswith('{'):
            taken[expected[1:-1]] = segment
        elif expected != segment:
            return None
    return taken
