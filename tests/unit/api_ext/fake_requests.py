# SPDX-License-Identifier: Apache-2.0

"""A cluster service in this process: the endpoint's code is real, the
transport to it and the requests are not."""

import json

import oslo_messaging

from nova_fairness import exception
from nova_fairness.model import reason
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


def at_risk(uuid):
    return {
        'server': uuid, 'state': 'at_risk',
        'since': '2026-01-01T00:00:00+00:00', 'reason': 'at_risk',
        'explanation': 'its owner uses 2.0 times their share, and 1 requests'
        ' wait for room',
        'subject': '', 'numbers': {'times': 2.0, 'waiting': 1.0},
    }  # fmt: skip


ORDER = {'order': 'fair_tree', 'order_description': 'By shares.'}


def item(uuid, project, **more):
    return {
        'uuid': uuid, 'project_id': project, 'user_id': 'a' * 32,
        'origin': 'build', 'preemptible': False, 'preemption_action': None,
        'servers': [uuid], 'server_names': [], 'resources': {'VCPU': 2},
        'state': 'waiting', 'reason': 'no_room',
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
        'leaving': [leaving(uuid)], 'at_risk': [at_risk(uuid)],
        'held_by': None, 'first': False, 'standing': 'waits',
        'status': 'waits: 3rd, a server needs 2 VCPU', **more,
    }  # fmt: skip


def event(**more):
    return {
        'at': '2026-01-01T00:00:00+00:00',
        'until': '2026-01-01T02:00:00+00:00', 'kind': 'waited', 'server': None,
        'reason': 'behind_others', 'explanation': 'it is not its turn',
        'hosts': [], **more,
    }  # fmt: skip


LENT, OTHERS = (each.replace('4', '5') for each in (REDS, BLUES))
"""Times that servers had to make room: of the red project for the blue one,
and of the blue one for another."""


def preemption(uuid, project, for_project):
    more = {
        key: value
        for key, value in leaving(f'server-{uuid}').items()
        if key not in ('cause', 'for_request')
    }
    return {
        **more, 'uuid': uuid, 'project_id': project, 'user_id': f'u-{uuid}',
        'cause': 'room', 'for_request': BLUES, 'for_project': for_project,
        'outcome': 'freed', 'chosen_at': '2026-01-01T02:50:00+00:00',
        'told_at': '2026-01-01T02:50:00+00:00',
        'acted_at': '2026-01-01T03:00:00+00:00',
        'freed_at': '2026-01-01T03:01:00+00:00', 'returned_at': None,
        'answered': False, 'notice_s': 600.0, 'lost_vcpu_s': 7200.0,
    }  # fmt: skip


def read_by(turn, project, audience):
    """A preemption as a project reads it."""
    if audience is reason.Audience.OPERATOR:
        return turn
    reader = project or turn['project_id']
    hidden = {}
    if reader != turn['project_id']:
        hidden |= dict.fromkeys(('server', 'project_id', 'user_id'))
    if reader != turn['for_project']:
        hidden |= dict.fromkeys(('for_project', 'for_request'))
    return {**turn, **hidden}


def border_host(name, state='batch', **more):
    place = {
        'open': True, 'up': True, 'reason': '', 'work_count': 1,
        'used_cores': 4.0,
    }  # fmt: skip
    return {
        'name': name, 'batch_name': name, 'cloud_name': name, 'cores': 8.0,
        'fixed': False, 'state': state, 'bound_for': state,
        'since': '2026-01-01T03:00:00+00:00', 'until': None, 'cause': 'seen',
        'explanation': 'batch alone uses it', 'batch': place, 'cloud': None,
        **more,
    }  # fmt: skip


STEP = {
    'at': '2026-01-01T03:00:00+00:00', 'event': 'find_in_batch',
    'state': 'batch', 'cause': 'seen', 'explanation': 'batch alone uses it',
}  # fmt: skip
GROUP = {
    'account': 'physics', 'batch_account': 'phys', 'pledge': 0.6, 'part': 0.7,
    'used': {'batch': 0.3, 'cloud': 0.2}, 'batch_share': 530,
    'batch_share_found': 600,
}  # fmt: skip
JOB = {'name': '7', 'cores': 4.0, 'gone_at': None, 'way': 'ends'}


