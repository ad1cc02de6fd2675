# SPDX-License-Identifier: Apache-2.0

"""Agents that only remember what they were asked for, on one transport."""

import itertools
import threading

from oslo_config import cfg
import oslo_messaging

from nova_fairness import exception
from nova_fairness.conf import transport
from nova_fairness.model import caller
from nova_fairness.rpc import client
from nova_fairness.rpc import endpoint
from nova_fairness.rpc import server

ENOUGH_S = 60  # for broken code only
SOON_S = 0.3  # nobody will answer
_DOMAINS = itertools.count()


class FakeOperations(endpoint.AgentCalls):
    """An agent without a node."""

    def __init__(self, host, peers=()):
        self.host = host
        self.peers = peers
        self.asked = []
        self.epoch = 0
        self.metric, self.policy, self.origin = 'M0', 'P0', ''
        self.signature = ''
        self.known = ('M0', 'M1')
        self.vms = ()
        self.warning = ''

    def choose(self, metric, policy, by=caller.UNKNOWN):
        return self.take_over(metric, policy, self.epoch + 1, self.host, by=by)

    def take_over(
        self, metric, policy, epoch, origin, signature='', by=caller.UNKNOWN
    ):
        self.asked.append((metric, policy, epoch, origin))
        self.signature, self.by = signature, by
        if metric is not None and metric not in self.known:
            raise exception.UnknownPlugin(
                f'no metric {metric!r}; installed: {", ".join(self.known)}'
            )
        if epoch < self.epoch:
            raise exception.Superseded(f'epoch {self.epoch} is newer')
        self.metric = metric or self.metric
        self.policy = policy or self.policy
        self.epoch, self.origin = epoch, origin
        return {
            'host': self.host,
            'metric': self.metric,
            'policy': self.policy,
            'epoch': epoch,
            'origin': origin,
            'warning': self.warning,
        }

    def pause(self, by=caller.UNKNOWN):
        self.by = by
        self.asked.append('pause')
        return {'host': self.host, 'paused': True}

    def resume(self, by=caller.UNKNOWN):
        self.by = by
        self.asked.append('resume')
        return {'host': self.host, 'paused': False}

    def reset(self):
        self.asked.append('reset')
        return {'host': self.host}

    def prefer(self, preferences):
        self.asked.append(preferences)
        return {'host': self.host, 'preferences_count': len(preferences)}

    def status(self):
        return {
            'host': self.host,
            'metric': self.metric,
            'policy': self.policy,
            'desired': {
                'epoch': self.epoch,
                'metric': self.metric,
                'policy': self.policy,
                'origin': self.origin,
                'signature': self.signature,
            },
            'peers': {
                peer: {'age_s': 1.0, 'left_out': None}
                for peer in self.peers
                if peer != self.host
            },
        }

    def instances(self):
        raise RuntimeError('a bug of the agent')

    def users(self):
        return {'host': self.host, 'entity': 'user', 'users': {}}

    def usage(self):
        return {'host': self.host, 'entity': 'user', 'users': {}}

    def idle(self, at_least_s):
        return {'host': self.host, 'idle': {'a-1': at_least_s}}

    def lacking(self):
        return {'host': self.host, 'instances': {}}

    def projects(self):
        return {'host': self.host, 'scope': 'host', 'projects': {}}

    def plugins(self):
        return {
            'host': self.host,
            'metrics': [
                {'name': name, 'description': 'A metric.'}
                for name in self.known
            ],
            'policies': [{'name': 'P0', 'description': 'A policy.'}],
        }

    def preview(self, metric):
        if metric not in (None, *self.known):
            raise exception.UnknownPlugin(f'no metric {metric!r}')
        names = self.known if metric is None else (metric,)
        return {'host': self.host, 'metrics': [{'metric': n} for n in names]}

    def instance(self, uuid):
        if uuid not in self.vms:
            raise exception.UnknownInstance(f'no VM {uuid} on {self.host}')
        return {'host': self.host, 'round': 1, 'instance': {'uuid': uuid}}


class FakeCloud:
    """Servers and a client on the transport of tests.

    :param names: of the hosts; each knows all of them.
    """

    def __init__(self, *names):
        self.domain = f'domain-{next(_DOMAINS)}'
        conf = cfg.ConfigOpts()
        transport.register_opts(conf)
        self.transport = oslo_messaging.get_rpc_transport(
            conf,
            'fake://',
            allowed_remote_exmods=client.ALLOWED_REMOTE_MODULES,
        )
        self.agents = {name: FakeOperations(name, names) for name in names}
        self.servers = [
            server.FairnessServer(
                self.transport,
                self.domain,
                name,
                endpoint.FairnessEndpoint(agent),
            )
            for name, agent in self.agents.items()
        ]
        for item in self.servers:
            item.start()
        for item in self.servers:
            assert item.wait_ready(ENOUGH_S)

    def client(self, timeout_s=ENOUGH_S):
        return client.FairnessClient(self.transport, timeout_s, self.domain)

    def stop(self):
        # Their threads look up now and then only; nobody waits for that.
        for item in self.servers:
            threading.Thread(target=item.stop, daemon=True).start()
