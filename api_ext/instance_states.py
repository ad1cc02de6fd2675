# SPDX-License-Identifier: Apache-2.0


"""Answers about instances without measurements of an agent."""

from collections.abc import Mapping
from typing import Any

from api_ext import http_request

_AT_REST: Mapping[str, tuple[str, str]] = {
    'stopped': ('is stopped', 'Start it'),
    'paused': ('is paused', 'Unpause it'),
    'suspended': ('is suspended', 'Resume it'),
    'shelved': ('is shelved', 'Unshelve it'),
    'shelved_offloaded': ('is shelved', 'Unshelve it'),
    'error': ('is in error', 'Ask the operator about it, repair it'),
    'building': ('is being built', 'Wait until it runs'),
    'deleted': ('is deleted', 'Restore it if it can be'),
    'soft-delete': ('is deleted', 'Restore it'),
    'resized': ('waits for its resize to be confirmed', 'Confirm it'),
}

_UNMEASURED = frozenset({'stopped', 'suspended', 'shelved'})
"""States of an instance that no agent measures."""


def may_be_measured(owner: http_request.Owner) -> bool:
    """Return whether an agent may measure an instance."""
    return owner.host != '' and owner.state not in _UNMEASURED


def unmeasured_item(uuid: str, owner: http_request.Owner) -> dict[str, Any]:
    """Return an answer with a sentence about the state of an instance, without
    numbers.
    """
    return _sentence_item(uuid, owner, _summary(owner))


def deleted_item(uuid: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer about a server that was deleted in Nova.

    :param request: request of the server, which is stored longer than the
        server.
    """
    names = dict(
        zip(
            request.get('servers', ()),
            request.get('server_names', ()),
            strict=False,
        )
    )
    owner = http_request.Owner(
        '',
        request['user_id'],
        request['project_id'],
        name=names.get(uuid, ''),
    )
    if request['standing'] == 'ended':
        ends = f'has ended ({request["status"]})'
    elif len(request.get('servers', ())) > 1:
        ends = 'also has other servers'
    else:
        # The cluster service has not noticed the deletion yet.
        ends = 'ends with this server'
    said = f'Nova deleted this server. Its request {request["uuid"]} {ends}.'
    known = {'request_id': request['uuid'], 'standing': 'ended'}
    return {**_sentence_item(uuid, owner, said), **known}


def _sentence_item(
    uuid: str, owner: http_request.Owner, said: str
) -> dict[str, Any]:
    return {
        'uuid': uuid,
        'name': owner.name,
        'user_id': owner.user_id,
        'project_id': owner.project_id,
        'summary': said,
        'entity': '',
        'metric': '',
        'policy': '',
        'enforced': False,
        'heaviness': {
            'total': None,
            'additive': None,
            'by_resource': {},
            'elsewhere': None,
        },
        **{key: {} for key in ('endowment', 'quota', 'usage', 'owner_usage')},
        'waiting': [],
        'contended': [],
        'weights': {},
        'weights_last_hour': [],
        'advice': [said],
    }


def is_measured(item: Mapping[str, Any]) -> bool:
    """Return whether an answer comes from an agent, and not from
    :func:`unmeasured_item`.
    """
    return item.get('metric') != ''


def _summary(owner: http_request.Owner) -> str:
    if owner.state in _AT_REST:
        how, then = _AT_REST[owner.state]
        return (
            f'This server {how}: it does not run, so it is neither measured '
            f'nor slowed down. {then} and repeat the query.'
        )
    return (
        'This server has no measurements yet: the agent of its host has '
        'not noticed it. Repeat the query in a minute.'
    )
