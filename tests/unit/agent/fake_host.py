# SPDX-License-Identifier: Apache-2.0

"""A host of one CPU that exists in memory only."""

import dataclasses

import numpy as np

from nova_fairness import plugins
from nova_fairness.agent import settings
from nova_fairness.agent.round import cycle
from nova_fairness.agent.round import decision
from nova_fairness.agent.round import measurement
from nova_fairness.agent.steering import pinning
from nova_fairness.agent.steering import weight_check
from nova_fairness.agent.watch import cpu_shortfall
from nova_fairness.agent.watch import idle
from nova_fairness.apply import applier
from nova_fairness.apply import control
from nova_fairness.apply import found_values
from nova_fairness.decide.controls import cpu
from nova_fairness.decide.controls import scale
from nova_fairness.exchange import base
from nova_fairness.measure import idleness
from nova_fairness.model import instance
from nova_fairness.model import node
from nova_fairness.model import resources
from nova_fairness.model import sample
from nova_fairness.runtime import guard
from nova_fairness.runtime import state_file

CPU = resources.RESOURCES.index('cpu_time')
MEMORY = resources.RESOURCES.index('memory')
INTERVAL_S = 10.0
IDLE = 3
"""Shares that a group counts that is idle."""


def vm(name, user, **given):
    """Make an incarnation; its process id is its name's hash-free number."""
    return instance.Incarnation(
        instance.Instance(
            uuid=name,
            domain_name=f'domain-{name}',
            user_id=user,
            project_id=f'project-{user}',
            vcpus=1,
            memory_bytes=2**27,
            **given,
        ),
        pid=int(name.rsplit('-', 1)[1]),
        start_ticks=100,
    )


class FakeInventory:
    """Knows what the test says."""

    def __init__(self, *vms):
        self.vms = vms
        self.problem = ''

    def incarnations(self):
        return tuple(sorted(self.vms, key=lambda item: item.instance.uuid))


class FakeControl(control.Control):
    """Kernel units in a dictionary."""

    def __init__(self, kind=resources.ResourceControl.CPU, found=1024):
        self.kind = kind
        self.found = found
        self.held = {}
        self.calls = []
        self.fails = False
        self.refuses = set()
        self.writes = 0

    def unit_range(self):
        return 2, 262144

    def default(self):
        return self.found

    def availability(self):
        self._may_fail()
        return True, 'by the test'

    def observe(self, vms):
        self.calls.append('observe')
        self._may_fail()

    def settle(self):
        self.calls.append('settle')
        self._may_fail()
        return ()

    def release(self):
        self.calls.append('release')
        self._may_fail()
        return ()

    def _may_fail(self):
        if self.fails:
            raise OSError(5, 'Input/output error')

    def read(self, keys):
        self._may_fail()
        return {key: self.held.setdefault(key, self.found) for key in keys}

    def write(self, changes):
        self._may_fail()
        return tuple(self._write(item) for item in changes)

    def _write(self, change):
        key = change.knob.incarnation
        if key in self.refuses:
            return control.ApplyResult(change, f'{key}: refused by the test')
        self.held[key] = change.after
        self.writes += 1
        return control.ApplyResult(change)


class FakeScale(scale.Scale):
    """A hundred units to a weight; who wants is what the test says."""

    def __init__(self, kind, wants=()):
        self.control = kind
        self.wants = set(wants)
        self.fails = False

    def judge(self, facts):
        if self.fails:
            raise ZeroDivisionError('judged by the test')
        wanting = np.array(
            [item.instance.uuid in self.wants for item in facts.vms]
        )
        return int(wanting.sum()) > 1, wanting

    def units(self, weights, rows, facts):
        return [round(100 * float(weights[row])) for row in rows]

    def weight(self, held, row, last, facts):
        return held / 100 or 1.0


class FakeCpu:
    """One CPU, shared by weight among the VMs that want it.

    Also the counters: a reading gives what was used since the last one.
    """

    def __init__(self, shares):
        self.shares = shares
        self.clock_s = 1000.0
        self.wants = {}
        self.ignores_weights = False
        self._used = {}
        self._stalled = {}

    def run(self, vms, seconds):
        """Let the VMs compete for a while."""
        self.clock_s += seconds
        want = {
            item.key: seconds * self.wants.get(item.instance.uuid, 1.0)
            for item in vms
        }
        weight = {
            key: 1024
            if self.ignores_weights
            else self.shares.held.get(key, 1024) or IDLE
            for key in want
        }
        for key, got in _share(want, weight, seconds).items():
            self._used[key] = self._used.get(key, 0.0) + got
            short = min(seconds, max(0.0, want[key] - got))
            self._stalled[key] = self._stalled.get(key, 0.0) + short

    def read(self, vms):
        totals = np.zeros((len(vms), len(resources.RESOURCES)))
        totals[:, CPU] = [self._used.get(item.key, 0.0) for item in vms]
        totals[:, MEMORY] = [item.instance.memory_bytes for item in vms]
        return sample.Sample(
            time_s=self.clock_s,
            incarnations=tuple(vms),
            totals=totals,
            cpu_stall_s=np.array(
                [self._stalled.get(item.key, 0.0) for item in vms]
            ),
            read_at_s=np.full(len(vms), self.clock_s),
            cpu_busy_s=np.array([sum(self._used.values())]),
        )

    def close(self):
        """Nothing is open."""


