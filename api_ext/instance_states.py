# SPDX-License-Identifier: Apache-2.0


"""Answers about instances that no agent knows."""

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

_LEAVES = frozenset({'stopped', 'suspended', 'shelved'})
"""States of an instance that no agent sees."""


def runs(owner: http_request.Owner) -> bool:
    """Whether an agent may know an instance."""
    return owner.host != '' and owner.state not in _LEAVES


def item(uuid: str, owner: http_request.Owner) -> dict[str, Any]:
    """Answer with a sentence on the state of an instance, without numbers."""
    return _sentence_item(uuid, owner, _summary(owner))


def gone(uuid: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer for a server that Nova no longer knows.

    :param request: request of the server, which outlives it.
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
        ends = f'is over ({request["status"]})'
    elif len(request.get('servers', ())) > 1:
        ends = 'has other servers, too'
    else:
        # The cluster service has not looked since the deletion.
        ends = 'ends with it'
    said = (
        'Nova no longer knows this server. Its request '
        f'{request["uuid"]} {ends}.'
    )
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
    """Whether an agent made an answer, and not :func:`item`."""
    return item.get('metric') != ''


def _summary(owner: http_request.Owner) -> str:
    if owner.state in _AT_REST:
        how, then = _AT_REST[owner.state]
        return (
            f'This server {how}: it does not run, so it is neither measured '
            f'nor slowed down. {then} and ask again.'
        )
    return (
        'Nothing is known of this server for now: the agent of its host has '
        'not seen it yet. Ask again in a minute.'
    )
