# SPDX-License-Identifier: Apache-2.0

"""A fake Keystone that Horizon logs users in at. A token is a user's name."""

from collections.abc import Iterable
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
    :ivar projects: all projects, names by ID.
    :ivar refused: paths that are refused to all.
    """

    def __init__(self, users: Mapping[str, Mapping[str, Any]]) -> None:
        self._users = users
        self.url = ''
        self.projects = dict(PROJECTS)
        self.refused: set[str] = set()

    def answer(self, request: webob.Request) -> webob.Response:
        """What Keystone says."""
        path = request.path_info.removeprefix('/identity').strip('/')
        if path in self.refused:
            return webob.Response(status=403, json={'error': {'code': 403}})
        if path == 'v3':
            return webob.Response(json={'version': self._version()})
        if path == 'v3/auth/tokens' and request.method == 'POST':
            return self._token(request.json_body['auth'])
        if path == 'v3/users':
            return self._named_users(request.headers.get('X-Auth-Token', ''))
        if path == 'v3/projects':
            return self._listed(self.projects)
        if path.startswith('v3/users/') and path.endswith('/projects'):
            return self._listed(self._own_projects(path.split('/')[2]))
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
                    'id': project, 'name': self.projects[project],
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
                               ('image', '/image'),
                               ('network', '/network'))
        ]  # fmt: skip

    def _named_users(self, token: str) -> webob.Response:
        """All users, for administrators."""
        if 'admin' not in self._users.get(token, {}).get('roles', ()):
            return webob.Response(status=403, json={'error': {'code': 403}})
        found = [
            {
                'id': known['user_id'], 'name': name, 'enabled': True,
                'domain_id': 'default', 'links': {},
            }
            for name, known in self._users.items()
        ]  # fmt: skip
        return webob.Response(json={'users': found, 'links': {}})

    def _own_projects(self, user: str) -> list[str]:
        return [
            known['project_id']
            for known in self._users.values()
            if known['user_id'] == user and 'project_id' in known
        ]

    def _listed(self, projects: Iterable[str]) -> webob.Response:
        found = [
            {
                'id': each, 'enabled': True, 'name': self.projects[each],
                'domain_id': 'default', 'links': {},
            }
            for each in projects
        ]  # fmt: skip
        return webob.Response(json={'projects': found, 'links': {}})
