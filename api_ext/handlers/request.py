# SPDX-License-Identifier: Apache-2.0

"""Answers which requests wait, and takes them back or starts them; the shares
by which they wait.
"""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from api_ext import faults
from api_ext import http_request
from api_ext import validation
from api_ext.handlers import host_facts
from api_ext.handlers import service
from api_ext.policies import base
from api_ext.policies import request as policies
from api_ext.schemas import request as schemas

_JUDGE = validation.AnswerReader(
    schemas.ITEM, 'uuid', 'project_id', 'state', 'reason'
)
_CAPACITY = validation.AnswerReader(schemas.CAPACITY_ITEM, 'classes')
_SHARE = validation.AnswerReader(schemas.SHARE, 'name', 'share')
_PREEMPTION = validation.AnswerReader(
    schemas.PREEMPTION, 'uuid', 'project_id', 'for_project'
)
_LIMIT = validation.AnswerReader(schemas.LIMIT, 'account')
_SET_LIMITS = validation.AnswerReader(schemas.SET_LIMITS, 'account')
_SET_SHARE = validation.AnswerReader(schemas.SET_SHARE, 'account', 'share')
_GROUP = validation.AnswerReader(schemas.GROUP, 'id', 'name', 'project_id')
_PRICE = validation.AnswerReader(schemas.PRICE, 'id')


def index(asked: http_request.CallerRequest) -> http_request.Answer:
    """List requests of the own project, or of all."""
    project = _whose(asked, policies.LIST, policies.LIST_ALL)
    marker = asked.query.get('marker')
    if marker is not None:
        _item(asked, marker)
    more: dict[str, Any] = {'audience': host_facts.audience(asked)}
    if (wanted := asked.query.get('preemptible')) is not None:
        more['preemptible'] = wanted == 'true'
    said = service.call_page(asked, 'list_requests', project, **more)
    return service.page(asked, said, 'requests', 'uuid', _JUDGE)


