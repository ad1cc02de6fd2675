# SPDX-License-Identifier: Apache-2.0

"""One MAC address behind two real taps: the kernel tells them apart."""

import fcntl
import itertools
import os
import pathlib
import struct
import subprocess
import sys
import time

import pytest

from nova_fairness.apply.network import commands
from nova_fairness.apply.network import kernel as network_kernel
from nova_fairness.apply.network import plan
from nova_fairness.apply.network import state
from nova_fairness.model import instance

pytestmark = [pytest.mark.real, pytest.mark.beside]

MAC = 'fa:16:3e:00:00:01'
OTHER = 'fa:16:3e:00:00:03'
FRAME_BYTES = 514
FRAMES = 50


def call(*words):
    return subprocess.run(
        words, check=True, capture_output=True, text=True
    ).stdout


def open_tap(name):
    """Make a tap, and be the VM behind it."""
    vm = os.open('/dev/net/tun', os.O_RDWR)
    flags = 0x0002 | 0x1000  # IFF_TAP | IFF_NO_PI
    wanted = struct.pack('16sH22x', name.encode(), flags)
    fcntl.ioctl(vm, 0x400454CA, wanted)  # TUNSETIFF
    call('ip', 'link', 'set', name, 'master', 'br0', 'up')
    return vm


def build():
    call('ip', 'link', 'add', 'up0', 'type', 'veth', 'peer', 'name', 'far0')
    call('ip', 'link', 'add', 'br0', 'type', 'bridge', 'forward_delay', '0')
    call('ip', 'link', 'set', 'up0', 'master', 'br0', 'up')
    for name in ('far0', 'br0'):
        call('ip', 'link', 'set', name, 'up')
    vms = {name: open_tap(name) for name in ('tapA', 'tapB')}
    while 'LOWER_UP' not in call('ip', 'link', 'show', 'br0'):
        time.sleep(0.1)
    while call('bridge', 'link').count('state forwarding') < 3:
        time.sleep(0.1)
    return vms


def steer(uplink, *, at_taps):
    """Alice and carol have classes; bob has alice's address, and none."""
    members = {}
    for key, mac, tap, rate in (
        ('alice', MAC, 'tapA', 10**8),
        ('carol', OTHER, 'tapC', 10**6),
    ):
        nic = instance.Nic(mac=mac, kind='bridge', tap=tap)
        members[key] = plan.with_class(members, key, [nic], rate)
    members = plan.with_duplicates(members, {'alice': {MAC: 'tapA'}})
    target = plan.NetworkTarget(uplink, at_taps, 10**9, members)
    if at_taps:
        members.pop('carol')  # her tap is not there
    for _, operation in steps_to(target):
        tool = 'ip' if operation[0] in commands.LINKS else 'tc'
        for line in commands.command_lines(operation):
            call(tool, *line.split())
    assert steps_to(target) == ()
    return members['alice'].minor


def steps_to(target):
    with network_kernel.KernelConnection() as reader:
        return plan.plan_steps(reader.read(), target, '')


def sent(device):
    """Bytes by class."""
    shown = call('tc', '-s', 'class', 'show', 'dev', device).splitlines()
    return {
        int(head.split()[2].partition(':')[2], 16): int(stats.split()[1])
        for head, stats in itertools.pairwise(shown)
        if head.startswith('class htb')
    }


def counted(vm, device, minor):
    """What is added to a class when a VM sends from alice's address."""
    source = MAC.replace(':', '')
    frame = bytes.fromhex(f'ffffffffffff{source}88b5')
    frame += bytes(FRAME_BYTES - len(frame))
    before = sent(device)
    for _ in range(FRAMES):
        os.write(vm, frame)
    after = sent(device)
    rest = after[state.REST] - before[state.REST]
    return after[minor] - before[minor], rest


def judge():
    vms = build()
    everything = FRAME_BYTES * FRAMES
    for uplink, at_taps in (('up0', False), ('', True)):
        device = uplink or state.IFB_OUT
        minor = steer(uplink, at_taps=at_taps)
        own, _ = counted(vms['tapA'], device, minor)
        assert own == everything, (device, own)
        theirs, _ = counted(vms['tapB'], device, minor)
        assert theirs == 0, (device, theirs)
    print('told apart')


def test_a_vm_that_copies_an_address_is_in_no_class():
    done = subprocess.run(
        ['unshare', '--net', sys.executable, __file__],
        env={
            'PATH': os.environ['PATH'],
            'PYTHONPATH': str(pathlib.Path(__file__).parents[2]),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert 'told apart' in done.stdout, done.stderr


if __name__ == '__main__':
    judge()
