# SPDX-License-Identifier: Apache-2.0


"""The real kernel divides real packets, and is left as it was found."""

import contextlib
import itertools
import json
import pathlib
import re
import subprocess
import sys
import threading

import pytest

from fairness_lab.testbed.traffic import network_agent
from fairness_lab.testbed.traffic import traffic
from fairness_lab.testbed.traffic import wire

pytestmark = pytest.mark.real

FIRST, SECOND, THIRD = (wire.WiredGuest(number) for number in (1, 2, 3))
DOUBLE = wire.WiredGuest(4, nics=2)
MBIT = 125_000
LINK = 40 * MBIT
AT_UPLINK = ('--layout', 'uplink', '--uplink', wire.UPLINK)
AT_TAPS = ('--layout', 'tap')
AT_BOTH = (*AT_TAPS, '--uplink', wire.UPLINK)


@pytest.fixture
def node():
    with wire.Wire([FIRST, SECOND, DOUBLE]) as made:
        yield made


LAYOUTS = {'uplink': AT_UPLINK, 'tap': AT_TAPS, 'both': AT_BOTH}


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS)
def layout(request):
    return request.param


@pytest.fixture
def start(node, tmp_path):
    def started(layout, *options, places=(FIRST, SECOND, DOUBLE)):
        agent = network_agent.NetworkAgent(
            node,
            tmp_path / 'network.json',
            [*layout, '--bandwidth', str(LINK), *options],
        )
        agent.see(places)
        return agent

    return started


def qdiscs(node):
    told = node.run('node', ['tc', 'qdisc', 'show'])
    return re.sub('direct_packets_stat [0-9]+', '', told)


def test_classes_are_made_read_changed_and_removed(node, start, layout):
    before = qdiscs(node), node.run('node', ['ip', '-o', 'link']).count('\n')
    agent = start(layout)
    assert agent.read() == {'g1': 0, 'g2': 0, 'g4': 0}
    rates = {'g1': 10 * MBIT, 'g2': 20 * MBIT, 'g4': MBIT}
    assert agent.write(rates) == {}
    assert agent.read() == rates
    assert 'htb fa12:' in qdiscs(node)
    other = {'g1': 20 * MBIT, 'g2': 10 * MBIT, 'g4': 123_457}
    assert agent.write(other) == {}
    assert agent.read() == other
    assert agent.write(dict.fromkeys(rates, 0)) == {}
    links = node.run('node', ['ip', '-o', 'link']).count('\n')
    assert (qdiscs(node), links) == before


@pytest.mark.parametrize('helped', [(), ('--helper',)])
def test_the_helper_makes_the_links_it_is_asked_for(
    node, start, layout, helped
):
    agent = start(layout, *helped)
    assert agent.write({'g1': MBIT, 'g4': MBIT}) == {}
    assert agent.read() == {'g1': MBIT, 'g2': 0, 'g4': MBIT}
    assert agent.ask('release') == []
    assert 'fa12:' not in qdiscs(node)


def test_classes_of_a_killed_agent_are_taken_over_or_removed(
    node, start, layout
):
    before = qdiscs(node)
    agent = start(layout)
    agent.write({'g1': MBIT, 'g2': 2 * MBIT})
    agent.kill()
    agent = start(layout)
    assert agent.read() == {'g1': MBIT, 'g2': 2 * MBIT, 'g4': 0}
    agent.kill()
    agent = start(layout, places=())
    assert agent.ask('release') == []
    assert qdiscs(node) == before


SPOIL = {
    'class': 'class change dev nfair-in parent fa12:1 classid fa12:10 '
    'htb rate 1mbit',
    'class gone': 'filter del dev nfair-in parent fa12:',
    'tree': 'qdisc del dev nfair-in root',
}


@pytest.mark.parametrize('spoil', SPOIL)
def test_a_change_by_hand_is_repaired(node, start, layout, spoil):
    agent = start(layout)
    rates = {'g1': MBIT * 2, 'g2': 3 * MBIT, 'g4': MBIT}
    agent.write(rates)
    node.run('node', ['tc', *SPOIL[spoil].split()])
    assert agent.read()['g1'] == 0
    assert agent.write(rates) == {}
    assert agent.read() == rates


def test_an_interface_that_was_removed_by_hand_is_restored(
    node, start, layout
):
    agent = start(layout)
    agent.write({'g1': MBIT})
    node.run('node', ['ip', 'link', 'del', 'nfair-in'])
    assert agent.read()['g1'] == 0
    assert agent.write({'g1': MBIT}) == {}
    assert agent.read()['g1'] == MBIT


