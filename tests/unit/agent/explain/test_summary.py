# SPDX-License-Identifier: Apache-2.0


"""One situation after another: what is said of a VM, and that it is true."""

import dataclasses
import itertools
import pathlib

import pytest

from nova_fairness.agent.explain import situation
from nova_fairness.agent.explain import summary
from nova_fairness.model import resources
from nova_fairness.model import wording

CPU = situation.VmCpu(gets=0.2, wants=1.0, most=1.0, host=0.02, node=1.0)
SHARING = situation.ContendedShare(
    resource='cpu_time',
    steered=True,
    standing=situation.HeavinessStanding.EVEN,
    waiting=3,
    fair=0.25,
    has=0.24,
    weight=1.0,
)
DISK = situation.ContendedShare(
    resource='disk_read',
    steered=True,
    standing=situation.HeavinessStanding.EVEN,
    waiting=2,
)
FACTS = situation.SituationFacts(
    entity='user',
    enforced=True,
    exempt=False,
    paused=False,
    cpu=CPU,
    sharing=(SHARING,),
    cause=situation.HeavinessCause.USED,
    heaviest='cpu_time',
    used=(1.5, 0.5),
)


def facts(sharing=None, cpu=None, **changes):
    """Change what differs from three users of whom all have their part."""
    if sharing is not None:
        changes['sharing'] = (
            (dataclasses.replace(SHARING, **sharing),)
            if isinstance(sharing, dict)
            else sharing
        )
    if cpu is not None:
        changes['cpu'] = dataclasses.replace(CPU, **cpu)
    return dataclasses.replace(FACTS, **changes)


BEGUN = (
    'This VM is slowed down by sharing: it gets 0.20 CPU and wants 1.00 CPU. '
)
PARTS = (
    "On this node 3 users wait for CPU; by quota its owner's part of it here "
    'is 25%, and they have 24%. '
)
OVER = {
    'standing': situation.HeavinessStanding.HEAVIER,
    'has': 0.4,
    'weight': 0.6,
}
OVER_PARTS = PARTS.replace('24%', '40%')
OVER_TEXT = (
    'All in all its owner is heavier than those it competes with, so the '
    'weight of this VM is lowered (weight 0.60, 1 is neutral).'
)
ALONE = {'sharing': (), 'waits': ('cpu_time',)}