def show(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show one request, if the caller may see it."""
    return {'request': _item(asked, asked.names['uuid'].lower())}


def perform(asked: http_request.CallerRequest) -> http_request.Answer:
    """Take a request back, start it, hold it, or let it run longer."""
    [[action, order]] = asked.body.items()
    uuid = asked.names['uuid'].lower()
    project = _item(asked, uuid)['project_id']
    asked.caller.require(base.name('requests', action), project_id=project)
    asked.log(f'{action} of request {uuid}')
    given: dict[str, Any] = {}
    if action == 'cancel':
        given['by_operator'] = project != asked.caller.project_id
    elif action in ('hold', 'unhold'):
        given['by_operator'] = asked.caller.may(policies.HOLD_AS_OPERATOR)
    given.update(order or {})
    service.call(asked, action, uuid=uuid, **given)
    # What it answers is for nobody in particular.
    return {'request': _item(asked, uuid)}


def capacity(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show how full the cloud is."""
    said = service.call(
        asked,
        'get_capacity',
        project=asked.caller.project_id,
        audience=host_facts.audience(asked),
    )
    return {'capacity': service.checked(said, _CAPACITY)}


def shares(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show the share tree of the own project, or of all."""
    whose = _whose(asked, policies.SHARES, policies.SHARES_ALL)
    said = service.call_page(asked, 'list_shares', whose)
    page = service.page(asked, said, 'shares', 'name', _SHARE)
    return _below(page, 'shares', 'name', whose)


def set_share(asked: http_request.CallerRequest) -> http_request.Answer:
    """Set the share of an account, or take it back."""
    account, share = asked.body['account'], asked.body['share']
    _require_manager(
        asked,
        (policies.SHARES_SET, policies.SHARES_SET_DOMAIN),
        {'share': share},
        lambda: _parent(asked, account),
    )
    said = service.call(asked, 'set_share', account=account, share=share)
    return service.checked(said, _SET_SHARE)


def limits(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show limits of the own project and its users, or of all accounts."""
    whose = _whose(asked, policies.LIMITS, policies.LIMITS_ALL)
    said = service.call_page(asked, 'list_limits', whose)
    page = service.page(asked, said, 'limits', 'account', _LIMIT)
    return _below(page, 'limits', 'account', whose)


def set_limits(asked: http_request.CallerRequest) -> http_request.Answer:
    """Set limits of an account, or take them back."""
    wanted = {
        name: limit for name, limit in asked.body.items() if name != 'account'
    }
    # More than a share: who owns more takes it from others.
    _require_manager(asked, (policies.LIMITS_SET,), wanted, lambda: '')
    account = asked.body['account']
    said = service.call(asked, 'set_limits', account=account, limits=wanted)
    return service.checked(said, _SET_LIMITS)


def groups(asked: http_request.CallerRequest) -> http_request.Answer:
    """List groups with spending rates of the own project, or of all."""
    whose = _whose(asked, policies.GROUPS, policies.GROUPS_ALL)
    said = service.call_page(asked, 'list_groups', whose)
    return service.page(asked, said, 'groups', 'id', _GROUP)


def prices(asked: http_request.CallerRequest) -> http_request.Answer:
    """List the prices of all hosts, which only operators are told by name."""
    project, audience = asked.caller.project_id, 'member'
    asked.caller.require(policies.PRICES, project_id=project)
    if host_facts.sees_hosts(asked):
        audience = 'operator'
    return _prices(asked, None, audience)


def past_prices(asked: http_request.CallerRequest) -> http_request.Answer:
    """List the prices that a host has had."""
    return _prices(asked, asked.names['host'], 'operator')


def _prices(
    asked: http_request.CallerRequest, host: str | None, audience: str
) -> http_request.Answer:
    said = service.call(
        asked,
        'list_prices',
        name=host,
        marker=asked.query.get('marker'),
        limit=service.limit(asked),
        project=asked.caller.project_id,
        audience=audience,
    )
    return service.page(asked, said, 'prices', 'id', _PRICE)


def create_group(asked: http_request.CallerRequest) -> http_request.Answer:
    """Say what is spent for a group that is not there yet."""
    body = asked.body
    said = service.call(
        asked,
        'create_group',
        project=_payer(asked),
        group=body['name'],
        rate=body['rate'],
        count=body.get('count', 1),
    )
    return {'group': service.checked(service.part(said, 'group'), _GROUP)}


def set_group(asked: http_request.CallerRequest) -> http_request.Answer:
    """Change what is spent for a group, or take the group away."""
    body = asked.body
    given = {'project': _payer(asked), 'group': body['name']}
    if body.get('rate', 0) is None:
        service.call(asked, 'delete_group', **given)
        return {'group': None}
    more = {key: body[key] for key in ('rate', 'count') if key in body}
    said = service.call(asked, 'set_group', **given, **more)
    return {'group': service.checked(service.part(said, 'group'), _GROUP)}


def _payer(asked: http_request.CallerRequest) -> str:
    """The project whose group is changed; the caller must be allowed to."""
    project = asked.body.get('project_id') or asked.caller.project_id
    if project is None:
        raise faults.BadRequest('The token has no project.')
    asked.caller.require(policies.GROUPS_SET, project_id=project)
    wanted = {key: asked.body.get(key) for key in ('rate', 'count')}
    asked.log(f'group {asked.body["name"]} of project {project}: {wanted}')
    return str(project)


def preemptions(asked: http_request.CallerRequest) -> http_request.Answer:
    """List when servers of the own project, or for it, had to make room."""
    whose = _whose(asked, policies.PREEMPTIONS, policies.PREEMPTIONS_ALL)
    marker = asked.query.get('marker')
    if marker is not None:
        _preemption(asked, marker)
    said = service.call_page(
        asked, 'list_preemptions', whose, audience=host_facts.audience(asked)
    )
    answer = service.page(asked, said, 'preemptions', 'uuid', _PREEMPTION)
    told = [_named(asked, each) for each in answer['preemptions']]
    return {**answer, 'preemptions': told}


def show_preemption(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show when a server had to make room, if the caller may see it."""
    return {'preemption': _preemption(asked, asked.names['uuid'].lower())}


def _preemption(
    asked: http_request.CallerRequest, uuid: str
) -> dict[str, Any]:
    """One preemption that the caller may see.

    :raises NotFound: for others, as if they were not there.
    """
    audience = host_facts.audience(asked)
    said = service.call(
        asked,
        'get_preemption',
        uuid=uuid,
        project=None if audience == 'operator' else asked.caller.project_id,
        audience=audience,
    )
    item = service.checked(service.part(said, 'preemption'), _PREEMPTION)
    if not any(
        asked.caller.may(policies.PREEMPTIONS_SHOW, project_id=item[whose])
        for whose in ('project_id', 'for_project')
    ):
        raise faults.NotFound(service.UNKNOWN_PREEMPTION.format(uuid))
    return _named(asked, item)


def _named(
    asked: http_request.CallerRequest, item: Mapping[str, Any]
) -> dict[str, Any]:
    """A preemption, without names that the caller may not see."""
    rule, owner = policies.PREEMPTIONS_SHOW, item['project_id']
    if asked.caller.may(rule, project_id=owner):
        return dict(item)
    return {**item, 'server': None, 'project_id': None, 'user_id': None}


def _require_manager(
    asked: http_request.CallerRequest,
    rules: tuple[str, ...],
    wanted: Mapping[str, Any],
    parent: Callable[[], str],
) -> None:
    """See to it that the caller may change an account.

    One of the rules must allow it. The first rule may allow it for all
    accounts, and each rule for accounts right below one of the caller's.

    The manager of an account divides it among those below it, but may not
    change the account's own share.

    :param parent: says which account is above that of no user; '' for none
        that counts.
    """
    account = asked.body['account']
    above, slash, _ = account.partition('/')
    if not asked.caller.may(rules[0]):
        above = above if slash else parent()
        asked.caller.require(*rules, project_id=above, domain_id=above)
    asked.log(f'{dict(wanted)} of account {account}')


def _parent(asked: http_request.CallerRequest, account: str) -> str:
    """The account above another one; '' if there is none."""
    said = service.call(
        asked, 'list_shares', project=account, marker=None, limit=1
    )
    found = [
        service.checked(each, _SHARE)
        for each in service.listed(said, 'shares')
    ]
    return str(found[0].get('parent') or '') if found else ''


def _whose(
    asked: http_request.CallerRequest, own: str, of_all: str
) -> str | None:
    """The project that is asked about; ``None`` for all.

    :param own: rule for the caller's own project.
    :param of_all: rule for all of them.
    """
    project = asked.caller.project_id
    if asked.query.get('all_projects') == 'true':
        asked.caller.require(of_all)
        return None
    if project is None:
        raise faults.BadRequest('The token has no project.')
    asked.caller.require(own, project_id=project)
    return project


def _below(
    page: http_request.Answer, items: str, key: str, whose: str | None
) -> http_request.Answer:
    """A page of accounts without the name of what is above a project.

    Groups are named by operators, and others may be in them.

    :param key: that has the name of an account.
    :param whose: the project that is read; ``None`` for all.
    """
    told = [
        {**each, 'parent': None} if each[key] == whose else each
        for each in page[items]
    ]
    return {**page, items: told}


def _item(asked: http_request.CallerRequest, uuid: str) -> dict[str, Any]:
    """One request that the caller may see.

    :raises NotFound: for others, as if they were not there.
    """
    said = service.call(
        asked, 'get_request', uuid=uuid, audience=host_facts.audience(asked)
    )
    item = service.checked(service.part(said, 'request'), _JUDGE)
    if not asked.caller.may(policies.SHOW, project_id=item['project_id']):
        raise faults.NotFound(service.UNKNOWN.format(uuid))
    return item