def _share(want, weight, supply):
    """Share by weight; what one does not want the others get."""
    got = dict.fromkeys(want, 0.0)
    hungry = {key for key, amount in want.items() if amount > 0}
    while hungry and supply > 1e-9:
        total = sum(weight[key] for key in hungry)
        part = {key: supply * weight[key] / total for key in hungry}
        for key in sorted(hungry):
            taken = min(part[key], want[key] - got[key])
            got[key] += taken
            supply -= taken
        hungry = {key for key in hungry if want[key] - got[key] > 1e-9}
    return got


class FakePins:
    """Two cores; remembers who is kept on which."""

    def __init__(self):
        self.pins = {}
        self.elsewhere = set()

    def cores(self):
        return (0, 2)

    def may_pin(self, key, vcpus, cores):
        return key.split('/')[0] not in self.elsewhere

    def apply(self, pins):
        self.pins = dict(pins)
        return ()

    def lift(self):
        return self.apply({})

    def cores_of(self, name):
        return [
            core
            for (key, _), core in sorted(self.pins.items())
            if key.split('/')[0] == name
        ]


class FakeHost:
    """A node with everything real between the two fake ends."""

    def __init__(self, tmp_path, *vms, others=(), exchange=None, **options):
        self.control = FakeControl()
        self.others = dict(others)
        self.preferences = {}
        self.rates = {}
        self.best_effort = set()
        self.scheduler = ''
        self.pins = FakePins()
        self.cpu = FakeCpu(self.control)
        self.inventory = FakeInventory(*vms)
        self.gone = set()
        self.found = found_values.FoundValues(tmp_path / 'found.json')
        self.found.load()
        self.settings = _settings(**options)
        self.exchange = exchange or base.LoopbackExchange()
        self.node = node.NodeResources(
            host='fake',
            cpus=(0,),
            speed_factor=1.0,
            capacity=resources.RESOURCES.vector(
                cpu_time=1.0,
                disk_read=1e8,
                disk_written=1e8,
                net_received=1e8,
                net_sent=1e8,
                memory=2**32,
            ),
        )
        self.idling = idle.IdleMemory(
            state_file.StateFile(tmp_path / 'idle.json', durable=False),
            idleness.QuietLimits(0.02, 20000.0),
            self.node.speed_factor,
            lambda: self.cpu.clock_s,
        )
        self.cycle = self._cycle()

    def plugins(self):
        return cycle.Plugins(
            plugins.load_metric(self.settings.metric),
            plugins.load_policy(self.settings.policy),
        )

    def _cycle(self):
        a_guard = guard.Guard(self.settings.metric_deadline_s)

        def clock():
            return self.cpu.clock_s

        cpus = cpu.CpuScale(cpu.CgroupVersion.V1, lambda _: True)
        rooms = cycle.NodeCycleParts(
            inventory=self.inventory,
            counters=self.cpu,
            measurement=measurement.Measurement(
                self.node,
                self.exchange,
                a_guard,
                'boot',
                clock,
                rates=lambda _: self.rates,
            ),
            decision=decision.Decision(
                self.node,
                a_guard,
                {
                    resources.ResourceControl.CPU: cpus,
                    **{made.control: made for made in self.others.values()},
                },
            ),
            applier=applier.Applier(
                [self.control, *self.others],
                self.found,
                is_running=lambda key: key not in self.gone,
            ),
            guard=a_guard,
            node=self.node,
            preferences=lambda: self.preferences,
            best_effort=self.best_effort.intersection,
            proof=weight_check.WeightCheck(
                self.node, cpus, lambda: self.scheduler
            ),
            idling=self.idling,
            lacking=cpu_shortfall.CpuShortfall(self.node.speed_factor),
            pinning=pinning.Pinning(self.pins),
        )
        return cycle.Cycle(
            rooms, self.settings, self.plugins(), clock, lambda: 0.0
        )

    def change(self, **options):
        """Set options, as SIGHUP does."""
        self.settings = dataclasses.replace(self.settings, **options)
        self.cycle.reconfigure(self.settings, self.plugins())

    def rounds(self, count, *, seconds=INTERVAL_S):
        """Let VMs and agent run; give the last round."""
        done = None
        for _ in range(count):
            self.cpu.run(self.inventory.incarnations(), seconds)
            done = self.cycle.round()
        return done

    def shares(self, *names):
        by_uuid = {
            key.split('/')[0]: value
            for key, value in self.control.held.items()
        }
        return [by_uuid[name] for name in names]


def _settings(**options):
    return settings.Settings(
        **{
            'host': 'fake',
            'metric': 'DominantShareMetric',
            'policy': 'feedback',
            'interval_s': INTERVAL_S,
            'enforce': True,
            'entity': 'user',
            'decay_factor': 0.5,
            'max_weight_ratio': 20.0,
            'largest_step': 4.0,
            'metric_deadline_s': 5.0,
            'exempt': frozenset(),
            'quota_weights': {},
            'overcommit': np.ones(len(resources.RESOURCES)),
        }
        | options
    )