TABLE = {
    'fair part reached': (
        facts(),
        BEGUN + PARTS + 'This is their fair part: nothing is wrong. More '
        'quota, or another node, gives more.',
    ),
    'fair part reached, of a project': (
        facts(entity='project'),
        BEGUN + "On this node 3 projects wait for CPU; by quota its project's "
        'part of it here is 25%, and it has 24%. This is its fair part: '
        'nothing is wrong. More quota, or another node, gives more.',
    ),
    'fair all in all, more here': (
        facts({'has': 0.4}),
        BEGUN + OVER_PARTS + 'All in all, this is their fair part: nothing '
        'is wrong. More quota, or another node, gives more.',
    ),
    'over it, by what they use': (
        facts(OVER),
        BEGUN
        + OVER_PARTS
        + OVER_TEXT
        + ' The greatest part comes from CPU: their '
        'VMs use 1.50 CPU in all, and their part of all nodes is 0.50 CPU. '
        'If they use less of it, this VM gets more.',
    ),
    'over it, and not yet less': (
        facts({**OVER, 'weight': 1.0}, cause=situation.HeavinessCause.UNKNOWN),
        BEGUN
        + OVER_PARTS
        + OVER_TEXT.replace(
            'lowered (weight 0.60', 'lowered step by step (weight 1.00'
        ),
    ),
    'over it, at the end': (
        facts(
            {**OVER, 'weight': 0.22, 'at_end': True},
            cause=situation.HeavinessCause.UNKNOWN,
        ),
        BEGUN
        + OVER_PARTS
        + OVER_TEXT.replace(
            '0.60, 1 is neutral',
            '0.22, 1 is neutral, the smallest that is allowed',
        ),
    ),
    'over it, a place in a range': (
        facts(
            {**OVER, 'is_place': True}, cause=situation.HeavinessCause.UNKNOWN
        ),
        BEGUN
        + OVER_PARTS
        + OVER_TEXT.replace(
            '0.60, 1 is neutral', '0.60 in a range from 0 to 1'
        ),
    ),
    'idle VMs charged': (
        facts(
            OVER, cause=situation.HeavinessCause.RESERVED, heaviest='disk_read'
        ),
        BEGUN + OVER_PARTS + OVER_TEXT + ' Its owner is charged for what '
        'their VMs have reserved, used or not, most of all disk reads: fewer '
        'or smaller VMs change that.',
    ),
    'VMs on other nodes': (
        facts(OVER, cause=situation.HeavinessCause.ELSEWHERE, heaviest=''),
        BEGUN
        + OVER_PARTS
        + OVER_TEXT
        + ' The greatest part comes from their VMs on '
        'other nodes: less use there, or fewer VMs, change that.',
    ),
    'under it': (
        facts(
            {'standing': situation.HeavinessStanding.LIGHTER, 'weight': 1.8}
        ),
        BEGUN + PARTS + 'All in all its owner has less than those it '
        'competes with, so this VM goes first (weight 1.80, 1 is neutral).',
    ),
    'under it, at the end': (
        facts(
            {
                'standing': situation.HeavinessStanding.LIGHTER,
                'weight': 4.4,
                'at_end': True,
            }
        ),
        BEGUN + PARTS + 'All in all its owner has less than those it '
        'competes with, so this VM goes first, with the largest weight that '
        'is allowed; only another node gives more.',
    ),
    'only its own VMs': (
        facts({'standing': situation.HeavinessStanding.ALONE}),
        BEGUN + 'No other user waits for it: its owner is not held back for '
        'anybody. Another node, or fewer VMs on this one, give more.',
    ),
    'not preferred': (
        facts(OVER, preference=0.5),
        BEGUN + OVER_PARTS + 'Its owner preferred other VMs to this one '
        '(preference 0.5); a higher preference gives it more.',
    ),
    'not steered': (
        facts({'steered': False}),
        BEGUN + PARTS + 'No VM is preferred: this node does not steer CPU for '
        'this VM.',
    ),
    'not in force': (
        facts(enforced=False),
        BEGUN + PARTS + 'Weights are not in force on this node at the moment: '
        'an operator paused it, or it only observes.',
    ),
    'sharing, and the host is busy': (
        facts(cpu={'host': 0.3}),
        BEGUN + PARTS + 'This is their fair part: nothing is wrong. More '
        'quota, or another node, gives more. The host itself uses 0.30 CPU of '
        '1, which no VM can have.',
    ),
    'the disk is shared': (
        facts(sharing=(DISK,)),
        (
            'This VM is slowed down by sharing: it waits for disk reads. On '
            'this node 2 users wait for disk reads. This is their fair part: '
            'nothing is wrong. More quota, or another node, gives more.'
        ),
    ),
    'the host is busy itself': (
        facts(**ALONE, cpu={'host': 0.7}),
        (
            'This VM gets 0.20 CPU and wants 1.00 CPU. Other VMs do not slow '
            'it down. The host is busy itself: its own programs use 0.70 CPU '
            'of 1. Tell the operator.'
        ),
    ),
    'a limit of its flavor': (
        facts(**ALONE, cpu={'host': 0.7, 'limit': 0.2}),
        (
            'This VM gets 0.20 CPU, which is the limit of its flavor; other '
            'VMs do not slow it down. Another flavor gives more.'
        ),
    ),
    'a limit of its flavor, while others compete': (
        facts(cpu={'limit': 0.2}),
        (
            'This VM gets 0.20 CPU, which is the limit of its flavor; other '
            'VMs do not slow it down. Another flavor gives more.'
        ),
    ),
    'waits for no known reason': (
        facts(**ALONE, cpu={'host': None}),
        (
            'This VM gets 0.20 CPU and wants 1.00 CPU. Other VMs do not slow '
            'it down. The cause is not known here; tell the operator if it'
            ' continues.'
        ),
    ),
    'waits for the device itself': (
        facts(sharing=(), waits=('disk_read', 'memory')),
        (
            'This VM waits for disk reads and memory, but other VMs are not '
            'the reason: the device itself, or a limit of its flavor, holds '
            'it back.'
        ),
    ),
    'nothing slows it down': (
        facts(sharing=()),
        'Nothing slows this VM down: it uses 0.20 CPU and waits for nothing.',
    ),
    'all that its vCPUs can do': (
        facts(sharing=(), cpu={'gets': 0.99}),
        (
            'This VM uses all that its vCPUs can do (0.99 CPU), and nothing '
            'slows it down. With more vCPUs it could use more.'
        ),
    ),
    'best effort': (
        facts(best_effort=True),
        (
            'This VM is preemptible: it gets what no other VM of its node '
            'wants. Only a server that is not preemptible gets more.'
        ),
    ),
    'exempt': (
        facts(exempt=True),
        (
            'An operator exempted this VM from fair sharing: it gets what it '
            'would get without it.'
        ),
    ),
    'paused': (
        facts(paused=True),
        (
            'This VM is paused: its vCPUs do not run, and it waits for '
            'nothing. Unpause it and ask again.'
        ),
    ),
}