def test_vms_come_and_go_between_reading_and_writing(node, start, layout):
    agent = start(layout)
    agent.write({'g1': MBIT, 'g2': MBIT})
    node.unplug(SECOND)
    node.plug(THIRD)
    failed = agent.ask('write', {'g1': 2 * MBIT, 'g2': 2 * MBIT})['errors']
    assert set(failed) <= {'g2'}
    agent.see([FIRST, THIRD, DOUBLE])
    assert agent.ask('settle') == []
    assert agent.write({'g3': MBIT}) == {}
    assert agent.read() == {'g1': 2 * MBIT, 'g3': MBIT, 'g4': 0}


FOREIGN_AT_UPLINK = [
    'qdisc add dev up0 root handle 1: htb default 1',
    'qdisc add dev up0 root tbf rate 1gbit burst 1mb latency 9ms',
    'qdisc add dev up0 clsact',
]


@pytest.mark.parametrize('foreign', FOREIGN_AT_UPLINK)
def test_a_foreign_qdisc_of_the_uplink_stays(node, start, foreign):
    node.run('node', ['tc', *foreign.split()])
    before = qdiscs(node)
    agent = start(AT_UPLINK)
    assert agent.write({'g1': MBIT})['g1'] != ''
    assert agent.read() == {}
    works, why = agent.ask('said')['availability']
    assert not works
    assert 'without effect' in why
    assert agent.ask('release') == []
    assert qdiscs(node) == before


def test_foreign_filters_of_a_tap_stay(node, start):
    # as Neutron's QoS and libvirt's <bandwidth> do it
    for line in (
        'qdisc add dev tap1-0 root handle 1: htb default 1',
        'qdisc add dev tap1-0 ingress',
    ):
        node.run('node', ['tc', *line.split()])
    before = qdiscs(node)
    agent = start(AT_TAPS)
    assert agent.read() == {'g2': 0, 'g4': 0}
    assert 'tap1-0' in agent.ask('said')['without_effect']['g1/1/1']
    assert agent.write({'g2': MBIT}) == {}
    assert agent.ask('release') == []
    assert qdiscs(node) == before


def part(passed, name, direction=traffic.OUT):
    both = [passed.mbit_s[one, direction] for one in ('g1', name)]
    return both[1] / both[0]


def found_in_time(wanted, measure):
    """Measure until it is as wanted, three times at most.

    A machine with something else to do sends too little for a while.
    """
    for _ in range(3):
        found = measure()
        if found == wanted:
            break
    return found


LOADS = {
    'many flows': {'flows': 4},
    'datagrams': {'udp_mbit_s': 60.0},
    'IPv6': {'six': True},
}


def together():
    """Layouts with loads and directions.

    Those that are not slow hold each direction with each layout and with each
    load.
    """
    for places in itertools.product(range(3), range(3), range(2)):
        layout, load = list(LAYOUTS)[places[0]], list(LOADS)[places[1]]
        direction = (traffic.OUT, traffic.IN)[places[2]]
        yield pytest.param(
            LAYOUTS[layout],
            LOADS[load],
            direction,
            id=f'{layout}-{load}-{direction}',
            marks=[pytest.mark.slow] if sum(places) % 3 else [],
        )


@pytest.mark.parametrize(('layout', 'more', 'direction'), list(together()))
def test_traffic_is_divided_by_the_rates_of_classes(
    node, start, layout, more, direction
):
    agent = start(layout)
    agent.write({'g1': 9 * MBIT, 'g2': 27 * MBIT})
    heavy = traffic.Flow(FIRST, direction, **more)
    light = traffic.Flow(
        SECOND, direction, six=heavy.six, udp_mbit_s=heavy.udp_mbit_s
    )
    # Undivided it is 0.25 to 1. Nearer than this the benchmark looks.
    wanted = pytest.approx(3.0, rel=0.25)
    assert wanted == found_in_time(
        wanted,
        lambda: part(
            traffic.TrafficFlows(node).run([heavy, light], 3.0),
            'g2',
            direction,
        ),
    )


def test_a_lone_sender_gets_the_whole_link(node, start, layout):
    agent = start(layout)
    agent.write({'g1': MBIT, 'g2': 30 * MBIT})
    wanted = pytest.approx(40, rel=0.07)

    def sent():
        passed = traffic.TrafficFlows(node).run([traffic.Flow(FIRST)], 2.0)
        return passed.mbit_s['g1', traffic.OUT]

    assert wanted == found_in_time(wanted, sent)


def test_all_interfaces_of_a_vm_share_its_class(node, start, layout):
    agent = start(layout)
    agent.write({'g1': 18 * MBIT, 'g4': 18 * MBIT})
    flows = [
        traffic.Flow(FIRST),
        traffic.Flow(DOUBLE),
        traffic.Flow(DOUBLE, nic=1),
    ]
    # Undivided it is 2.
    wanted = pytest.approx(1.0, rel=0.25)
    assert wanted == found_in_time(
        wanted, lambda: part(traffic.TrafficFlows(node).run(flows, 3.0), 'g4')
    )


