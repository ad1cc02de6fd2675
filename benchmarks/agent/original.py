# SPDX-License-Identifier: Apache-2.0

"""One round as the original did it, as the yardstick of ``node_cycle.py``.

Per VM and round: libvirt's per-domain statistics (vCPU times, XML, disks,
interfaces, memory), three libvirt setters whether or not anything changed,
and four ``tc`` processes.
"""

import subprocess
import xml.etree.ElementTree as ET

import libvirt

_MATCH = 'u32 match ip src 10.0.0.1 flowid 1:99'


def _statistics(domain: libvirt.virDomain) -> tuple[list[float], list[str]]:
    """Ask libvirt for everything, one call after the other."""
    vcpus = domain.vcpus()[0]
    tree = ET.fromstring(domain.XMLDesc(0))
    read = written = received = sent = 0
    for disk in tree.findall('./devices/disk/target'):
        numbers = domain.blockStats(disk.get('dev'))
        read, written = read + numbers[1], written + numbers[3]
    taps = [
        target.get('dev')
        for target in tree.findall('./devices/interface/target')
    ]
    for tap in taps:
        numbers = domain.interfaceStats(tap)
        received, sent = received + numbers[0], sent + numbers[4]
    memory = domain.memoryStats()
    largest = domain.maxMemory()
    used = min(largest, memory.get('rss', largest))
    return [
        sum(item[2] for item in vcpus) / 1e9,
        read,
        written,
        received,
        sent,
        used,
    ], taps


def _set_values(domain: libvirt.virDomain, number: int) -> None:
    """Set all three values, as every round did."""
    live = libvirt.VIR_DOMAIN_AFFECT_LIVE
    domain.setSchedulerParametersFlags({'cpu_shares': 50 + number % 50}, live)
    domain.setMemoryParameters({'soft_limit': 65536}, live)
    domain.setBlkioParameters({'weight': 500 + number % 100}, live)


def _rebuild_queueing(tap: str) -> None:
    """Remove the tap's queueing and build it again, in four processes."""
    for arguments in (
        f'qdisc del dev {tap} root',
        f'qdisc add dev {tap} root handle 1: htb',
        f'class add dev {tap} parent 1: classid 1:99 htb rate 100mbit',
        f'filter add dev {tap} parent 1: protocol ip prio 1 {_MATCH}',
    ):
        # Deleting what is not there fails, as it did.
        subprocess.run(
            ['tc', *arguments.split()], check=False, capture_output=True
        )


def run_round(connection: libvirt.virConnect, number: int) -> int:
    """Do one round for all running VMs.

    :returns: how many VMs there were.
    """
    domains = connection.listAllDomains(
        libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
    )
    for domain in domains:
        _, taps = _statistics(domain)
        _set_values(domain, number)
        for tap in taps:
            _rebuild_queueing(tap)
    return len(domains)
