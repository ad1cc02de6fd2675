# SPDX-License-Identifier: Apache-2.0

"""A cluster service in this process: the endpoint's code is real, the
transport to it and the requests are not."""

import json

import oslo_messaging

from nova_fairness import exception
from nova_fairness.rpc import requests

REDS = '11111111-2222-4111-8111-111111111111'
BLUES = '22222222-3333-4222-8222-222222222222'


def leaving(uuid):
    return {
        'server': uuid, 'state': 'told', 'action': 'shelve',
        'cause': 'time_limit', 'for_request': None,
        'leaves_at': '2026-01-01T03:00:00+00:00', 'reason': 'time_is_up',
        'explanation': 'it may run for 7200 s', 'subject': '',
        'numbers': {'limit_s': 7200.0},
    }  # fmt: skip


def item(uuid, project, **more):
    return {
        'uuid': uuid, 'project_id': project, 'user_id': 'a' * 32,
        'origin': 'build', 'preemptible': False,
        'servers': [uuid], 'resources': {'VCPU': 2},
        'state': 'held', 'reason': 'no_room',
        'explanation': 'a server needs 2 VCPU', 'subject': 'VCPU',
        'numbers': {'asked': 2.0, 'free': 1.0}, 'position': 1,
        'summary': ['It is next.'], 'factors': {'project_use': 3.1},
        'reserved_at': None,
        'estimated_start': {
            'p50': '2026-01-01T01:00:00+00:00',
            'p90': '2026-01-01T02:00:00+00:00',
        },
        'asked_at': '2026-01-01T00:00:00+00:00',
        'since': '2026-01-01T00:00:00+00:00', 'expires_at': None,
        'time_limit': 7200.0, 'extended': 0.0, 'ends_at': None,
        'leaving': [leaving(uuid)], **more,
    }  # fmt: skip


class FakeOperations(requests.Operations):
    def __init__(self):
        self.items = {
            REDS: item(REDS, '1' * 32),
            BLUES: item(BLUES, '2' * 32, position=2),
        }
        self.error = None
        self.parents = {}
        self.done = []

    def _known(self, uuid):
        if self.error:
            raise self.error
        if uuid not in self.items:
            raise exception.UnknownRequest(uuid)
        return self.items[uuid]

    def requests(self, project, marker, limit):
        if self.error:
            raise self.error
        found = [
            each
            for uuid, each in sorted(self.items.items())
            if project in (None, each['project_id'])
            and (marker is None or uuid > marker)
        ]
        return {'requests': found[:limit], 'more': len(found) > limit}

    def request(self, uuid):
        return {'request': self._known(uuid)}

    def cancel(self, uuid, by_operator):
        return self._went(uuid, 'cancelled', by_operator)

    def release(self, uuid):
        return self._went(uuid, 'starting', None)

    def _went(self, uuid, state, by_operator):
        self.done.append((uuid, state, by_operator))
        known = self._known(uuid)
        if known['state'] != 'held':
            raise exception.IllegalStep(f'it is {known["state"]}')
        known.update(state=state, position=None)
        return {'request': known}

    def shares(self, project, marker, limit):
        if self.error:
            raise self.error
        names = ['physics', '1' * 32, '2' * 32, *self.parents]
        names = sorted(set(names), key=names.index)
        found = [each for each in names if project in (None, each)]
        if marker is not None:
            if marker not in found:
                raise exception.UnknownAccount(marker)
            found = found[found.index(marker) + 1 :]
        listed = [
            {
                'name': each, 'parent': self.parents.get(each),
                'share': 70.0,
                'normalised_share': 0.7, 'used': {'VCPU': 0.25},
                'fair_share': 0.5, 'vanished': False,
            }
            for each in found
        ]  # fmt: skip
        return {'shares': listed[:limit], 'more': len(listed) > limit}

    def set_share(self, name, share):
        if self.error:
            raise self.error
        self.done.append((name, share))
        return {'account': name, 'share': share}

    def extend(self, uuid, by_s):
        self.done.append((uuid, by_s))
        known = self._known(uuid)
        if known['extended'] + by_s > 3600.0:
            raise exception.IllegalStep('3600 s in all')
        known['extended'] += by_s
        return {'request': known}

    def limits(self, project, marker, limit):
        if self.error:
            raise self.error
        names = ['1' * 32, '2' * 32, 'physics']
        listed = [
            {
                'account': each, 'parent': None, 'time_limit': 7200.0,
                'longest_wait': None, 'budget': 100.0, 'budget_left': 12.5,
                'budget_until': '2026-02-01T00:00:00+00:00',
                'ceiling': {'VCPU': 40}, 'nominal': {'VCPU': 20},
                'borrowing_limit': {}, 'lending_limit': {'VCPU': 5},
                'windows': [
                    {'begins': '0 20 * * *', 'lasts': 36000.0, 'zone': 'UTC'}
                ],
                'opens_at': None,
            }
            for each in names
            if project in (None, each) and each > (marker or '')
        ]  # fmt: skip
        return {'limits': listed[:limit], 'more': len(listed) > limit}

    def set_limits(self, name, limits):
        if self.error:
            raise self.error
        self.done.append((name, dict(limits)))
        return {'account': name, **limits}

    def tree(self, known):
        accounts = [
            {'name': '1' * 32, 'parent': None, 'share': 3, 'fair_share': 0.5}
        ]
        return {
            'version': 'v1',
            'accounts': accounts if known != 'v1' else None,
        }

    def capacity(self):
        if self.error:
            raise self.error
        amounts = {'name': 'VCPU', 'capacity': 8, 'used': 6, 'largest': 1}
        return {
            'hosts_count': 2, 'waiting_count': 2,
            'seen_at': '2026-01-01T00:00:00+00:00', 'classes': [amounts],
            'estimates': {
                'count': 40, 'by_p50': 0.5, 'by_p90': 0.9,
                'off_s': 1.5, 'late_s': -60.0,
            },
            'flavors': [{'name': 'small', 'starts': 2}],
        }  # fmt: skip


class FakeRpc:
    """What the client of the service calls instead of a transport."""

    def __init__(self, operations):
        self._endpoint = requests.RequestsEndpoint(operations)
        self.calls = []
        self.broken = None
        self.leader = None

    def of_request(self, request_id, user_id=''):
        return self

    def call(self, host, method, **arguments):
        self.calls.append((host, method))
        if self.leader not in (None, host):
            raise exception.NotLeading(self.leader)
        try:
            answer = getattr(self._endpoint, method)({}, **arguments)
        except oslo_messaging.ExpectedException as error:
            raise error.exc_info[1] from None
        return self.broken or json.loads(json.dumps(answer))


class FakeRequests:
    def __init__(self):
        self.operations = FakeOperations()
        self.rpc = FakeRpc(self.operations)
        self.client = requests.RequestsClient(self.rpc)
