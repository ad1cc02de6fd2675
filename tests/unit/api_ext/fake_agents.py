# SPDX-License-Identifier: Apache-2.0

"""Agents in this process: the client's and the endpoint's code are real, the
transport between them and the host are not."""

from collections.abc import Mapping
import copy
import dataclasses
import json
from typing import Any

import oslo_messaging

from nova_fairness import exception
from nova_fairness.rpc import client
from nova_fairness.rpc import endpoint

RESOURCES = ('cpu_time', 'disk_read', 'memory')
NOW_S = 1_800_000_000.0


@dataclasses.dataclass
class FakeVm:
    uuid: str
    user: str
    project: str
    heaviness: float = 0.25


@dataclasses.dataclass
class FakeAgent(endpoint.AgentCalls):
    host: str
    vms: list[FakeVm] = dataclasses.field(default_factory=list)
    metrics: dict[str, str] = dataclasses.field(
        default_factory=lambda: {
            'DominantShareMetric': 'The largest share.',
            'GreedinessMetric': 'Credit for what is left unused.',
        }
    )
    policies: dict[str, str] = dataclasses.field(
        default_factory=lambda: {
            'feedback': 'Until heaviness is equal.',
            'thesis': 'The fixed map.',
        }
    )
    metric: str = 'GreedinessMetric'
    policy: str = 'feedback'
    shadow: str = ''
    entity: str = 'user'
    epoch: int = 0
    paused: bool = False
    resets: int = 0
    peers: tuple[str, ...] = ()
    has_round: bool = True
    heaviness_elsewhere: Mapping[str, float] = dataclasses.field(
        default_factory=dict
    )

    def _done(self, **more: Any) -> Any:
        return {'host': self.host, 'from_round': 42, **more}

    def _chosen(self) -> Any:
        return self._done(
            epoch=self.epoch,
            metric=self.metric,
            policy=self.policy,
            origin=self.host,
        )

    def _check(self, metric: str | None, policy: str | None) -> None:
        for name, known in ((metric, self.metrics), (policy, self.policies)):
            if name is not None and name not in known:
                raise exception.UnknownPlugin(
                    f'{name} is not installed; installed: {sorted(known)}'
                )

    def choose(self, metric, policy, by=None):
        self.by = by
        self._check(metric, policy)
        self.epoch += 1
        self.metric = metric or self.metric
        self.policy = policy or self.policy
        return self._chosen()

    def take_over(self, metric, policy, epoch, origin, signature='', by=None):
        self.by = by
        self._check(metric, policy)
        if epoch < self.epoch:
            raise exception.Superseded(f'epoch {self.epoch} is known')
        self.epoch, self.signature = epoch, signature
        self.metric = metric or self.metric
        self.policy = policy or self.policy
        return self._chosen()

    def pause(self, by=None):
        self.by = by
        self.paused = True
        return self._done(paused=True, persistent=True, problem='')

    def resume(self, by=None):
        self.by = by
        self.paused = False
        return self._done(paused=False, persistent=True, problem='')

    def reset(self):
        self.resets += 1
        return self._done()

    def prefer(self, preferences):
        raise NotImplementedError

    def status(self):
        return {
            'host': self.host,
            'boot_id': 'b',
            'version': '1.0',
            'metric': self.metric,
            'policy': self.policy,
            'epoch': self.epoch,
            'origin': '',
            'refused': '',
            'desired': {'epoch': self.epoch},
            'paused': self.paused,
            'enforce': True,
            'interval_s': 10.0,
            'next_round': 42,
            'round': self._round() if self.has_round else None,
            'peers': {
                peer: {'age_s': 1.5, 'left_out': None} for peer in self.peers
            },
            'controls': {},
        }

    def _round(self):
        return {
            'number': 41,
            'wall_s': NOW_S - 4.0,
            'duration_s': 0.003,
            'instances_count': len(self.vms),
            'users_count': len({vm.user for vm in self.vms}),
        }

    def instances(self):
        raise NotImplementedError

    def _owners(self, key: str) -> dict[str, Any]:
        ids = {getattr(vm, key) for vm in self.vms}
        if key == self.entity:
            ids |= set(self.heaviness_elsewhere)
        return {owner: self._owner(key, owner) for owner in sorted(ids)}

    def _owner(self, key: str, owner: str) -> dict[str, Any]:
        own = [vm for vm in self.vms if getattr(vm, key) == owner]
        heaviness = sum(vm.heaviness for vm in own)
        if key == self.entity:
            heaviness += self.heaviness_elsewhere.get(owner, 0.0)
        return {
            'heaviness_quotas': heaviness,
            **self._shadow(2 * heaviness),
            'instances_here_count': len(own),
            'usage_quotas': dict.fromkeys(RESOURCES, heaviness),
        }

    def _shadow(self, heaviness: float) -> dict[str, Any]:
        # An agent before 1.8 says nothing of it.
        return {'shadow_heaviness_quotas': heaviness} if self.shadow else {}

    def _shadow_name(self) -> dict[str, Any]:
        return {'shadow_metric': self.shadow} if self.shadow else {}

    def users(self):
        return {
            **self._shadow_name(),
            'host': self.host,
            'round': 41,
            'entity': self.entity,
            'users': self._owners(self.entity),
        }

    def usage(self):
        return {
            'host': self.host,
            'round': 41,
            'entity': self.entity,
            'users': {},
        }

    def idle(self, at_least_s):
        return {'host': self.host, 'round': 41, 'idle': {}}

    def lacking(self):
        return {'host': self.host, 'round': 41, 'instances': {}}

    def projects(self):
        return {
            **self._shadow_name(),
            'host': self.host,
            'round': 41,
            'entity': self.entity,
            'scope': 'domain' if self.entity == 'project' else 'host',
            'projects': self._owners('project'),
        }

    def plugins(self):
        return {
            'host': self.host,
            'metric': self.metric,
            'policy': self.policy,
            'metrics': _described(self.metrics),
            'policies': _described(self.policies),
        }

    def preview(self, metric):
        return {
            'host': self.host,
            'round': 41,
            'entity': self.entity,
            'policy': self.policy,
            'enforced': False,
            'not_foreseen': ['memory'],
            'metrics': [self._previewed(name) for name in self.metrics],
        }

    def _previewed(self, name):
        amounts = {
            'gets_cpus': 0.5,
            'wants_cpus': 1.0,
            'would_get_cpus': 0.25,
            'change_cpus': -0.25,
            'change_spread_cpus': 0.125,
        }
        return {
            'metric': name,
            'in_force': name == self.metric,
            'problem': '',
            'settled': True,
            'rounds_count': 7,
            'sampled_rounds_count': 30,
            'users': {
                vm.user: {
                    'name': 'somebody',
                    'instances_here_count': 1,
                    **amounts,
                }
                for vm in self.vms
            },
            'instances': [
                {
                    'uuid': vm.uuid,
                    'name': 'a server',
                    'user': vm.user,
                    'user_name': 'somebody',
                    'project': vm.project,
                    'project_name': 'something',
                    **amounts,
                    'weight_ratio': 0.5,
                    'cpu_units': 512,
                }
                for vm in self.vms
            ],
        }

    def instance(self, uuid):
        for vm in self.vms:
            if vm.uuid == uuid:
                return {'host': self.host, 'round': 41, 'instance': _why(vm)}
        raise exception.UnknownInstance(f'no VM {uuid} is on {self.host}')


