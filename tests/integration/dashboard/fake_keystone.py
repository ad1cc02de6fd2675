# SPDX-License-Identifier: Apache-2.0

"""A fake Keystone that Horizon logs users in at. A token is a user's name."""

from collections.abc import Mapping
import datetime as dt
from typing import Any

import webob

PASSWORD = 'secret'
PROJECTS = {'1' * 32: 'red', '2' * 32: 'blue', '9' * 32: 'admin'}
_DOMAIN = {'id': 'default', 'name': 'Default'}
_UNSCOPED = 'unscoped-'


class FakeKeystone:
    """Version 3, as far as a login needs it.

    :param users: what tokens say, by the names of their users.

    :ivar url: where it is served.
    """

    def __init__(self, users: Mapping[str, Mapping[str, Any]]) -> None:
        self._users = users
        self.url = ''

    def answer(self, request: webob.Request) -> webob.Response:
        """What Keystone says."""
        path = request.path_info.removeprefix('/identity').strip('/')
        if path == 'v3':
            return webob.Response(json={'version': self._version()})
        if path == 'v3/auth/tokens' and request.method == 'POST':
            return self._token(request.json_body['auth'])
        if path == 'v3/projects':
            return self._projects(None)
        if path.startswith('v3/users/') and path.endswith('/projects'):
            return self._projects(path.split('/')[2])
        if path == 'v3/auth/domains':
            return webob.Response(json={'domains': [], 'links': {}})
        return webob.Response(status=404, json={'error': {'code': 404}})

    def _version(self) -> dict[str, Any]:
        return {
            'id': 'v3.14',
            'status': 'stable',
            'links': [{'rel': 'self', 'href': f'{self.url}/identity/v3/'}],
        }

    def _token(self, auth: Mapping[str, Any]) -> webob.Response:
        identity = auth['identity']
        if 'password' in identity:
            user = identity['password']['user']
            name, is_right = user['name'], user['password'] == PASSWORD
        else:
            name = identity['token']['id'].removeprefix(_UNSCOPED)
            is_right = True
        if not is_right or name not in self._users:
            return webob.Response(status=401, json={'error': {'code': 401}})
        scope = auth.get('scope')
        if scope and scope != 'unscoped' and 'project' not in scope:
            return webob.Response(status=401, json={'error': {'code': 401}})
        is_scoped = bool(scope) and scope != 'unscoped'
        answer = webob.Response(
            status=201, json={'token': self._content(name, is_scoped)}
        )
        answer.headers['X-Subject-Token'] = (
            name if is_scoped else f'{_UNSCOPED}{name}'
        )
        return answer

    def _content(self, name: str, is_scoped: bool) -> dict[str, Any]:
        known = self._users[name]
        now = dt.datetime.now(dt.UTC)
        later = now + dt.timedelta(hours=8)
        found: dict[str, Any] = {
            'methods': ['password'],
            'user': {
                'id': known['user_id'], 'name': name, 'domain': _DOMAIN,
                'password_expires_at': None,
            },
            'issued_at': now.strftime('%Y-%m-%dT%H:%M:%S.%fZ'),
            'expires_at': later.strftime('%Y-%m-%dT%H:%M:%S.%fZ'),
            'audit_ids': ['a'],
        }  # fmt: skip
        if is_scoped:
            project = known['project_id']
            found |= {
                'project': {
                    'id': project, 'name': PROJECTS[project],
                    'domain': _DOMAIN,
                },
                'roles': [{'id': e, 'name': e} for e in known['roles']],
                'catalog': self._catalog(),
                'is_domain': False,
            }  # fmt: skip
        return found

    def _catalog(self) -> list[dict[str, Any]]:
        return [
            {
                'id': kind, 'type': kind, 'name': kind,
                'endpoints': [
                    {
                        'id': f'{kind}-{interface}', 'interface': interface,
                        'region': 'one', 'region_id': 'one',
                        'url': f'{self.url}{path}',
                    }
                    for interface in ('public', 'internal', 'admin')
                ],
            }
            for kind, path in (('identity', '/identity/v3'),
                               ('compute', '/v2.1'),
                               ('network', '/network'))
        ]  # fmt: skip

    def _projects(self, user: str | None) -> webob.Response:
        """Those of a user, or all."""
        found = [
            {
                'id': known['project_id'], 'enabled': True,
                'name': PROJECTS[known['project_id']],
                'domain_id': 'default', 'links': {},
            }
            for known in self._users.values()
            if user in (None, known['user_id']) and 'project_id' in known
        ]  # fmt: skip
        return webob.Response(json={'projects': found, 'links': {}})