@pytest.mark.parametrize(
    ('known', 'expected'), TABLE.values(), ids=list(TABLE)
)
def test_each_situation_has_its_true_summary(known, expected):
    assert summary.short_summary(known) == expected
    assert ' '.join(summary.full_summary(known)) == expected


PAGE = pathlib.Path(__file__).parents[4] / 'doc/source/user/answers.inc'


@pytest.mark.parametrize(
    'name',
    [
        'fair part reached',
        'over it, by what they use',
        'under it',
        'idle VMs charged',
        'the host is busy itself',
        'a limit of its flavor',
        'nothing slows it down',
    ],
)
def test_the_page_shows_the_texts_of_the_code(name):
    page = ' '.join(PAGE.read_text('utf-8').split())
    assert summary.short_summary(TABLE[name][0]) in page


def test_a_summary_names_other_awaited_resources_last():
    told = summary.full_summary(
        facts(sharing=(SHARING, DISK), waits=('memory',))
    )
    assert ' '.join(told).startswith(TABLE['fair part reached'][1])
    assert 'it waits for disk reads.' in told[3]
    assert told[-1].startswith('This VM waits for memory, but other VMs')
    assert (
        summary.short_summary(
            facts(sharing=(SHARING, DISK), waits=('memory',))
        )
        == (TABLE['fair part reached'][1])
    )


def test_a_summary_at_the_fair_share_never_advises_less_use():
    for cause, steered, weight in itertools.product(
        situation.HeavinessCause, (True, False), (0.2, 1.0, 4.0)
    ):
        said = summary.short_summary(
            facts({'steered': steered, 'weight': weight}, cause=cause)
        )
        assert 'use less' not in said
        assert 'fewer' not in said


def test_a_summary_without_use_of_a_resource_never_advises_less_use():
    said = summary.short_summary(
        facts(
            OVER,
            cause=situation.HeavinessCause.RESERVED,
            heaviest='disk_read',
            used=(0.0, 1e8),
        )
    )
    assert 'less' not in said


def test_a_summary_of_a_nearly_idle_vm_does_not_call_it_slowed():
    idle = {'gets': 0.002, 'wants': 0.004}
    said = summary.full_summary(facts(cpu=idle, waits=('cpu_time',)))
    assert said == ['This VM is idle, and nothing slows it down.']
    assert summary.short_summary(facts(cpu=idle)) == said[0]
    [first, *_] = summary.full_summary(
        facts(sharing=(SHARING, DISK), cpu=idle)
    )
    assert first == (
        'This VM is slowed down by sharing: it waits for disk reads.'
    )


def test_each_resource_has_a_readable_name():
    assert tuple(wording.RESOURCES) == resources.RESOURCES.names
    assert wording.resource_name('gpu_time') == 'gpu_time'


@pytest.mark.parametrize(
    ('name', 'value', 'expected'),
    [
        ('cpu_time', 0.2, '0.20 CPU'),
        ('cpu_time', 2.75e-268, '0.00 CPU'),
        ('disk_read', 2.75e-268, '0 B/s'),
        ('disk_read', 1.25e7, '12 MB/s'),
        ('net_sent', 1500.0, '1.5 kB/s'),
        ('net_sent', 2e9, '2.0 GB/s'),
        ('memory', 2.0**27, '128 MiB'),
        ('memory', 1.5 * 2**30, '1.5 GiB'),
        ('memory', 12.0, '12 bytes'),
    ],
)
def test_amounts_in_summaries_are_rounded_and_have_units(
    name, value, expected
):
    assert wording.amount_text(name, value) == expected


@pytest.mark.parametrize(
    ('name', 'value', 'expected'),
    [
        ('disk_read', 2.75e-268, False),
        ('cpu_time', 0.001, False),
        ('cpu_time', 0.01, True),
        ('memory', 2.0**27, True),
        ('net_sent', None, False),
        ('net_sent', 5000.0, True),
    ],
)
def test_negligible_amounts_do_not_change_a_summary(name, value, expected):
    assert wording.is_visible(name, value) is expected
