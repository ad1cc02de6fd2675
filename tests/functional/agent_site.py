# SPDX-License-Identifier: Apache-2.0

"""A node with three busy guests, of which agents of tests take care.

One CPU for the guests, two of which are ann's and one is bob's.
"""

import contextlib
import os
import pathlib
import types

import libvirt

from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed import qemu
from fairness_lab.testbed.guests import guest as lab_guest
from fairness_lab.testbed.guests import image
from fairness_lab.testbed.nodes import node as lab_node

BOOT_S = 120.0
FOUND = {'ann-1': 2000, 'ann-2': 1024, 'bob-1': 1024}
"""What the guests have before any agent comes."""


class Site:
    """The node with its guests, by name."""

    def __init__(self, node, boot):
        self.node = node
        self.guests = {}
        self._boot = boot

    @contextlib.contextmanager
    def libvirt(self):
        connection = libvirt.open(self.node.libvirt_uri)
        try:
            yield connection
        finally:
            connection.close()

    def start(self, name, **options):
        spec = scenario_module.Vm(name, name.split('-')[0], **options)
        made = lab_guest.Guest(self.node, spec, self._boot)
        with self.libvirt() as connection:
            made.start(connection)
        return made

    def destroy(self, guest):
        with self.libvirt() as connection:
            guest.destroy(connection)

    @contextlib.contextmanager
    def domain(self, name):
        with self.libvirt() as connection:
            yield connection.lookupByUUIDString(self.guests[name].uuid)

    def shares(self):
        return {
            name: guest.cpu_shares() for name, guest in self.guests.items()
        }

    def crowd(self):
        """Leave the guests one CPU, and the agents all that there are."""
        for path in reversed(self._cpusets()):
            path.write_text(str(self.node.cpus[0]))

    def spread(self):
        """Let the guests use all CPUs of this machine."""
        cpus = pathlib.Path('/sys/devices/system/cpu/online').read_text()
        for path in self._cpusets():
            path.write_text(cpus)

    @staticmethod
    def cpus_of(guest):
        """CPUs on which each VCPU of a guest may run."""
        found = {}
        for path in pathlib.Path(f'/proc/{guest.pid}/task').iterdir():
            words = (path / 'comm').read_text().split()
            if words[0] == 'CPU':
                number = int(words[1].partition('/')[0])
                found[number] = os.sched_getaffinity(int(path.name))
        return [found[number] for number in sorted(found)]

    def _cpusets(self):
        """Files of the groups of guests, those above first."""
        tops = [each / 'machine' for each in self.node.groups.directories()]
        found = [path for top in tops for path in top.rglob('cpuset.cpus')]
        return sorted(found, key=lambda path: len(path.parts))


@contextlib.contextmanager
def running(name, guests=types.MappingProxyType(FOUND)):
    """A node whose guests want more than its CPU; it ends with the block.

    :param name: of the node.
    :param guests: CPU shares that they have, by name.
    """
    run = qemu.begin_run(os.getpid())
    cpu = min(os.sched_getaffinity(0))
    node = lab_node.TestNode(name, run, image.default_cache(), [cpu])
    try:
        node.start()
        made = Site(node, image.ensure(image.default_cache()))
        for guest, shares in guests.items():
            tune = {'shares': str(shares)}
            made.guests[guest] = made.start(guest, cputune=tune)
        for guest in made.guests.values():
            guest.await_ready(BOOT_S)
        made.crowd()
        for guest in made.guests.values():
            guest.command('cpu 1')
        yield made
        for guest in made.guests.values():
            guest.hang_up()
        node.stop()
    finally:
        qemu.finish_run(run)


def applied_weights(done):
    return {
        item['name']: item['applied']['cpu']
        for item in done['instances']
        if 'cpu' in item['applied']
    }


def is_steered(done):
    """Tell whether the agent found a competition and moved every weight."""
    held = applied_weights(done)
    return (
        done['enforced']
        and held.keys() == FOUND.keys()
        and all(abs(held[name] / FOUND[name] - 1) > 0.05 for name in held)
        and held['bob-1'] / held['ann-2'] > 1.4
    )


def names_error(done, text):
    return any(text in error for error in done['errors'])


def is_measured(done, *names):
    used = {
        item['name']: item['usage']['cpu_time']
        for item in done['instances']
        if item.get('known')
    }
    return all(used.get(name, 0) > 0 for name in names)
