# SPDX-License-Identifier: Apache-2.0

"""Units of the CPU where the largest passes the kernel's range."""

import dataclasses

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from nova_fairness.decide import policy
from nova_fairness.decide.controls import cpu
from nova_fairness.decide.controls import scale
from nova_fairness.model import allocation
from nova_fairness.model import resources
from nova_fairness.model import usage
from tests.unit.agent import fake_host

V1, V2 = cpu.CgroupVersion.V1, cpu.CgroupVersion.V2
BASE, LARGEST = cpu.RANGES[V2].base, cpu.RANGES[V2].largest
VMS = strategies.lists(
    strategies.tuples(
        strategies.floats(0.01, 30.0), strategies.integers(1, 1024)
    ),
    min_size=1,
    max_size=20,
)

FITTING = strategies.lists(
    strategies.tuples(
        strategies.floats(0.01, LARGEST / BASE), strategies.integers(1, 1024)
    ).map(lambda drawn: (drawn[0] / drawn[1], drawn[1])),
    min_size=1,
    max_size=20,
)
"""As ``VMS``, with at most the largest value of a control."""


def vm(number, vcpus, **given):
    made = fake_host.vm(f'vm-{number}', 'ann')
    changed = dataclasses.replace(made.instance, vcpus=vcpus, **given)
    return dataclasses.replace(made, instance=changed)


def facts(vms, present=None, **given):
    held = [100] * len(vms) if present is None else present
    return scale.ScaleFacts(
        **{
            'usage': usage.Usage(
                interval_s=1.0,
                incarnations=tuple(vms),
                amounts=np.zeros((len(vms), len(resources.RESOURCES))),
                known=np.ones(len(vms), dtype=bool),
                cpu_stall=np.zeros(len(vms)),
            ),
            'preset': policy.Preset.DEFAULT,
            'present': {
                allocation.Knob(item.key, resources.ResourceControl.CPU): units
                for item, units in zip(vms, held, strict=True)
            },
            'exempt': frozenset(),
            'tolerance': lambda control: 0.01,
        }
        | given
    )


def steered(weights, vms, known=None, version=V2):
    known = facts(vms) if known is None else known
    of = cpu.CpuScale(version)
    return of.units(np.array(weights), of.steerable_rows(known), known)


def of_drawn(drawn):
    vms = [vm(row, vcpus) for row, (_, vcpus) in enumerate(drawn)]
    weights = np.array([weight for weight, _ in drawn])
    return weights, vms, BASE * weights * [vcpus for _, vcpus in drawn]


def test_large_vms_keep_their_ratio_to_small_ones():
    vms = [vm(0, 256), vm(1, 128), vm(2, 1)]
    most, half, least = steered([2.0, 2.0, 1.0], vms)
    assert cpu.STEP * LARGEST < most <= LARGEST
    assert most / half == pytest.approx(2.0, rel=0.001)
    assert most / least == pytest.approx(512.0, rel=0.05)


def test_shares_of_control_groups_v1_keep_their_ratio_too():
    most, least = steered([2.0, 1.0], [vm(0, 256), vm(1, 1)], version=V1)
    assert 0.8 * 262144 < most <= 262144
    assert most / least == pytest.approx(512.0, rel=0.01)


def test_shares_of_a_flavor_count_where_the_largest_is_looked_for():
    rich = vm(0, 1, extra_specs={'quota:cpu_shares': '9000'})
    most, least = steered([4.0, 1.0], [rich, vm(1, 1)])
    assert most <= LARGEST
    assert most / least == pytest.approx(360.0, rel=0.05)


@hypothesis.given(FITTING)
def test_nothing_is_scaled_where_all_fits(drawn):
    weights, vms, exact = of_drawn(drawn)
    assert steered(weights, vms) == np.rint(exact).clip(1).tolist()


@hypothesis.given(VMS)
def test_ratios_are_kept_within_rounding(drawn):
    weights, vms, exact = of_drawn(drawn)
    hypothesis.assume(np.rint(exact).max() > LARGEST)
    found = np.array(steered(weights, vms))
    factor = cpu.scale_factors(
        exact, np.zeros(len(vms), int), 1, cpu.RANGES[V2]
    )
    meant = exact * factor
    assert np.all((np.abs(found - meant) <= 0.5 + 1e-6) | (found == 1))
    assert np.all(found <= meant + 1.0)
    assert cpu.STEP**cpu.FURTHER * LARGEST - 1 <= found.max() <= LARGEST
    assert found.min() >= 1
    order = np.argsort(exact)
    assert np.all(np.diff(found[order]) >= 0)


def test_a_small_vm_gets_the_smallest_unit_beside_a_very_large_one():
    assert steered([1.0, 0.01], [vm(0, 500), vm(1, 1)]) == [8389, 1]


def test_units_of_many_small_vms_are_scaled_to_whole_numbers():
    vms = [vm(0, 441), *(vm(number, 1) for number in range(1, 53))]
    most, *small = steered([2.679] + [0.224] * 52, vms)
    assert most / small[0] == pytest.approx(441 * 2.679 / 0.224, rel=0.05)


