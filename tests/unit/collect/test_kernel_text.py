# SPDX-License-Identifier: Apache-2.0

"""Text of the kernel's files, as recorded."""

import pytest

from nova_fairness.collect import kernel_text

STAT = (
    b'4242 (a) b) c) S 1 4242 4242 0 -1 4194624 100 0 0 0 250 125 0 0 20 0 5'
    b' 0 987654 1000000 2000 18446744073709551615 1 1 0 0 0 0 0 0 0\n'
)
IO = (
    b'rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\n'
    b'read_bytes: 4096\nwrite_bytes: 323932160\ncancelled_write_bytes: 0\n'
)
NET_DEV = (
    b'Inter-|   Receive                            |  Transmit\n'
    b' face |bytes    packets errs drop fifo frame compressed multicast|bytes'
    b'    packets errs drop fifo colls carrier compressed\n'
    b'    lo: 100 2 0 0 0 0 0 0 100 2 0 0 0 0 0 0\n'
    b'tap0:18446744073709551615 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n'
    b'tap-none: 1 2\n'
)


def test_a_program_name_with_brackets_hides_no_field():
    assert kernel_text.start_ticks(STAT) == 987654


@pytest.mark.parametrize(
    ('state', 'ended'), [(b'S', False), (b'T', False), (b'Z', True)]
)
def test_a_process_that_was_not_reaped_has_ended(state, ended):
    text = STAT.replace(b') S ', b') ' + state + b' ')
    assert kernel_text.has_ended(text) is ended


def test_cpu_ticks_are_user_and_system():
    assert kernel_text.cpu_ticks(STAT) == 375


def test_busy_is_all_but_idle_and_waiting_for_disks_per_cpu():
    text = (
        b'cpu  9 9 9 9 9 9 9 9 9 9\n'
        b'cpu0 1 2 3 1000 500 4 5 6 70 80\n'
        b'cpu3 10 0 0 9 9 0 0 0 0 0\n'
        b'intr 1 2 3\n'
    )
    assert kernel_text.busy_ticks(text) == {0: 21, 3: 10}


def test_resident_pages_are_the_second_field():
    assert kernel_text.resident_pages(b'1000 250 30 1 0 500 0\n') == 250


def test_storage_bytes_are_those_that_reached_storage():
    assert kernel_text.storage_bytes(IO) == (4096, 323932160)


def test_usage_of_a_group_is_in_seconds():
    text = b'usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n'
    assert kernel_text.usage_seconds(text) == 2.5


def test_stall_is_the_total_of_some():
    text = (
        b'some avg10=0.00 avg60=0.01 avg300=0.00 total=1500000\n'
        b'full avg10=0.00 avg60=0.00 avg300=0.00 total=9\n'
    )
    assert kernel_text.stall_seconds(text) == 1.5


def test_the_second_field_is_the_wait_of_a_thread():
    assert kernel_text.waited_seconds(b'68072406 1500000000 1078\n') == 1.5


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        (b'', (0, 0)),
        (
            (
                b'254:0 rbytes=4096 wbytes=512 rios=1 wios=1 dbytes=0 dios=0\n'
                b'8:0 rbytes=1 wbytes=2 rios=1 wios=1 dbytes=5 dios=0\n'
                b'7:0\n'
            ),
            (4097, 514),
        ),
    ],
)
def test_traffic_of_a_group_is_summed_over_devices(text, expected):
    assert kernel_text.device_bytes(text) == expected


def test_interfaces_are_read_even_where_no_space_follows_the_colon():
    assert kernel_text.interface_bytes(NET_DEV) == {
        'lo': (100, 100),
        'tap0': (2**64 - 1, 7),
    }


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('processor : 0\nbogomips\t: 5000.00\nbogomips\t: 6000.00\n', 5500),
        ('processor : 0\nBogoMIPS\t: 50.00\n', 50),
        ('bogomips per cpu: 3033.00\n', 3033),
        ('processor : 0\n', None),
        ('bogomips : 0.00\n', None),
    ],
)
def test_bogomips_are_averaged(text, expected):
    assert kernel_text.mean_bogomips(text) == expected


@pytest.mark.parametrize(
    ('parse', 'text'),
    [
        (kernel_text.start_ticks, b''),
        (kernel_text.cpu_ticks, b'1 (x) S 1'),
        (kernel_text.resident_pages, b''),
        (kernel_text.busy_ticks, b'cpu0 1 2 3\n'),
        (kernel_text.storage_bytes, b'rchar: 1\n'),
        (kernel_text.usage_seconds, b'nr_periods 0\n'),
        (kernel_text.stall_seconds, b''),
        (kernel_text.waited_seconds, b'5\n'),
        (kernel_text.total_memory_bytes, 'MemFree: 5 kB\n'),
    ],
)
def test_a_cut_text_is_an_error_and_never_a_number(parse, text):
    with pytest.raises((ValueError, IndexError)):
        parse(text)


def test_huge_pages_count_as_resident():
    text = b'Name:\tqemu\nVmRSS:\t  100 kB\nHugetlbPages:\t 2048 kB\n'
    assert kernel_text.resident_bytes(text) == 2148 * 1024
    assert kernel_text.huge_page_bytes(text) == 2048 * 1024


def test_a_process_that_has_ended_has_no_resident_memory():
    assert kernel_text.resident_bytes(b'Name:\tqemu\nState:\tZ\n') == 0


def test_memory_of_the_host_is_in_bytes():
    assert kernel_text.total_memory_bytes('MemTotal: 16 kB\n') == 16384


def route(*rows):
    return 'Iface Destination Gateway Flags RefCnt Use Metric Mask\n' + (
        ''.join(
            f'{name} {where} 0 0003 0 0 {metric} {mask} 0 0 0\n'
            for name, where, metric, mask in rows
        )
    )


def test_the_default_route_with_the_lowest_metric_wins():
    text = route(
        ('eth1', '00000000', 200, '00000000'),
        ('eth0', '00000000', 100, '00000000'),
        ('eth2', '000A0A0A', 1, '00FFFFFF'),
    )
    assert kernel_text.default_route_interface(text) == 'eth0'


def test_a_host_may_have_no_default_route():
    text = route(('eth2', '000A0A0A', 1, '00FFFFFF'))
    assert kernel_text.default_route_interface(text) is None
