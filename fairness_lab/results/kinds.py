# SPDX-License-Identifier: Apache-2.0

"""Values of a result that can be expected, by their words."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Any

from fairness_lab.results import peers

Result = Mapping[str, Any]
Names = tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class MeasuredValue:
    """One value.

    :ivar subject: name or number of the subject; empty for a whole run.
    :ivar says: text for the subject in a sentence; empty: its name.
    """

    subject: str
    value: float | None
    says: str = ''


Measure = Callable[[Result, Names, Names], Iterable[MeasuredValue]]
Middle = Callable[[Result, str, Names], float]


@dataclasses.dataclass(frozen=True, slots=True)
class ExpectationKind:
    """A kind of value that a scenario can expect something of.

    :ivar says: what is measured, for people; ``{}`` stands for whose it is.
    :ivar measure: values of a result, of some or of all.
    :ivar who: what ``of`` names: ``vms``, ``users``, ``nodes``, or nothing.
    :ivar around: values by the words that ``around`` may have.
    :ivar compares: whether ``to`` names VMs with which one is compared.
    """

    says: str
    measure: Measure
    who: str = ''
    around: Mapping[str, Middle] = dataclasses.field(default_factory=dict)
    compares: bool = False


def _measure_of_entries(
    section: str,
    value: Callable[[Mapping[str, Any]], float | None],
    *,
    known_only: bool = False,
) -> Measure:
    """A measure with one value for each entry of a section of the result.

    :param known_only: whether entries without a value are left out if no names
        are given.
    """

    def measure(
        result: Result, of: Names, _to: Names
    ) -> Iterator[MeasuredValue]:
        entries = result[section] or {}
        for name in of or entries:
            found = value(entries[name]) if name in entries else None
            if of or found is not None or not known_only:
                yield MeasuredValue(name, found)

    return measure


def _measure_of_run(value: Callable[[Result], float | None]) -> Measure:
    """A measure with one value for the whole run."""
    return lambda result, _of, _to: [MeasuredValue('', value(result))]


def _measure_of_phases(
    rows: Callable[[Result], Iterable[tuple[str, float | None]]],
) -> Measure:
    """A measure with one value for each phase of the run, from 1."""
    return lambda result, _of, _to: [
        MeasuredValue(str(number), value, says)
        for number, (says, value) in enumerate(rows(result), start=1)
    ]


def _measure_of_ratios(values: Measure, does: str = 'gets') -> Measure:
    """A measure of ratios: the value of one VM divided by that of others.

    :param does: what the VM does with so much, for people.
    """

    def measure(
        result: Result, of: Names, to: Names
    ) -> Iterator[MeasuredValue]:
        parts = {row.subject: row.value for row in values(result, of + to, ())}
        for name in to:
            value = ratio(parts[of[0]], parts[name])
            yield MeasuredValue(name, value, f'{of[0]} {does} than {name}')

    return measure


def ratio(part: float | None, whole: float | None) -> float | None:
    """Divide; ``None`` if a number is missing, or the second is 0."""
    return part / whole if part is not None and whole else None


def _weight_range(vm: Mapping[str, Any]) -> float | None:
    low, high = vm['weight_range'].get('cpu') or (None, None)
    return ratio(high, low)


def _window_s(result: Result) -> float:
    return float(result['window']['to_s'] - result['window']['from_s'])


def _measure_of_waits(
    value: Callable[[float, float], float | None],
) -> Measure:
    """A measure of each VM, from the CPUs it used and its waiting."""

    def measure(
        result: Result, of: Names, to: Names
    ) -> Iterable[MeasuredValue]:
        def of_vm(vm: Mapping[str, Any]) -> float | None:
            waited = vm['waited_part']
            if waited is None:
                return None
            return value(vm['cpu_s'] / _window_s(result), waited)

        return _measure_of_entries('instances', of_vm)(result, of, to)

    return measure


def _single_vm_phases(result: Result) -> list[Mapping[str, Any]]:
    return [
        entry
        for entry in result['lone']
        if entry['lowest_weight'] == entry['node_lowest_weight']
    ]


def _work_confidence_bound(place: int) -> Callable[[Result], float | None]:
    """A bound of the confidence interval of the change of work."""

    def measure(result: Result) -> float | None:
        found = (result['uncontended'] or {}).get('confidence_95')
        return found[place] if found else None

    return measure


def _largest_distance(entry: Mapping[str, Any]) -> float | None:
    return max(
        (vm['distance'] for vm in entry['instances'].values()), default=None
    )


def _span_text(entry: Mapping[str, Any]) -> str:
    return f'{entry["from_s"]:.0f} to {entry["to_s"]:.0f} s'


def _healing_text(entry: Mapping[str, Any]) -> str:
    what = f'{entry["event"]} {entry["subject"]}'.strip()
    return f'{what} at {entry["t_s"]:.0f} s'


def _link_phases(result: Result, *, lone: bool) -> list[Mapping[str, Any]]:
    """Stretches in which VMs compete for the link, or one has it alone."""
    return [
        item
        for item in result['network']
        if item['rivals'] and (item['rivals'] == 1) is lone
    ]


def _link_rows(
    field: str, *, lone: bool
) -> Callable[[Result], Iterable[tuple[str, float | None]]]:
    return lambda result: [
        (f'{_span_text(item)}, {item["direction"]}', item[field])
        for item in _link_phases(result, lone=lone)
    ]


def _round_gaps(
    result: Result, of: Names, to: Names
) -> Iterable[MeasuredValue]:
    return _measure_of_entries(
        'nodes',
        lambda node: ratio(node['longest_gap_s'], result['interval_s']),
    )(result, of, to)


def _equal_part(_result: Result, _subject: str, of: Names) -> float:
    return 1 / len(of)


def _entry(section: str, field: str) -> Middle:
    return lambda result, subject, _of: float(result[section][subject][field])


def _vm_kind(field: str, says: str, **more: Any) -> ExpectationKind:
    return ExpectationKind(
        says,
        _measure_of_entries('instances', lambda vm: vm[field]),
        'vms',
        **more,
    )


def _node_kind(field: str, says: str) -> ExpectationKind:
    return ExpectationKind(
        says, _measure_of_entries('nodes', lambda node: node[field]), 'nodes'
    )


KINDS: Mapping[str, ExpectationKind] = {
    'cpu-part': _vm_kind(
        'cpu_share',
        'part of the CPU of its node that {} gets',
        around={
            'equal': _equal_part,
            'max-min': _entry('instances', 'max_min_share'),
        },
    ),
    'cpu-of-demand': ExpectationKind(
        'part of the CPU time that it wants which {} gets',
        _measure_of_entries(
            'instances', lambda vm: ratio(vm['cpu_s'], vm['demand_cpu_s'])
        ),
        'vms',
    ),
    'cpu-ratio': ExpectationKind(
        'how many times more CPU {}',
        _measure_of_ratios(
            _measure_of_entries('instances', lambda vm: vm['cpu_share'])
        ),
        'vms',
        compares=True,
    ),
    'cpu-told': ExpectationKind(
        'how many times more CPUs {}, told by use and waiting',
        _measure_of_ratios(
            _measure_of_waits(lambda used, waited: ratio(used, 1 - waited)),
            'wants',
        ),
        'vms',
        compares=True,
    ),
    'busy-part': ExpectationKind(
        'part of the time in which {} ran or waited for a CPU',
        _measure_of_waits(lambda cpus, waited: cpus + waited),
        'vms',
    ),
    'waiting-part': _vm_kind(
        'waited_part', 'part of the time in which {} waited for a CPU'
    ),
    'weight-range': ExpectationKind(
        'weight of {} over the run, largest / smallest',
        _measure_of_entries('instances', _weight_range),
        'vms',
    ),
    'weight-unrest': ExpectationKind(
        'weight of {} at last, peak to peak relative to the mean',
        _measure_of_entries(
            'instances', lambda vm: vm['peak_to_peak'].get('cpu')
        ),
        'vms',
    ),
    'disk-part': ExpectationKind(
        'part of the disk of its node that {} gets',
        _measure_of_entries('disk', lambda vm: vm['share']),
        'vms',
        around={'equal': _equal_part},
    ),
    'disk-of-rate': ExpectationKind(
        'part of the rate of its disk that {} gets',
        _measure_of_entries('disk', lambda vm: vm['device_part']),
        'vms',
    ),
    'disk-ratio': ExpectationKind(
        'how many times more of the disk {}',
        _measure_of_ratios(
            _measure_of_entries('disk', lambda vm: vm['share'])
        ),
        'vms',
        compares=True,
    ),
    'disk-of-fio': ExpectationKind(
        'what {} gets of the disk, relative to fio with the same weights',
        _measure_of_entries(
            'disk',
            lambda vm: ratio(vm['share'], vm['fio_share']),
            known_only=True,
        ),
        'vms',
    ),
    'compared-with-fio': ExpectationKind(
        'VMs that were compared with fio',
        _measure_of_run(
            lambda result: float(
                sum(
                    vm['fio_share'] is not None
                    for vm in (result['disk'] or {}).values()
                )
            )
        ),
    ),
    'late-wakes': ExpectationKind(
        'part of the wakes of {} that are 20 ms late or more',
        _measure_of_entries('latency', lambda vm: vm['late_20ms_part']),
        'vms',
    ),
    'latency-measured': ExpectationKind(
        'VMs in which the lateness of wakes was measured',
        _measure_of_run(lambda result: float(len(result['latency'] or {}))),
    ),
    'user-cpu-part': ExpectationKind(
        'part of all used CPU that {} gets',
        _measure_of_entries('users', lambda user: user['cpu_share']),
        'users',
        around={
            'max-min': _entry('users', 'max_min_share'),
            'bounded': _entry('users', 'bounded_share'),
        },
    ),
    'seconds-until-fair': ExpectationKind(
        'seconds until the part of {} is fair and stays so',
        _measure_of_entries('users', lambda user: user['first_within_s']),
        'users',
    ),
    'round-gap': ExpectationKind(
        'longest time between two rounds on {}, intervals',
        _round_gaps,
        'nodes',
    ),
    'rounds-without-weights': _node_kind(
        'rounds_without_weights', 'rounds on {} in which a VM has no weight'
    ),
    'known-part': _node_kind(
        'known_part', 'part of all CPUs that the agent of {} knows at last'
    ),
    'farthest-vm': ExpectationKind(
        'largest distance of a VM from its max-min part',
        _measure_of_run(
            lambda result: max(
                abs(vm['cpu_share'] - vm['max_min_share'])
                for vm in result['instances'].values()
            )
        ),
    ),
    'least-cpu-used': ExpectationKind(
        'part of its CPU that was used, on the node with the least',
        _measure_of_run(
            lambda result: min(
                node['cpu_used'] for node in result['nodes'].values()
            )
        ),
    ),
    'lone-cpu-part': ExpectationKind(
        'part of the CPU that a lone busy VM with the lowest weight gets',
        _measure_of_run(
            lambda result: min(
                (entry['cpu_part'] for entry in _single_vm_phases(result)),
                default=None,
            )
        ),
    ),
    'lone-weight-range': ExpectationKind(
        'weight of a lone VM, largest / smallest',
        _measure_of_run(
            lambda result: max(
                (
                    entry['highest_weight'] / entry['lowest_weight']
                    for entry in _single_vm_phases(result)
                    if entry['lowest_weight']
                ),
                default=None,
            )
        ),
    ),
    'reference-difference': ExpectationKind(
        'largest difference of shares from a reference evaluation',
        _measure_of_run(
            lambda result: (result['reference'] or {}).get(
                'largest_difference'
            )
        ),
    ),
    'pairs': ExpectationKind(
        'pairs of phases without and with the agent',
        _measure_of_run(
            lambda result: float(
                len((result['uncontended'] or {}).get('pairs', ()))
            )
        ),
    ),
    'work-change-low': ExpectationKind(
        'change of the work, lower end of the 95 % confidence interval',
        _measure_of_run(_work_confidence_bound(0)),
    ),
    'work-change-high': ExpectationKind(
        'change of the work, upper end of the 95 % confidence interval',
        _measure_of_run(_work_confidence_bound(1)),
    ),
    'windows': ExpectationKind(
        'windows between events that are long enough to judge',
        _measure_of_run(lambda result: float(len(result['windows']))),
    ),
    'window-distance': ExpectationKind(
        '{}: largest distance of a VM from its max-min part',
        _measure_of_phases(
            lambda result: (
                (_span_text(item), _largest_distance(item))
                for item in result['windows']
            )
        ),
    ),
    'healing-rounds': ExpectationKind(
        '{}: round in which every agent knows all others',
        _measure_of_phases(
            lambda result: (
                (_healing_text(item), item['rounds_until_known'])
                for item in result['healings']
            )
        ),
    ),
    'healing-distance': ExpectationKind(
        '{}: largest distance of a VM from its max-min part '
        f'{peers.ROUNDS_TO_HEAL} rounds later',
        _measure_of_phases(
            lambda result: (
                (_healing_text(item), _largest_distance(item))
                for item in result['healings']
            )
        ),
    ),
    'contended-link-windows': ExpectationKind(
        'stretches in which VMs compete for the link',
        _measure_of_run(
            lambda result: float(len(_link_phases(result, lone=False)))
        ),
    ),
    'lone-link-windows': ExpectationKind(
        'stretches in which one VM has the link alone',
        _measure_of_run(
            lambda result: float(len(_link_phases(result, lone=True)))
        ),
    ),
    'link-distance': ExpectationKind(
        '{}: largest distance of a VM from the part of its class',
        _measure_of_phases(_link_rows('off_by', lone=False)),
    ),
    'link-part': ExpectationKind(
        '{}: part of the link that a lone VM has',
        _measure_of_phases(_link_rows('link_part', lone=True)),
    ),
}
"""Kinds of expectations, by the word that stands in a scenario."""
