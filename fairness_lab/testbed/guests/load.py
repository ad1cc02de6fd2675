# SPDX-License-Identifier: Apache-2.0

"""What a guest is told when its load changes: pure."""

from fairness_lab.scenario import demand
from fairness_lab.testbed.nodes import network

_MIB = 1 << 20


def commands(
    index: int, step: demand.Step, *, uplink: bool = False
) -> list[str]:
    """Give the guest's commands for what a step changes.

    :param index: number of the guest's node in its run.
    :param uplink: whether that node has an uplink.
    """
    found = []
    if step.cpu is not None:
        found.append(_cpu(step.cpu, step.cycle))
    if step.memory_mib is not None:
        found.append(f'memory {int(step.memory_mib * _MIB)}')
    if step.disk_read_mib_s is not None or step.disk_write_mib_s is not None:
        read = _amount((step.disk_read_mib_s or 0) * _MIB)
        write = _amount((step.disk_write_mib_s or 0) * _MIB)
        block = step.disk_block_kib << 10
        found.append(f'disk {read} {write} {block} {step.disk_depth}')
    if step.net_send_mbit_s is not None:
        host = network.FAR_ADDRESS
        if not uplink:
            host = network.addresses(index, 0, 0)[0].split('/')[0]
        rate = _amount(step.net_send_mbit_s * 1e6 / 8)
        found.append(f'net {host} {network.SINK_PORT} {rate}')
    for word, port, flows in (
        ('tcp-send', network.SINK_PORT, step.tcp_send_flows),
        ('tcp-receive', network.SOURCE_PORT, step.tcp_receive_flows),
    ):
        if flows is not None:
            found.append(f'{word} {network.FAR_ADDRESS} {port} {flows}')
    if step.wake_hz is not None:
        found.append(f'wake {step.wake_hz:.6f}')
    return found


def _cpu(cpu: float, cycle: demand.Cycle | None) -> str:
    if cycle is None:
        return f'cpu {_amount(cpu)}'
    if cycle.load is demand.Load.CRON:
        return f'cron {cpu:.6f} {cycle.wait_s:.6f}'
    return f'closed {cpu:.6f} {cycle.threads} {cycle.wait_s:.6f}'


def _amount(value: float) -> str:
    return 'max' if value == demand.MAXIMUM else f'{value:.6f}'
