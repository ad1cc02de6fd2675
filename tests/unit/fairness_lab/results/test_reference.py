# SPDX-License-Identifier: Apache-2.0

import pytest

from fairness_lab.results import reference

BUSY, IDLE = 10.0, 0.0


@pytest.mark.parametrize(
    ('heaviness', 'priority', 'shares'),
    [
        (-1.0, -50, 100),
        (-0.2, -25, 75),
        (0.0, 0, 50),
        (0.3, 15, 35),
        (1.0, 50, 1),
        (7.0, 50, 1),
        (-7.0, -50, 100),
    ],
)
def test_heaviness_becomes_the_shares_of_the_thesis(
    heaviness, priority, shares
):
    assert reference.priority(heaviness) == priority
    assert reference.shares(heaviness) == shares


@pytest.mark.parametrize(
    ('first', 'second', 'expected'),
    [
        ((80.0, 20.0), (30.0, 50.0), (0.30, -0.20)),
        ((60.0, 20.0), (30.0, 70.0), (-0.10, 0.10)),
    ],
)
def test_greediness_has_the_golden_values(first, second, expected):
    names = ('r', 's')
    greed = reference._greediness(
        {
            'a': dict(zip(names, first, strict=True)),
            'b': dict(zip(names, second, strict=True)),
        },
        {vm: dict.fromkeys(names, 50.0) for vm in 'ab'},
        dict.fromkeys(names, 0.01),
    )
    assert (greed['a'], greed['b']) == pytest.approx(expected)


def rounds(*counters, users=('x', 'x', 'y')):
    """One VM per user; rounds 10 s apart; one CPU and nothing else."""
    return [
        {
            'round': number + 1,
            'time_s': 10.0 * number,
            'node': {'speed_factor': 2.0, 'capacity': {'cpu_time': 2.0}},
            'instances': [
                {
                    'uuid': str(place),
                    'user': users[place],
                    'vcpus': 1,
                    'memory_bytes': 64,
                    'counters': {'cpu_time': value},
                }
                for place, value in enumerate(values)
                if value is not None
            ],
        }
        for number, values in enumerate(counters)
    ]


def in_full(*heaviness):
    return {
        str(place): reference.shares(value)
        for place, value in enumerate(heaviness)
    }


def test_the_first_round_gives_no_greediness():
    assert reference.cpu_shares(rounds((1.0, 2.0, 3.0))) == [{}]


def test_equal_use_charges_the_user_with_larger_endowment():
    # g = 0 for all; x owns 2/3 against a quota of 1/2: norm 2/20 per second,
    # surplus 2 * (2/3 - 1/2) = 1/3, and -1/3 for y
    use = rounds((0.0, 0.0, 0.0), (10 / 3, 10 / 3, 10 / 3))
    assert reference.cpu_shares(use)[-1] == in_full(1 / 3, 1 / 3, -1 / 3)


def test_taking_beyond_the_endowment_costs_and_leaving_is_credited():
    # one VM each: endowment 5 s; x takes 8, y leaves 3; norm 2/10 per second
    use = rounds((0.0, 0.0), (8.0, 2.0), users=('x', 'y'))
    assert reference.cpu_shares(use)[-1] == in_full(1.2, -1.2)


def test_the_first_interval_counts_whole_and_later_ones_by_half():
    use = rounds((0.0, 0.0), (5.51, 4.49), (10.51, 9.49), users=('x', 'y'))
    first, second = reference.cpu_shares(use)[1:]
    assert first == in_full(0.204, -0.204)
    # smoothed: 5.255 and 4.745
    assert second == in_full(0.102, -0.102)


def test_a_restarted_vm_counts_from_zero():
    use = rounds((9.0, 9.0), (2.0, 14.0), (7.0, 19.0), users=('x', 'y'))
    for number, entry in enumerate(use):
        entry['instances'][0]['incarnation'] = f'0/{number > 0}'
    second, third = reference.cpu_shares(use)[1:]
    assert set(second) == {'1'}
    assert third == in_full(0.0, 0.0)


