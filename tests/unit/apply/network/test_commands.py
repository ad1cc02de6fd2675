# SPDX-License-Identifier: Apache-2.0

"""Nothing that is not an operation of ours ever becomes a command."""

import pytest

from nova_fairness.apply import privileged_network
from nova_fairness.apply.network import commands
from nova_fairness.apply.network import state

MAC = '52:54:00:00:00:0a'
CLASS = ('class', 'eth1', 16, 1000, 2000, 16000, 16000, 20000)


@pytest.mark.parametrize(
    ('operation', 'expected'),
    [
        (
            ('root', 'eth1'),
            ['qdisc add dev eth1 root handle fa12: htb default fffe r2q 100'],
        ),
        (('no-root', 'br-ex'), ['qdisc del dev br-ex root handle fa12: htb']),
        (
            CLASS,
            [
                (
                    'class replace dev eth1 parent fa12:1 classid fa12:10 htb '
                    'rate 1000bps ceil 2000bps burst 16000 cburst 16000 '
                    'quantum 20000'
                )
            ],
        ),
        (
            ('class', 'eth1', 1, 1, 1, 1, 1, 1),
            [
                (
                    'class replace dev eth1 parent fa12: classid fa12:1 htb '
                    'rate 1bps ceil 1bps burst 1 cburst 1 quantum 1'
                )
            ],
        ),
        (
            ('filter', 'nfair-in', 'dst', MAC, 3, 16),
            [
                (
                    'filter add dev nfair-in parent fa12: protocol all '
                    'pref 64018 handle 1:a:3 u32 ht 1:a: match ether dst '
                    '52:54:00:00:00:0a flowid fa12:10'
                )
            ],
        ),
        (
            ('no-filter', 'eth1', 255, 4095),
            [
                (
                    'filter del dev eth1 parent fa12: protocol all pref 64018 '
                    'handle 1:ff:fff u32'
                )
            ],
        ),
        (
            ('clsact', 'tap1', 64018, 64019),
            [
                (
                    'qdisc add dev tap1 ingress_block 64018 '
                    'egress_block 64019 clsact'
                )
            ],
        ),
        (
            ('ifb', 'nfair-in'),
            [
                'link add name nfair-in txqueuelen 1000 type ifb',
                'link set dev nfair-in up',
            ],
        ),
    ],
)
def test_an_operation_becomes_its_lines(operation, expected):
    assert commands.validation_error(operation) == ''
    assert commands.command_lines(operation) == expected


@pytest.mark.parametrize(
    'operation',
    [
        (),
        ('',),
        ('exec', 'reboot'),
        (['root'], 'eth1'),
        (7, 'eth1'),
        ('root',),
        ('root', 'eth1', 'eth2'),
        ('root', ''),
        ('root', '-batch'),
        ('root', 'eth1 root'),
        ('root', 'eth1\nqdisc del dev eth0 root'),
        ('root', 'eth1\n'),
        ('root', '../eth1'),
        ('root', 'a' * 16),
        ('root', 'eth\u0661'),
        ('root', 7),
        ('ifb', 'eth1'),
        ('no-ifb', 'eth1'),
        ('no-ifb', 'nfair-in\n'),
        ('block', 1),
        ('clsact', 'tap1', 7, 64019),
        ('clsact', 'tap1', 64018, 0),
        ('clsact', 'tap1'),
        ('block', '64018'),
        ('block', True),
        ('table', 'eth1', 'both'),
        (*CLASS[:2], 0, *CLASS[3:]),
        (*CLASS[:2], 0xFFFF, *CLASS[3:]),
        (*CLASS[:2], True, *CLASS[3:]),
        (*CLASS[:3], 0, *CLASS[4:]),
        (*CLASS[:3], '1000', *CLASS[4:]),
        (*CLASS[:3], 1000.5, *CLASS[4:]),
        (*CLASS[:3], 1 << 41, *CLASS[4:]),
        (*CLASS[:7],),
        (*CLASS, 1),
        ('filter', 'eth1', 'src', MAC.upper(), 3, 16),
        ('filter', 'eth1', 'src', MAC + ' flowid 1:1', 3, 16),
        ('filter', 'eth1', 'src', MAC, 0, 16),
        ('filter', 'eth1', 'src', MAC, 4096, 16),
        ('no-filter', 'eth1', 256, 1),
        ('no-filter', 'eth1', -1, 1),
    ],
)
def test_all_other_operations_are_refused(operation):
    assert commands.validation_error(operation) != ''


def test_no_operation_touches_foreign_interfaces():
    for name in ('no-root', 'no-class', 'no-filter', 'no-redirect'):
        checks, _ = commands.OPERATIONS[name]
        told = ['eth1', 16, 16][: len(checks)]
        (line,) = commands.command_lines((name, *told))
        assert 'fa12' in line or str(state.PREFERENCE) in line