IN_FULL = ('moves', 'stays')
"""Parts of a plan that its list lacks."""
PLANS = tuple(REDS.replace('4', each) for each in '67')


def plan(uuid, state='proposed'):
    outcome = {
        'hosts_before': 3, 'hosts_after': 2, 'spread_before': 0.25,
        'spread_after': 0.5, 'emptied': 1, 'moves': 1, 'memory_mb': 2048,
        'served': 0,
    }  # fmt: skip
    move = {
        'server': REDS, 'source': 'h1', 'target': 'h2', 'wave': 1,
        'cost_mb': 2048, 'state': 'moved', 'cause': 'arrived',
        'explanation': 'the server runs on its new host',
        'asked_at': '2026-01-01T03:00:00+00:00',
        'ended_at': '2026-01-01T03:01:00+00:00', 'sent_mb': 2100,
    }  # fmt: skip
    return {
        'uuid': uuid, 'goal': 'empty', 'subject': 'h1', 'state': state,
        'cause': 'operator', 'explanation': 'an operator asked for it',
        'made_at': '2026-01-01T03:00:00+00:00',
        'since': '2026-01-01T03:00:00+00:00',
        'until': '2026-01-01T09:00:00+00:00', 'moves_count': 1,
        'ended_count': 1, 'empties': ['h1'], 'promised': outcome,
        'won': None, 'moves': [move], 'stays_count': 1, 'stays': [{
            'server': BLUES, 'name': 'db', 'cause': 'nowhere',
            'explanation': 'no other host has room for it, or may take it',
        }],
    }  # fmt: skip


def dry_run(operations, reader):
    """Both requests change places, as a reader may see it."""
    operations.audiences.append(reader.audience)
    waits = {
        'state': 'waits', 'position': 2, 'reason': 'behind_others',
        'explanation': 'it is not its turn',
        'estimated_start': {
            'p50': '2026-01-01T01:00:00+00:00',
            'p90': '2026-01-01T02:00:00+00:00',
        },
    }  # fmt: skip
    percentiles = {'p50': 60.0, 'p90': 600.0, 'p95': 700.0}
    spans = {
        'requests_count': 2, 'before': percentiles, 'after': percentiles
    }  # fmt: skip
    starts = {**dict.fromkeys(waits), 'state': 'starts'}
    found = [
        {
            'uuid': uuid, 'project_id': each['project_id'],
            'user_id': each['user_id'], 'servers': each['servers'],
            'before': starts if uuid == REDS else waits,
            'after': waits if uuid == REDS else starts,
        }
        for uuid, each in sorted(operations.items.items())
        if reader.project in (None, each['project_id'])
    ][:reader.most]  # fmt: skip
    return {
        'dry_run': {
            'seen_at': '2026-01-01T00:00:00+00:00', **ORDER,
            'requests_count': 2,
            'starts_before_count': 1, 'starts_after_count': 1,
            'sooner_count': 1, 'later_count': 1,
            'not_named_count': 2 - len(found), 'requests': found,
            'past_waits': {
                'since': '2026-01-01T00:00:00+00:00', **spans,
                'projects': [{'project_id': '1' * 32, **spans}],
            },
        }
    }  # fmt: skip