def _described(plugins: Mapping[str, str]) -> list[dict[str, str]]:
    return [
        {'name': name, 'description': text}
        for name, text in sorted(plugins.items())
    ]


def _why(vm: FakeVm) -> dict[str, Any]:
    amounts = dict.fromkeys(RESOURCES, 1.0)
    return {
        'uuid': vm.uuid,
        'name': 'a server',
        'user_id': vm.user,
        'project_id': vm.project,
        'user_name': 'somebody',
        'project_name': 'something',
        'summary': 'Nothing slows this VM down.',
        'entity': 'user',
        'metric': 'GreedinessMetric',
        'policy': 'feedback',
        'enforced': True,
        'heaviness': {
            'total': vm.heaviness,
            'additive': True,
            'by_resource': {'cpu_time': vm.heaviness},
            'elsewhere': 0.0,
        },
        'endowment': amounts,
        'quota': amounts,
        'usage': amounts,
        'owner_usage': amounts,
        'waiting': ['cpu_time'],
        'contended': ['cpu_time'],
        'weights': {'cpu': 0.7},
        'weights_last_hour': [
            {'at': '2026-11-22T01:20:00Z', 'weights': {'cpu': 0.8}}
        ],
        'advice': ['Use less CPU.'],
        'neighbours': 'what an agent must not tell, and nobody must repeat',
    }


class FakeClient(client.FairnessClient):
    """The real client but for the transport."""

    def __init__(self, *agents: FakeAgent) -> None:
        self._agents = {agent.host: agent for agent in agents}
        self._domain = 'fake'
        self._timeout_s = 1.0
        self._at_once = 8
        self.context = {}
        self.silent: set[str] = set()
        self.broken: dict[str, Any] = {}
        self.calls: list[tuple[str, str, str | None]] = []

    def _call(self, host, method, arguments):
        self.calls.append((host, method, self.context.get('request_id')))
        living = [name for name in self._agents if name not in self.silent]
        if not host and living:
            host = living[0]
        if host not in living:
            raise exception.HostNotReached('no answer within 1 s')
        if host in self.broken:
            return copy.deepcopy(self.broken[host])
        exposed = endpoint.FairnessEndpoint(self._agents[host])
        try:
            answer = getattr(exposed, method)(dict(self.context), **arguments)
        except oslo_messaging.ExpectedException as error:
            raise error.exc_info[1] from None
        return json.loads(json.dumps(answer))