@pytest.fixture
def tools(monkeypatch, tmp_path):
    """Tools that only note what they are given, and fail as they are told."""
    ran = []
    said = {}

    def run(tool, lines):
        ran.append((tool, list(lines)))
        return said.get(tool, '')

    monkeypatch.setattr(privileged_network.context, 'client_mode', False)
    monkeypatch.setattr(privileged_network, '_run_with_capability', run)
    monkeypatch.setattr(privileged_network, 'SYS', tmp_path)
    return ran, said


def test_the_helper_makes_nothing_on_interfaces_that_are_not_of_vms(
    tools, tmp_path
):
    ran, _ = tools
    (tmp_path / 'eth7').mkdir()
    (tmp_path / 'eth7' / 'type').write_text('1')
    errors = privileged_network.run(
        [
            ('root', 'eth7'),
            ('ingress', 'eth7'),
            ('redirect', 'eth7'),
            ('clsact', 'eth7', 0xFA12, 0xFA13),
            ('no-root', 'eth7'),
        ]
    )
    assert ['is no' in why or 'no uplink' in why for why in errors] == [
        *[True] * 4,
        False,
    ]
    assert [tool for tool, _ in ran] == ['tc']
    assert all('del' in line for _, lines in ran for line in lines)


def test_each_failing_line_is_reported_for_its_operation(tools):
    ran, said = tools
    said['tc'] = (
        'Cannot find device "eth9"\n'
        'Command failed -:1\n'
        'Error: Exclusivity flag on, cannot modify.\n'
        'We have an error talking to the kernel\n'
        'Command failed -:3\n'
    )
    errors = privileged_network.run(
        [('root', 'eth9'), ('table', 'eth1', 'src'), ('root', 'eth;2'), CLASS]
    )
    assert errors[0] == 'Cannot find device "eth9"'
    assert errors[1] == 'Error: Exclusivity flag on, cannot modify.'
    assert 'cannot have the field' in errors[2]
    assert errors[3] == ''
    assert [len(lines) for _, lines in ran] == [4]


def test_links_are_made_before_and_removed_after_their_dependents(tools):
    ran, _ = tools
    privileged_network.run(
        [('ifb', 'nfair-in'), ('root', 'eth1'), CLASS, ('no-ifb', 'nfair-out')]
    )
    assert [tool for tool, _ in ran] == ['ip', 'tc', 'ip']


def test_a_tool_that_is_missing_fails_all_its_operations(tools):
    _, said = tools
    said['tc'] = 'tc: no such file\nCommand failed -:3\n'
    errors = privileged_network.run([('root', 'eth1'), CLASS])
    assert errors == ['tc: no such file'] * 2


def test_too_many_operations_in_one_call_are_refused(tools, monkeypatch):
    monkeypatch.setattr(privileged_network, 'MAX_OPERATIONS', 1)
    assert all(privileged_network.run([CLASS, CLASS]))
    assert tools[0] == []


def test_no_commands_start_no_process(monkeypatch):
    monkeypatch.setattr(privileged_network, 'client', None)
    assert privileged_network.run([]) == []


@pytest.mark.parametrize(
    ('kind', 'blocks', 'foreign', 'operation', 'refused'),
    [
        ('clsact', (0, 0), 0, 'no-clsact', True),
        ('clsact', (1, 2), 0, 'no-clsact', True),
        ('ingress', (0, 0), 0, 'no-clsact', True),
        ('clsact', (64018, 64019), 0, 'no-clsact', False),
        ('clsact', (0, 64019), 0, 'no-clsact', False),
        ('clsact', (64018, 0), 0, 'no-clsact', True),
        ('ingress', (0, 0), 1, 'no-ingress', True),
        ('ingress', (0, 0), 0, 'no-ingress', False),
        ('clsact', (0, 0), 0, 'no-ingress', True),
    ],
)
def test_objects_of_others_are_not_removed_for_any_caller(
    tools, monkeypatch, kind, blocks, foreign, operation, refused
):
    found = state.Qdisc(kind, 0xFFFF, 'ingress', blocks)
    redirects = {'eth1': ('', foreign)} if kind == 'ingress' else {}
    kernel = state.Kernel({'eth1': 1}, {'eth1': (found,)}, {}, redirects)

    class FakeReader:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def read(self):
            return kernel

    monkeypatch.setattr(
        privileged_network.network_kernel, 'KernelConnection', FakeReader
    )
    (error,) = privileged_network.run([(operation, 'eth1')])
    assert bool(error) is refused
    assert bool(tools[0]) is not refused