def test_a_counter_that_fell_counts_as_nothing():
    use = rounds((9.0, 9.0), (2.0, 14.0), users=('x', 'y'))
    # 5 s of endowment each, x leaves all of it and y none: no credit
    assert reference.cpu_shares(use)[-1] == in_full(0.0, 0.0)


def test_an_agent_that_was_started_again_remembers_nothing():
    use = rounds((0.0, 0.0), (8.0, 2.0), (13.0, 7.0), users=('x', 'y'))
    use += rounds((13.0, 7.0), (18.0, 12.0), users=('x', 'y'))
    found = reference.cpu_shares(use)
    assert found[3] == {}
    assert found[4] == in_full(0.0, 0.0)


def test_a_vm_that_was_read_late_is_scaled_to_the_interval():
    use = rounds((0.0, 0.0), (8.0, 5.0), users=('x', 'y'))
    for entry, late in zip(use, (0.0, 6.0), strict=True):
        entry['instances'][0]['read_at_s'] = entry['time_s'] + late
    assert reference.cpu_shares(use)[-1] == in_full(0.0, 0.0)


def test_a_vm_that_went_and_came_is_a_new_one():
    use = rounds((0.0, 0.0), (5.0, None), (10.0, 1.0), users=('x', 'y'))
    assert [set(found) for found in reference.cpu_shares(use)] == [
        set(),
        {'0'},
        {'0'},
    ]


def test_a_counter_that_could_not_be_read_counts_as_nothing():
    use = rounds((0.0, 0.0), (5.0, 5.0), users=('x', 'y'))
    for entry in use:
        entry['node']['capacity']['disk_read'] = 100.0
        for vm in entry['instances']:
            vm['counters']['disk_read'] = None
    assert reference.cpu_shares(use)[-1] == in_full(0.0, 0.0)


def test_memory_is_the_present_value():
    use = rounds((0.0, 0.0), (5.0, 5.0), (10.0, 10.0), users=('x', 'y'))
    for entry, memory in zip(use, (0.0, 100.0, 60.0), strict=True):
        entry['node']['capacity']['memory'] = 128.0
        for vm, value in zip(entry['instances'], (memory, 28.0), strict=True):
            vm['counters']['memory'] = value
    # norm 2/2/128; beyond the endowment of 64: 36, then nothing;
    # credit is given only as far as it was taken: the same for the other
    first, second = reference.cpu_shares(use)[1:]
    assert first == in_full(2 * 36 / 128, -2 * 36 / 128)
    assert second == in_full(0.0, 0.0)


def test_memory_beyond_that_of_the_node_is_divided():
    use = rounds((0.0, 0.0), (5.0, 5.0), users=('x', 'y'))
    for entry in use:
        entry['node']['capacity']['memory'] = 100.0
        for vm, size in zip(entry['instances'], (150, 50), strict=True):
            vm['memory_bytes'] = size
            vm['counters']['memory'] = 0.0
    # of 100 x is entitled to 75 and y to 25; nobody takes, nobody is
    # credited; norm 2/2/100
    assert reference.cpu_shares(use)[-1] == in_full(0.25, -0.25)


@pytest.mark.parametrize(('size', 'expected'), [(1, 0.0), (3, 0.5)])
def test_endowment_of_cpu_follows_the_vcpus(size, expected):
    use = rounds((0.0, 0.0), (5.0, 5.0), users=('x', 'y'))
    for entry in use:
        entry['instances'][0]['vcpus'] = size
    got = reference.cpu_shares(use)[-1]
    # 3 vCPUs of 4: endowments 7.5 and 2.5; y takes 2.5 that x leaves;
    # g = -0.5 and 0.5; surplus 2 * (3/4 - 1/2) = 0.5 and -0.5 plus g
    surplus = {1: (0.0, 0.0), 3: (-0.5, 0.5)}[size]
    assert got == in_full(*surplus)
    assert abs(surplus[1]) == expected
