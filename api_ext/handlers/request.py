# SPDX-License-Identifier: Apache-2.0

"""Answers which requests wait, and takes them back or starts them; the shares
by which they wait.
"""

from collections.abc import Callable
from collections.abc import Mapping
import logging
from typing import Any

from api_ext import asked as asked_module
from api_ext import faults
from api_ext import paging
from api_ext import validation
from api_ext.policies import base
from api_ext.policies import request as policies
from api_ext.schemas import request as schemas
from nova_fairness import exception

LOG = logging.getLogger(__name__)

_UNKNOWN = 'Request {} could not be found.'
_JUDGE = validation.Judge(schemas.ITEM)
_CAPACITY = validation.Judge(schemas.CAPACITY_ITEM)
_SHARE = validation.Judge(schemas.SHARE)
_LIMIT = validation.Judge(schemas.LIMIT)
_SET_LIMITS = validation.Judge(schemas.SET_LIMITS)
_SET_SHARE = validation.Judge(schemas.SET_SHARE)


def index(asked: asked_module.Asked) -> asked_module.Answer:
    """List requests of the own project, or of all."""
    project = _whose(asked, policies.LIST, policies.LIST_ALL)
    marker = asked.query.get('marker')
    if marker is not None:
        _item(asked, marker)
    said = _call_page(asked, 'list_requests', project)
    return _page(asked, said, 'requests', 'uuid', _JUDGE)


def show(asked: asked_module.Asked) -> asked_module.Answer:
    """Show one request, to whoever may see it."""
    return {'request': _item(asked, asked.names['uuid'].lower())}


def perform(asked: asked_module.Asked) -> asked_module.Answer:
    """Take a request back, start it, or let it run longer."""
    [[action, order]] = asked.body.items()
    uuid = asked.names['uuid'].lower()
    project = _item(asked, uuid)['project_id']
    asked.caller.require(base.name('requests', action), project_id=project)
    LOG.info(
        '%s of request %s was asked for by user %s in %s',
        action,
        uuid,
        asked.caller.user_id,
        asked.caller.request_id,
    )
    given: dict[str, Any] = {}
    if action == 'cancel':
        given['by_operator'] = project != asked.caller.project_id
    given.update(order or {})
    said = _call(asked, action, uuid=uuid, **given)
    return {'request': _checked(_part(said, 'request'), _JUDGE)}


def capacity(asked: asked_module.Asked) -> asked_module.Answer:
    """Show how full the cloud is."""
    said = _call(asked, 'get_capacity')
    return {'capacity': _checked(said, _CAPACITY)}


def shares(asked: asked_module.Asked) -> asked_module.Answer:
    """Show the share tree of the own project, or of all."""
    whose = _whose(asked, policies.SHARES, policies.SHARES_ALL)
    said = _call_page(asked, 'list_shares', whose)
    return _page(asked, said, 'shares', 'name', _SHARE)


def set_share(asked: asked_module.Asked) -> asked_module.Answer:
    """Set the share of an account, or take it back."""
    account, share = asked.body['account'], asked.body['share']
    _require_manager(
        asked,
        policies.SHARES_SET,
        {'share': share},
        lambda: _parent(asked, account),
    )
    said = _call(asked, 'set_share', account=account, share=share)
    return _checked(said, _SET_SHARE)


def limits(asked: asked_module.Asked) -> asked_module.Answer:
    """Show limits of the own project and its users, or of all accounts."""
    whose = _whose(asked, policies.LIMITS, policies.LIMITS_ALL)
    said = _call_page(asked, 'list_limits', whose)
    return _page(asked, said, 'limits', 'account', _LIMIT)


def set_limits(asked: asked_module.Asked) -> asked_module.Answer:
    """Set limits of an account, or take them back."""
    wanted = {
        name: limit for name, limit in asked.body.items() if name != 'account'
    }
    # More than a share: who owns more takes it from others.
    _require_manager(asked, policies.LIMITS_SET, wanted, lambda: '')
    account = asked.body['account']
    said = _call(asked, 'set_limits', account=account, limits=wanted)
    return _checked(said, _SET_LIMITS)