def test_a_weight_that_moves_a_little_moves_its_own_units_only():
    vms = [vm(0, 256), vm(1, 64), vm(2, 1)]
    _, *before = steered([2.0, 1.0, 1.0], vms)
    for weight in np.linspace(1.95, 2.05, 11):
        _, *others = steered([weight, 1.0, 1.0], vms)
        assert others == before


def test_the_thesis_preset_is_never_scaled():
    known = facts([vm(0, 512)], preset=policy.Preset.THESIS)
    assert steered([1.0], known.vms, known) == [100]


def test_a_small_vm_that_is_left_alone_is_no_reason_not_to_scale():
    vms = [vm(0, 256), vm(1, 1), vm(2, 1)]
    known = facts(vms, exempt=frozenset({vms[2].key}))
    most, least = steered([4.0, 1.0, 1.0], vms, known)
    assert most / least == pytest.approx(1024.0, rel=0.15)


def test_a_vm_with_cpus_of_its_own_is_no_reason_not_to_scale():
    pinned = dataclasses.replace(vm(2, 256).instance, dedicated_cpus=True)
    vms = [
        vm(0, 256),
        vm(1, 1),
        dataclasses.replace(vm(2, 1), instance=pinned),
    ]
    known = facts(vms, [100, 100, LARGEST])
    found = steered([4.0, 1.0, 1.0], vms, known)
    assert found == steered([4.0, 1.0], vms[:2])


def test_a_large_vm_that_is_left_alone_is_a_reason_not_to_scale():
    vms = [vm(0, 110), vm(1, 90), vm(2, 100)]
    known = facts(vms, [100, 100, 9000], exempt=frozenset({vms[2].key}))
    assert steered([1.0, 1.0, 1.0], vms, known) == [LARGEST, 9000]


@hypothesis.given(VMS, strategies.integers(1, LARGEST))
def test_beside_vms_that_are_left_alone_parts_are_nearest(drawn, beside):
    weights, vms, exact = of_drawn(drawn)
    left = vm(len(vms), 1)
    known = facts(
        [*vms, left], [100] * len(vms) + [beside], exempt=frozenset({left.key})
    )
    found = np.array(steered([*weights, 1.0], [*vms, left], known))
    fully = np.array(steered(weights, vms))
    meant = np.append(exact, beside) / (exact.sum() + beside)

    def off(units):
        return np.abs(
            np.append(units, beside) / (units.sum() + beside) - meant
        ).sum()

    assert off(found) <= off(fully) + 1e-9
    assert off(found) <= off(np.rint(exact).clip(1, LARGEST)) + 1e-9


def previous(held, last, vms, **given):
    return cpu.CpuScale(V2).weights_in_force(
        held, last, facts(vms, held, **given)
    )


@hypothesis.given(VMS)
def test_units_that_were_not_worth_a_write_stand_for_nearly_the_weight(drawn):
    weights, vms, _ = of_drawn(drawn)
    units = np.array(steered(weights, vms))
    last = [
        scale.LastDecision(float(weight), int(value))
        for weight, value in zip(weights, units, strict=True)
    ]
    coarse = units >= 100
    held = np.where(coarse, units - 1, units).tolist()
    found = previous(held, last, vms)
    assert found == pytest.approx(weights, rel=0.02)
    assert np.all(found[~coarse] == weights[~coarse])


def test_scaled_units_of_an_agent_before_this_one_give_its_weights():
    vms = [vm(0, 256), vm(1, 64), vm(2, 1), vm(3, 8)]
    weights = np.array([2.0, 0.5, 1.5, 1.0])
    units = steered(weights, vms)
    found = previous(units, [None] * 4, vms)
    assert found == pytest.approx(weights, rel=0.25)
    assert found / found[0] == pytest.approx(weights / 2.0, rel=0.02)


def test_units_that_were_not_scaled_give_exact_weights_to_the_next_agent():
    vms = [vm(0, 64), vm(1, 2)]
    assert previous([6400, 50], [None] * 2, vms).tolist() == [1.0, 0.25]


def test_places_of_the_thesis_are_never_taken_for_scaled_units():
    found = previous(
        [9000, 50],
        [scale.LastDecision(0.5, 51), None],
        [vm(0, 64), vm(1, 2)],
        preset=policy.Preset.THESIS,
    )
    assert found[0] == 1.0
    assert found[1] == pytest.approx(0.5, abs=0.01)


@hypothesis.given(
    strategies.lists(
        strategies.tuples(
            strategies.integers(1, LARGEST), strategies.integers(1, 1024)
        ),
        min_size=1,
        max_size=10,
    )
)
def test_values_that_an_agent_finds_need_not_be_written(drawn):
    vms = [vm(row, vcpus) for row, (_, vcpus) in enumerate(drawn)]
    held = [units for units, _ in drawn]
    weights = previous(held, [None] * len(vms), vms)
    assert steered(weights, vms) == held
