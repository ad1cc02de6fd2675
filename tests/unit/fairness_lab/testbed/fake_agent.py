# SPDX-License-Identifier: Apache-2.0

"""The agent's own cycle on a fake node, which has nothing but a CPU."""

import configparser

from oslo_config import cfg

from nova_fairness import plugins
from nova_fairness.agent import settings as settings_module
from nova_fairness.agent.round import cycle
from nova_fairness.agent.round import decision
from nova_fairness.agent.round import measurement
from nova_fairness.apply import applier
from nova_fairness.apply import control
from nova_fairness.apply import found_values
from nova_fairness.conf import opts
from nova_fairness.decide.controls import cpu
from nova_fairness.exchange import base as exchange_base
from nova_fairness.model import resources
from nova_fairness.observe import record
from nova_fairness.runtime import guard


class FakeExchange(exchange_base.Exchange):
    """What one host says and hears."""

    def __init__(self, mesh, node):
        self._mesh = mesh
        self._node = node

    def publish(self, node_report):
        self._mesh.publish(node_report, self._node.now_s)

    def view(self, now_s, metric=''):
        return self._mesh.view(self._node.spec.name, now_s)


class FakeShares(control.Control):
    """CPU shares of a fake node's VMs."""

    kind = resources.ResourceControl.CPU

    def __init__(self, node):
        self._node = node

    def _vms(self):
        return {vm.incarnation.key: vm for vm in self._node.vms.values()}

    def unit_range(self):
        return 2, 262144

    def availability(self):
        return True, 'fake'

    def read(self, keys):
        return {
            key: vm.shares for key, vm in self._vms().items() if key in keys
        }

    def write(self, changes):
        return tuple(map(self._written, changes))

    def _written(self, change):
        vm = self._vms().get(change.knob.incarnation)
        if vm is None:
            return control.ApplyResult(change, gone=True)
        vm.shares = change.after
        return control.ApplyResult(change)


class FakeInventory:
    """VMs of a fake node."""

    problem = ''

    def __init__(self, node):
        self._node = node

    def incarnations(self):
        return self._node.sample().incarnations


class FakeCounters:
    """Counters of a fake node."""

    def __init__(self, node):
        self._node = node

    def read(self, vms):
        return self._node.sample()


class FakeAgent:
    """One agent; its memory ends with it.

    :param node: on which it works.
    :param settings: value by option by section.
    :param mesh: through which it hears the others.
    :param rounds: file of its record.
    """

    def __init__(self, node, settings, mesh, rounds):
        self._node = node
        self._mesh = mesh
        rounds.parent.mkdir(parents=True, exist_ok=True)
        conf = _options(settings, rounds.with_name('agent.conf'))
        self._settings = settings_module.from_conf(conf)
        self._guard = guard.Guard(self._settings.metric_deadline_s)
        self._found = found_values.FoundValues(rounds.with_name('found.json'))
        self._found.load()
        self._cycle = self._made()
        self._recorder = record.RoundRecorder(rounds)
        self.next_s = node.now_s
        mesh.join(node.spec.name)

    def _made(self):
        def clock():
            return self._node.now_s

        shares = FakeShares(self._node)
        rooms = cycle.NodeCycleParts(
            inventory=FakeInventory(self._node),
            counters=FakeCounters(self._node),
            measurement=measurement.Measurement(
                self._node.resources,
                FakeExchange(self._mesh, self._node),
                self._guard,
                'fake',
                clock,
            ),
            decision=decision.Decision(
                self._node.resources,
                self._guard,
                {FakeShares.kind: cpu.CpuScale(cpu.CgroupVersion.V1)},
            ),
            applier=applier.Applier(
                [shares],
                self._found,
                is_running=lambda key: bool(shares.read([key])),
            ),
            guard=self._guard,
            node=self._node.resources,
        )
        chosen = cycle.Plugins(
            plugins.load_metric(self._settings.metric),
            plugins.load_policy(self._settings.policy),
        )
        return cycle.Cycle(rooms, self._settings, chosen, clock, clock)

    def round(self):
        """Run a round and say when the next one is due."""
        self._recorder.add(self._cycle.round())
        self.next_s += self._settings.interval_s

    def stop(self):
        """Every VM what it was found with."""
        self._cycle.restore()
        self.kill()

    def kill(self):
        """End as a crash would."""
        self._mesh.leave(self._node.spec.name)
        self._recorder.close()
        self._guard.stop()
        self._found.close()


def _options(settings, path):
    """Options of a file as the laboratory writes it."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_dict(settings)
    with path.open('w') as stream:
        parser.write(stream)
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    conf([], project='nova-fairness-lab', default_config_files=[str(path)])
    return conf
