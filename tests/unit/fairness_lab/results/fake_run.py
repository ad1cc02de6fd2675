# SPDX-License-Identifier: Apache-2.0

"""Simulated runs for the tests of the laboratory's results.

A kernel that shares one CPU by weights, guests that want what they are told,
and an agent that moves weights towards equal parts of the users.
"""

import dataclasses
import math

from fairness_lab.ideal import maxmin
from fairness_lab.results import recording
from fairness_lab.results import reference

NODE = 'node1'
MEMORY = 2**27
SPEED = 5000.0
START_S = 1000.0
STEP_S = 0.5


@dataclasses.dataclass
class FakeRun:
    """What to simulate.

    :ivar vms: owner of each VM.
    :ivar demand: list of (from when on, VM, CPUs).
    :ivar events: list of (when, event, subject).
    """

    vms: dict
    demand: list
    name: str = 'one-node-cpu'
    events: list = dataclasses.field(default_factory=list)
    agents: bool = True
    metric: str = 'DominantShareMetric'
    policy: str = 'foresight'
    interval_s: float = 5.0
    duration_s: float = 120.0
    ratio: float = 20.0
    speed_without: float = 1.0
    user_weight: dict = dataclasses.field(default_factory=dict)
    expect: tuple = ()


def one_node_cpu(**changes):
    """Two busy VMs of one user against one of another."""
    vms = {'a1': 'alice', 'a2': 'alice', 'b1': 'bob'}
    demand = [(0.0, vm, math.inf) for vm in vms]
    return simulate(FakeRun(**{'vms': vms, 'demand': demand, **changes}))


def simulate(run):
    return _Machine(run).play()


class _Machine:
    def __init__(self, run):
        self.run = run
        self.cpu = dict.fromkeys(run.vms, 0.0)
        self.work = dict.fromkeys(run.vms, 0.0)
        self.weight = dict.fromkeys(run.vms, 1.0)
        self.seen = dict(self.cpu)
        self.readings = []
        self.rounds = []

    def play(self):
        steps = round(self.run.duration_s / STEP_S)
        for step in range(steps + 1):
            t_s = step * STEP_S
            if t_s == int(t_s):
                self._read(t_s)
            if self.run.agents and t_s and t_s % self.run.interval_s == 0:
                self._round(t_s)
            self._burn(t_s)
        return self._recording()

    def _demand(self, vm, t_s):
        cpu = 0.0
        for from_s, name, cpus in self.run.demand:
            if name == vm and from_s <= t_s:
                cpu = min(1.0, cpus)
        return 0.0 if self._frozen(vm, t_s) else cpu

    def _frozen(self, vm, t_s):
        frozen = False
        for from_s, event, subject in self.run.events:
            if subject == vm and from_s <= t_s and event in ('freeze', 'thaw'):
                frozen = event == 'freeze'
        return frozen

    def _burn(self, t_s):
        demand = {vm: self._demand(vm, t_s) for vm in self.run.vms}
        got = maxmin.water_fill(1.0, demand, self.weight)
        for vm, cpus in got.items():
            self.cpu[vm] += cpus * STEP_S
            self.work[vm] += cpus * STEP_S * self._speed(t_s)

    def _speed(self, t_s):
        speed = 100.0
        for from_s, event, _ in self.run.events:
            if from_s <= t_s and event == 'agents_stopped':
                speed = 100.0 * self.run.speed_without
            if from_s <= t_s and event == 'agents_started':
                speed = 100.0
        return speed

    def _read(self, t_s):
        for vm, user in self.run.vms.items():
            shares = round(1024 * self.weight[vm])
            self.readings.append(
                recording.Reading(
                    t_s,
                    NODE,
                    vm,
                    user,
                    round(self.cpu[vm], 6),
                    shares,
                    round(self.work[vm], 3),
                )
            )

    def _round(self, t_s):
        used = {vm: self.cpu[vm] - self.seen[vm] for vm in self.cpu}
        self.seen = dict(self.cpu)
        entry = self._entry(t_s)
        if self.run.policy == 'thesis':
            expected = reference.cpu_shares([*self.rounds, entry])[-1]
            for vm in self.weight:
                self.weight[vm] = expected.get(f'id-{vm}', 50)
        else:
            self._steer(used)
        for row in entry['instances'] if self.rounds else ():
            weight = self.weight[row['name']]
            kernel = weight if self.run.policy == 'thesis' else 1024 * weight
            # The record names every control, steered or not.
            row['weights'] = {'cpu': weight, 'memory': 1.0}
            row['wanted'] = row['applied'] = {'cpu': round(kernel)}
        self.rounds.append(entry)

    def _steer(self, used):
        waiting = [vm for vm, cpu in used.items() if cpu > 0]
        users = {self.run.vms[vm] for vm in waiting}
        if len(users) < 2:
            return
        for user in users:
            mine = [vm for vm in waiting if self.run.vms[vm] == user]
            part = sum(used[vm] for vm in mine) / sum(used.values())
            for vm in mine:
                self.weight[vm] *= (1 / len(users) / part) ** 0.5
        least = min(self.weight.values())
        for vm in self.weight:
            self.weight[vm] = min(self.run.ratio, self.weight[vm] / least)

    def _entry(self, t_s):
        rows = [
            {
                'uuid': f'id-{vm}',
                'incarnation': f'id-{vm}/17/4711',
                'read_at_s': START_S + t_s,
                'domain': f'instance-{vm}',
                'name': vm,
                'user': user,
                'vcpus': 1,
                'memory_bytes': MEMORY,
                'counters': {
                    'cpu_time': self.cpu[vm],
                    'disk_read': 0.0,
                    'disk_written': None,
                    'net_received': 0.0,
                    'net_sent': 0.0,
                    'memory': MEMORY / 2,
                },
            }
            for vm, user in self.run.vms.items()
        ]
        return {
            'version': 1,
            'round': len(self.rounds) + 1,
            'time_s': START_S + t_s,
            'node': {
                'cpus': [0],
                'speed_factor': SPEED,
                'capacity': {
                    'cpu_time': SPEED,
                    'disk_read': 1e8,
                    'disk_written': 1e8,
                    'net_received': 1e8,
                    'net_sent': 1e8,
                    'memory': 2.0**30,
                },
            },
            'instances': rows,
        }

    def _recording(self):
        run = self.run
        users = sorted(set(run.vms.values()))
        scenario = {
            'name': run.name,
            'nodes': [{'name': NODE, 'cpus': [0]}],
            'users': [
                {'name': user, 'weight': run.user_weight.get(user, 1)}
                for user in users
            ],
            'vms': [
                {'name': vm, 'user': user, 'node': NODE, 'vcpus': 1}
                for vm, user in run.vms.items()
            ],
            'expect': [dataclasses.asdict(item) for item in run.expect],
        }
        meta = {
            'scenario': scenario,
            'name': run.name,
            'backend': 'fake',
            'options': {
                'metric': run.metric,
                'policy': run.policy,
                'interval_s': run.interval_s,
                'duration_s': run.duration_s,
                'agents': run.agents,
                'max_weight_ratio': run.ratio,
            },
            'monotonic_start_s': START_S,
            'wall_start': 1.7e9,
            'version': '0.0.1',
            'machine': {'cpu': 'simulated'},
        }
        return recording.Recording(
            meta,
            tuple(self.readings),
            tuple(recording.EventRow(*item) for item in run.events),
            tuple(recording.Offer(*item) for item in sorted(run.demand)),
            {NODE: tuple(self.rounds)} if self.rounds else {},
        )