def _require_manager(
    asked: asked_module.Asked,
    rule: str,
    wanted: Mapping[str, Any],
    parent: Callable[[], str],
) -> None:
    """See to it that the caller may change an account.

    Whoever manages an account divides it among those below it; its own part
    is others' matter.

    :param parent: says which account is above that of no user; '' for none
        that counts.
    """
    account = asked.body['account']
    above, slash, _ = account.partition('/')
    if not asked.caller.may(rule, project_id='', domain_id=''):
        above = above if slash else parent()
        asked.caller.require(rule, project_id=above, domain_id=above)
    LOG.info(
        '%s of account %s was asked for by user %s in %s',
        dict(wanted),
        account,
        asked.caller.user_id,
        asked.caller.request_id,
    )


def _parent(asked: asked_module.Asked, account: str) -> str:
    """The account above another one; '' if there is none."""
    said = _call(asked, 'list_shares', project=account, marker=None, limit=1)
    found = [_checked(each, _SHARE) for each in _part(said, 'shares')]
    return str(found[0]['parent'] or '') if found else ''


def _whose(asked: asked_module.Asked, own: str, of_all: str) -> str | None:
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


def _limit(asked: asked_module.Asked) -> int:
    limit: int = min(
        asked.query.get('limit', asked.max_limit), asked.max_limit
    )
    return min(limit, schemas.MOST)


def _page(
    asked: asked_module.Asked,
    said: Any,
    plural: str,
    key: str,
    judge: validation.Judge,
) -> asked_module.Answer:
    """A page of what the service said.

    :param key: of what names an item.
    """
    items = [_checked(each, judge) for each in _part(said, plural)]
    last = str(items[-1][key]) if items and said.get('more') else None
    return paging.page(plural, asked.url, asked.query, items, last)


def _item(asked: asked_module.Asked, uuid: str) -> dict[str, Any]:
    """One request that the caller may see.

    :raises NotFound: for others, as if they were not there.
    """
    said = _call(asked, 'get_request', uuid=uuid)
    item = _checked(_part(said, 'request'), _JUDGE)
    if not asked.caller.may(policies.SHOW, project_id=item['project_id']):
        raise faults.NotFound(_UNKNOWN.format(uuid))
    return item


def _call_page(
    asked: asked_module.Asked, method: str, project: str | None
) -> Any:
    """Ask for the page of a list that the caller's query names."""
    return _call(
        asked,
        method,
        project=project,
        marker=asked.query.get('marker'),
        limit=_limit(asked),
    )


def _call(asked: asked_module.Asked, method: str, **given: Any) -> Any:
    try:
        return asked.requests.call(method, **given)
    except exception.UnknownRequest as error:
        raise faults.NotFound(
            _UNKNOWN.format(given.get('uuid') or given.get('marker'))
        ) from error
    except exception.UnknownAccount as error:
        raise faults.NotFound(
            f'Account {given.get("marker") or given.get("account")} could'
            ' not be found.'
        ) from error
    except (exception.BadShares, exception.BadArgument) as error:
        raise faults.BadRequest(str(error)) from error
    except (exception.IllegalStep, exception.Outdated) as error:
        raise faults.Conflict(str(error)) from error
    except exception.FairnessError as error:
        LOG.warning('%s: %s', method, error)
        raise faults.Unavailable(
            'The cluster service does not answer, or cannot do it now.'
        ) from error


def _part(said: Any, key: str) -> Any:
    if not isinstance(said, Mapping) or key not in said:
        raise faults.Unavailable('The answer cannot be understood.')
    return said[key]


def _checked(item: Any, judge: validation.Judge) -> dict[str, Any]:
    """What the service said, if it is as described."""
    try:
        judge.check(item, 'answer')
    except faults.BadRequest as error:
        raise faults.Unavailable(
            'The answer of the cluster service cannot be understood.'
        ) from error
    return dict(item)
