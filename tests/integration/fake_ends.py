# SPDX-License-Identifier: Apache-2.0

"""Whole agents in one process: only what they read and write is fake."""

import functools
import time

from oslo_config import cfg

from nova_fairness.agent import assembly
from nova_fairness.agent import service
from nova_fairness.agent.steering import controls
from nova_fairness.apply import applier
from nova_fairness.conf import opts
from nova_fairness.decide.controls import cpu
from nova_fairness.model import node as node_model
from nova_fairness.model import resources
from tests.unit.agent import fake_host

PATIENCE_S = 60.0
INTERVAL_S = 0.2


class FakeInventory(fake_host.FakeInventory):
    """Knows at once what the test says."""

    problem = ''

    def start(self):
        """Nothing to start."""

    def stop(self):
        """Nothing to stop."""

    def look_again(self):
        """There is nothing that it does not know."""

    def wait_ready(self, timeout_s):
        return True


class FakeControl(fake_host.FakeControl):
    """CPU shares in a dictionary, like those of control groups v1."""

    version = 1

    def close(self):
        """Nothing is open."""


class FakeCpu(fake_host.FakeCpu):
    """One CPU that its VMs share in real time."""

    def __init__(self, shares):
        super().__init__(shares)
        self.clock_s = time.monotonic()

    def read(self, vms):
        self.run(vms, time.monotonic() - self.clock_s)
        return super().read(vms)


class Node:
    """An agent, assembled and started as the program does.

    :param directory: keeps its state; another life may use it again.
    :param options: of the group ``fairness``, or ``group.option``.
    """

    def __init__(self, url, directory, name, *vms, **options):
        self.name = name
        self.control = FakeControl()
        self.conf = configuration(url, directory / name, name, options)
        self._ends = {
            'node_resources': lambda conf: resources_of(name),
            'controls_module': Namespace(
                ControlContext=controls.ControlContext,
                PressureWatch=controls.PressureWatch,
                build_controls=lambda site: self._controls(),
            ),
        }
        self._vms = vms
        self.agent = service.FairnessService(self.conf, self._built())
        self.agent._take_signals = lambda: None
        self.agent.start()

    def _controls(self):
        return controls.Controls(
            built=[self.control],
            scales={
                resources.ResourceControl.CPU: cpu.CpuScale(
                    cpu.CgroupVersion.V1
                )
            },
        )

    def _built(self):
        """Assemble it with other ends; all between them is real."""
        real = {
            name: getattr(assembly, name)
            for name in (
                'inventory',
                'counters',
                'applier_module',
                *self._ends,
            )
        }
        fakes = {
            **self._ends,
            'inventory': Namespace(
                VmInventory=lambda *_, **__: FakeInventory(*self._vms)
            ),
            'counters': Namespace(CounterReader=lambda: FakeCpu(self.control)),
            'applier_module': Namespace(
                Applier=functools.partial(
                    applier.Applier, is_running=lambda key: True
                )
            ),
        }
        try:
            vars(assembly).update(fakes)
            parts = assembly.build(self.conf)
        finally:
            vars(assembly).update(real)
        object.__setattr__(parts, 'warm_up', lambda: None)
        return parts

    @property
    def newest(self):
        """The last finished round, if any."""
        return self.agent._collector.newest

    def shares(self):
        return {
            key.split('/')[0]: held for key, held in self.control.held.items()
        }

    def stop(self):
        self.agent.stop()
        self.agent.wait()


class Namespace:
    """Stands for a module."""

    def __init__(self, **names):
        vars(self).update(names)


def resources_of(name):
    return node_model.NodeResources(
        host=name,
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


def configuration(url, directory, name, options):
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override('transport_url', url)
    conf.set_override('prometheus_port', 0, group='fairness_observe')
    for option, value in {
        'host': name,
        'interval': INTERVAL_S,
        'state_path': str(directory),
        **options,
    }.items():
        group, _, name = option.rpartition('.')
        conf.set_override(name, value, group=group or 'fairness')
    return conf