class FakeOperations(requests.ClusterCalls):
    def __init__(self):
        self.moving = {name: border_host(name) for name in ('h1', 'h2')}
        self.target = None
        self.planned = {uuid: plan(uuid) for uuid in PLANS}
        self.items = {
            REDS: item(REDS, '1' * 32),
            BLUES: item(BLUES, '2' * 32, position=2),
        }
        self.times = {
            LENT: preemption(LENT, '1' * 32, '2' * 32),
            OTHERS: preemption(OTHERS, '2' * 32, 'physics'),
        }
        self.error = None
        self.audiences = []
        self.prices_for = []
        self.is_full = False
        self.groups_set = {}
        self._group('1' * 32, 'batch', 5.0, 1)
        self.parents = {}
        self.done = []
        self.tried = []

    def _known(self, uuid):
        if self.error:
            raise self.error
        if uuid not in self.items:
            raise exception.UnknownRequest(uuid)
        return self.items[uuid]

    def requests(
        self,
        project,
        marker,
        limit,
        preemptible=None,
        audience=None,
        wanted=None,
    ):
        self.audiences.append(audience)
        self.wanted = wanted
        if self.error:
            raise self.error
        found = [
            each
            for uuid, each in sorted(self.items.items())
            if project in (None, each['project_id'])
            and (marker is None or uuid > marker)
            and preemptible in (None, each['preemptible'])
        ]
        return {'requests': found[:limit], 'more': len(found) > limit}

    def request(self, uuid, audience=None, events=False):
        self.audiences.append(audience)
        more = {'events': [event()]} if events else {}
        told = {**self._known(uuid), 'waited': 'waited 2 h for its turn'}
        return {'request': {**told, **more}}

    def waits(self, wanted, marker, limit):
        self.wanted = wanted
        if self.error:
            raise self.error
        names = {
            'project': ['1' * 32, '2' * 32],
            'flavor': ['m1.large', 'm1.small'],
            'reason': ['behind_others', 'no_room'],
        }[wanted.key.value]
        found = [
            {
                'name': each, 'explanation': None, 'requests_count': 3,
                'p50': 60.0, 'p90': 5400.0, 'p95': 7200.0,
            }
            for each in names
            if each > (marker or '')
            and (wanted.key.value != 'project'
                 or wanted.project in (None, each))
        ]  # fmt: skip
        return {'waits': found[:limit], 'more': len(found) > limit}

    def cancel(self, uuid, by_operator):
        return self._went(uuid, 'cancelled', by_operator)

    def release(self, uuid, without_room=False):
        if self.is_full and not without_room:
            raise exception.NoRoom(f'request {uuid} is not released: no room')
        return self._went(uuid, 'starting', None)

    def first(self, uuid):
        return self._changed(uuid, first=True)

    def unfirst(self, uuid):
        return self._changed(uuid, first=False)

    def hold(self, uuid, by_operator, why=None):
        self.why = why
        return self._changed(
            uuid, held_by='operator' if by_operator else 'owner'
        )

    def unhold(self, uuid, by_operator):
        known = self._known(uuid)
        if known['held_by'] == 'operator' and not by_operator:
            raise exception.IllegalStep('an operator holds it')
        return self._changed(uuid, held_by=None)

    def _changed(self, uuid, **more):
        known = self._known(uuid)
        if known['state'] != 'waiting':
            raise exception.IllegalStep(f'it is {known["state"]}')
        self.done.append((uuid, more))
        known.update(more)
        return {'request': known}

    def _went(self, uuid, state, by_operator):
        self.done.append((uuid, state, by_operator))
        known = self._known(uuid)
        if known['state'] != 'waiting':
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

    def try_account(self, name, values, reader):
        if self.error:
            raise self.error
        self.tried.append((name, dict(values)))
        return dry_run(self, reader)

    def try_order(self, name, parameters, reader):
        if self.error:
            raise self.error
        self.tried.append((name, dict(parameters)))
        return dry_run(self, reader)

    def extend(self, uuid, by_s):
        self.done.append((uuid, by_s))
        known = self._known(uuid)
        if known['extended'] + by_s > 3600.0:
            raise exception.IllegalStep('3600 s in all')
        known['extended'] += by_s
        return {'request': known}

    def preemptible(self, servers):
        return {'servers': [each for each in servers if each in self.items]}

    def notices(self, servers):
        told = {'fairness:at_risk': '2026-01-01T00:00:00Z'}
        return {'notices': {each: told for each in servers if each == REDS}}

    def limits(self, project, marker, limit):
        if self.error:
            raise self.error
        names = ['1' * 32, '2' * 32, 'physics']
        listed = [
            {
                'account': each, 'parent': self.parents.get(each),
                'time_limit': 7200.0,
                'longest_wait': None, 'budget': 100.0,
                'budget_used': 60.0, 'budget_committed': 27.5,
                'budget_left': 12.5,
                'budget_until': '2026-02-01T00:00:00+00:00',
                'funds': 500.0, 'funds_left': 12.25,
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

    def groups(self, project, marker, limit):
        if self.error:
            raise self.error
        found = [
            each
            for name, each in sorted(self.groups_set.items())
            if project in (None, each['project_id']) and name > (marker or '')
        ]
        return {'groups': found[:limit], 'more': len(found) > limit}

    def create_group(self, project, name, rate, count):
        if self.error:
            raise self.error
        if f'{project}/{name}' in self.groups_set:
            raise exception.IllegalStep(f'there is a group {name} already')
        return self._group(project, name, rate, count)

    def set_group(self, project, name, rate, count):
        before = self._known_group(project, name)
        return self._group(
            project, name, rate or before['rate'], count or before['count']
        )

    def delete_group(self, project, name):
        self._known_group(project, name)
        del self.groups_set[f'{project}/{name}']
        return {'group': None}

    def prices(self, host, marker, limit, project=None):
        if self.error:
            raise self.error
        self.prices_for.append(project)
        if project is not None:
            names = [f'{n}-of-{project}' for n in range(2 if project else 0)]
        elif host not in (None, 'cmp1'):
            raise exception.UnknownHost(f'there is no host {host}')
        else:
            names = ('cmp1', 'cmp2') if host is None else ('9.0', '8.5')
        listed = [
            {
                'id': name, 'host': host or name, 'resource_class': 'VCPU',
                'price': 70.5, 'capacity': 16.0,
                'at': '2026-03-01T00:00:00+00:00',
            }
            for name in names
        ]  # fmt: skip
        found = [
            each
            for each in listed
            if not marker
            or (each['id'] < marker if host else each['id'] > marker)
        ]
        return {'prices': found[:limit], 'more': len(found) > limit}

    def report_meters(self, host, meters):
        if self.error:
            raise self.error
        return {'elsewhere': [host, *meters]}

    def rates(self, servers, known):
        if self.error:
            raise self.error
        rates = dict.fromkeys(servers, 1.5)
        return {'version': 'v1', 'rates': None if known == 'v1' else rates}

    def _known_group(self, project, name):
        if self.error:
            raise self.error
        if f'{project}/{name}' not in self.groups_set:
            raise exception.UnknownGroup(name)
        return self.groups_set[f'{project}/{name}']

    def _group(self, project, name, rate, count):
        told = {
            'id': f'{project}/{name}', 'name': name, 'project_id': project,
            'rate': rate, 'count': count, 'servers_count': 0,
            'server_rate': None,
        }  # fmt: skip
        self.groups_set[told['id']] = told
        return {'group': told}

    def preemptions(self, project, marker, limit, audience=None):
        if self.error:
            raise self.error
        found = [
            each
            for uuid, each in sorted(self.times.items())
            if project in (None, each['project_id'], each['for_project'])
            and uuid > (marker or '')
        ]
        listed = [read_by(each, project, audience) for each in found[:limit]]
        return {'preemptions': listed, 'more': len(found) > limit}

    def preemption(self, uuid, project=None, audience=None):
        if self.error:
            raise self.error
        if uuid not in self.times:
            raise exception.UnknownPreemption(uuid)
        return {'preemption': read_by(self.times[uuid], project, audience)}

    def border(self):
        if self.error:
            raise self.error
        has = {'capacity': 16.0, 'used': 4.0, 'wanted': 0.0, 'overdue': 0.0,
               'unplaced': 0.0}  # fmt: skip
        return {
            'partition': {
                'seen_at': '2026-01-01T03:00:00+00:00',
                'target': self.target, 'states': {'batch': 2},
                'batch': has, 'cloud': None, 'faults': ['cloud is away'],
                'groups': [GROUP],
            }
        }  # fmt: skip

    def hosts(self, marker, limit):
        if self.error:
            raise self.error
        found = [
            each for name, each in self.moving.items() if name > (marker or '')
        ]
        return {'hosts': found[:limit], 'more': len(found) > limit}

    def host(self, name):
        if self.error:
            raise self.error
        if name not in self.moving:
            raise exception.UnknownHost(
                f'host {name} is not in [fairness_partition] hosts_file'
            )
        more = {'work': [JOB], 'history': [STEP]}
        return {'host': {**self.moving[name], **more}}

    def move(self, name):
        return self._turn(name, 'batch', 'cloud_asked')

    def stay(self, name):
        return self._turn(name, 'cloud_asked', 'batch')

    def _turn(self, name, before, after):
        self.host(name)
        found = self.moving[name]
        if found['state'] != before:
            raise exception.IllegalStep(f'host {name} is {found["state"]}')
        found['state'] = after
        return self.host(name)

    def aim(self, hosts):
        if hosts is not None and hosts > 2:
            raise exception.IllegalStep(f'0 to 2 hosts, got {hosts}')
        self.target = hosts
        return {'target': hosts}

    def plans(self, marker, limit):
        if self.error:
            raise self.error
        if marker is not None:
            self.plan(marker)
        found = [
            {key: value for key, value in each.items() if key not in IN_FULL}
            for uuid, each in self.planned.items()
            if uuid > (marker or '')
        ]
        return {'plans': found[:limit], 'more': len(found) > limit}

    def plan(self, uuid):
        if self.error:
            raise self.error
        if uuid not in self.planned:
            raise exception.UnknownPlan(f'there is no plan {uuid}')
        return {'plan': self.planned[uuid]}

    def empty(self, host):
        if self.error:
            raise self.error
        if host not in self.moving:
            raise exception.UnknownHost(f'there is no host {host}')
        return {'plan': self.planned[PLANS[0]]}

    def approve(self, uuid):
        return self._led(uuid, 'proposed', 'approved')

    def stop(self, uuid):
        return self._led(uuid, 'approved', 'stopped')

    def _led(self, uuid, before, after):
        found = self.plan(uuid)['plan']
        if found['state'] != before:
            raise exception.IllegalStep(f'plan {uuid} is {found["state"]}')
        found['state'] = after
        return {'plan': found}

    def tree(self, known):
        accounts = [
            {'name': '1' * 32, 'parent': None, 'share': 3, 'fair_share': 0.5}
        ]
        return {
            'version': 'v1',
            'accounts': accounts if known != 'v1' else None,
        }

    def status(self):
        if self.error:
            raise self.error
        waits = {
            'project_id': '1' * 32,
            'reason': 'no_room',
            'explanation': 'for room on a host',
            'count': 2,
        }
        share = {
            'account': '1' * 32,
            'normalised_share': 0.1,
            'used_part': 0.25,
            'fair_share': 0.2,
        }
        plan_of_now = {'uuid': PLANS[0], 'goal': 'empty', 'state': 'proposed'}
        return {
            'status': {
                'leader': 'ctl1',
                'epoch': 7,
                'leads_since': '2025-12-31T00:00:00+00:00',
                'seen_at': '2026-01-01T00:00:00+00:00',
                **ORDER,
                'hosts_count': 2,
                'waiting_count': 2,
                'waiting': [waits],
                'shares': [share],
                'leaving': {'room': 1},
                'plans': [plan_of_now],
                'border': {'batch': 2},
                'warnings': ['account p: odd'],
                'advice': ['Correct limits.'],
            }
        }

    def capacity(self, project=None):
        if self.error:
            raise self.error
        self.capacity_for = project
        amounts = {'name': 'VCPU', 'capacity': 8, 'used': 6, 'largest': 1}
        return {
            'hosts_count': 2, 'waiting_count': 2,
            'seen_at': '2026-01-01T00:00:00+00:00', 'classes': [amounts],
            'estimates': {
                'count': 40, 'by_p50': 0.5, 'by_p90': 0.9,
                'off_s': 1.5, 'late_s': -60.0,
            },
            'flavors': [{'name': 'small', 'starts': 2, 'zones': {'z1': 2}}],
        }  # fmt: skip


class FakeRpc:
    """What the client of the service calls instead of a transport."""

    def __init__(self, operations):
        self._endpoint = requests.RequestsEndpoint(operations)
        self.calls = []
        self.broken = None
        self.leader = None

    def for_request(self, request_id, user_id=''):
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