def frames(node, name, *words):
    script = pathlib.Path(__file__).with_name('tagged_frames.py')
    return node.popen(
        name, [sys.executable, str(script), *words], stdout=subprocess.PIPE
    )


LED = pytest.approx(3.0, rel=0.1)
"""Undivided it is 1."""


def ratio_of_tagged(node, sending, counted):
    """Rate of the second VM's tagged frames, as a multiple of the first's.

    :param sending: (where, source, destination) of each sender.
    :param counted: where each VM's frames arrive.
    """
    senders = [
        frames(node, name, 'send', 'eth0', source, to, '8')
        for name, source, to in sending
    ]
    counting = {
        name: frames(node, name, 'count', 'eth0', '2') for name in set(counted)
    }
    came = {
        name: json.loads(one.communicate()[0])
        for name, one in counting.items()
    }
    for sender in senders:
        sender.kill()
        sender.wait()
    rates = [
        came[name].get(place.macs[0], 0.0)
        for name, place in zip(counted, (FIRST, SECOND), strict=True)
    ]
    return rates[1] / rates[0] if rates[0] else 0.0


def test_sent_vlan_frames_are_divided_like_untagged_frames(
    node, start, layout
):
    agent = start(layout)
    agent.write({'g1': 9 * MBIT, 'g2': 27 * MBIT})
    sending = [
        (place.name, place.macs[0], wire.FAR_MAC) for place in (FIRST, SECOND)
    ]
    assert (
        found_in_time(
            LED, lambda: ratio_of_tagged(node, sending, [wire.FAR, wire.FAR])
        )
        == LED
    )


def test_received_vlan_frames_are_divided_like_untagged_frames(
    node, start, layout
):
    agent = start(layout)
    agent.write({'g1': 9 * MBIT, 'g2': 27 * MBIT})
    sending = [
        (wire.FAR, wire.FAR_MAC, place.macs[0]) for place in (FIRST, SECOND)
    ]
    counted = [place.name for place in (FIRST, SECOND)]
    assert (
        found_in_time(LED, lambda: ratio_of_tagged(node, sending, counted))
        == LED
    )


@contextlib.contextmanager
def changing(agent):
    """Change all classes again and again."""
    stop = threading.Event()
    failed = []

    def change():
        turn = 0
        while not stop.wait(0.05):
            turn += 1
            low, high = (12, 24) if turn % 2 else (24, 12)
            rates = {'g1': low * MBIT, 'g2': high * MBIT}
            failed.append(agent.write(rates))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield failed
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize('direction', [traffic.OUT, traffic.IN])
def test_no_packet_is_lost_while_classes_change(
    node, start, layout, direction
):
    agent = start(layout)
    agent.write({'g1': 18 * MBIT, 'g2': 18 * MBIT})
    flows = [
        traffic.Flow(FIRST, direction, udp_mbit_s=10.0),
        traffic.Flow(SECOND, direction, udp_mbit_s=10.0),
    ]
    passed = traffic.TrafficFlows(node).run(flows, 2.0, changing(agent))
    assert min(passed.sent.values()) > 1000
    # What a busy machine's programs come too late for is lost behind us.
    late = sum(late_for(node, name) for name in ('far', 'g1', 'g2'))
    assert sum(passed.lost.values()) <= late
    assert 'dropped 0,' in told_of_classes(node)
    assert not re.search('dropped [1-9]', told_of_classes(node))


def told_of_classes(node):
    told = node.run('node', ['tc', '-s', 'class', 'show', 'dev', 'nfair-in'])
    device = 'nfair-out' if 'nfair-out' in qdiscs(node) else wire.UPLINK
    return told + node.run(
        'node', ['tc', '-s', 'class', 'show', 'dev', device]
    )


def late_for(node, name):
    lines = node.run(name, ['cat', '/proc/net/snmp']).splitlines()
    names, values = (line.split() for line in lines if line[:4] == 'Udp:')
    return int(values[names.index('RcvbufErrors')])


def test_traffic_of_the_host_gets_its_minimum_rate(node, start):
    agent = start(AT_UPLINK, '--host-rate', str(10 * MBIT))
    capacity = agent.ask('said')['capacity']
    agent.write({'g1': capacity // 2, 'g2': capacity // 2})
    port = '5100'
    client = f'iperf3 -c {wire.FAR_ADDRESS} -p {port} -t 6'
    node.popen(wire.FAR, ['iperf3', '-s', '-1', '-p', port])
    host = node.popen('node', ['sh', '-c', f'sleep 0.5; {client}'])
    flows = [traffic.Flow(FIRST, flows=4), traffic.Flow(SECOND, flows=4)]
    passed = traffic.TrafficFlows(node).run(flows, 3.0)
    vms = sum(passed.mbit_s[name, traffic.OUT] for name in ('g1', 'g2'))
    host.wait()
    assert vms < 40 - 0.9 * 10
