# SPDX-License-Identifier: Apache-2.0

"""The newest round as Prometheus metrics; every name carries its unit."""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import numpy as np
from prometheus_client import core
from prometheus_client import registry

from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.observe import families
from nova_fairness.observe import peers
from nova_fairness.observe import record

Statistics = Callable[[], peers.Statistics]
"""Counts by name, by who counts: ``exchange``, ``transport``,
``notifications``."""


class RoundCollector(registry.Collector):
    """Keeps the newest round and sums what must never be lost.

    Keeping a round costs the cycle one assignment; the numbers are made at
    each scrape.

    :param statistics: asked at every scrape.
    """

    def __init__(self, statistics: Statistics = dict) -> None:
        self._statistics = statistics
        self._newest: round_model.Round | None = None
        self._sums: dict[str, float] = dict.fromkeys(
            (
                'rounds',
                'rounds_missed',
                'round_duration_seconds',
                'controls_changed',
                'controls_failed',
                'controls_drifted',
                'controls_restored',
                'round_errors',
                'neutral_returns',
            ),
            0.0,
        )

    def add(self, done: round_model.Round) -> None:
        """Take over a round."""
        tally = done.tally
        for name, amount in (
            ('rounds', 1.0),
            ('rounds_missed', tally.missed),
            ('round_duration_seconds', done.duration_s),
            ('controls_changed', tally.changed),
            ('controls_failed', tally.failed),
            ('controls_drifted', tally.drifted),
            ('controls_restored', tally.restored),
            ('round_errors', len(done.errors)),
            ('neutral_returns', _net(done).returned),
        ):
            self._sums[name] += amount
        self._newest = done

    @property
    def newest(self) -> round_model.Round | None:
        """The newest round, if there was one."""
        return self._newest

    def status(self) -> Mapping[str, Any] | None:
        """The newest round as JSON types, if there was one."""
        newest = self._newest
        return None if newest is None else record.as_json(newest)

    def collect(self) -> families.Metrics:
        """All metrics; called by the Prometheus library."""
        for name, total in self._sums.items():
            yield families.counter(name, _SUMS[name], [((), total)])
        statistics = self._statistics()
        yield from peers.of_statistics(statistics)
        yield from _notifications(statistics.get('notifications', {}))
        yield from _notices(statistics.get('notices', {}))
        done = self._newest
        if done is None:
            return
        yield from _state(done)
        yield from peers.of_round(done)
        yield from _applied(done)
        yield _idle(done)
        if done.effect is not None:
            yield from _effect(done, done.effect)
        if done.measured is not None:
            yield from _heaviness(done, done.measured)
            yield from peers.of_view(done.measured.view, done.node.host)
        if done.decided is not None:
            yield from _weights(done, done.decided)


def _notifications(counts: Mapping[str, int]) -> families.Metrics:
    yield families.counter(
        'notifications_sent',
        'Notifications handed to oslo.messaging.',
        [((), counts.get('sent', 0))],
    )
    yield families.counter(
        'notifications_dropped',
        'Notifications dropped because too many waited, or sending failed.',
        [((), counts.get('dropped', 0))],
    )


def _notices(counts: Mapping[str, int]) -> families.Metrics:
    yield families.counter(
        'guest_notices_sent',
        'Times that guests were told by their agent who leaves or stays.',
        [((), counts.get('sent', 0))],
    )
    yield families.counter(
        'guest_notices_failed',
        'Times that guests could not be told so by their agent.',
        [((), counts.get('failed', 0))],
    )


_SUMS = {
    'rounds': 'Rounds since the agent started.',
    'rounds_missed': 'Rounds left out because the one before ran late.',
    'round_duration_seconds': 'Time spent in rounds.',
    'controls_changed': 'Kernel controls that were written.',
    'controls_failed': 'Writes of kernel controls that were refused.',
    'controls_drifted': 'Controls that another program had changed.',
    'controls_restored': 'Controls that got back their base value.',
    'round_errors': 'Errors in rounds.',
    'neutral_returns': 'Times that CPU weights did harm and became neutral.',
}


_NO_NET = round_model.SafetyVerdict(0.0, 0, returned=False)


def _net(done: round_model.Round) -> round_model.SafetyVerdict:
    found = None if done.decided is None else done.decided.safety_net
    return found or _NO_NET


def _state(done: round_model.Round) -> families.Metrics:
    yield families.gauge(
        'round_timestamp_seconds',
        'When the newest round began, seconds since the epoch.',
        (),
        [((), done.wall_s)],
    )
    yield families.gauge(
        'enforced_bool',
        'Whether the kernel is written (1) or only watched (0).',
        (),
        [((), done.enforced)],
    )
    yield families.gauge(
        'metric_in_force_bool',
        'The metric and policy in force.',
        ('metric', 'policy'),
        [((done.metric, done.policy), 1)],
    )
    yield families.gauge(
        'plugin_quarantined_bool',
        'A plugin that misbehaved and is not run until it is set again.',
        ('plugin',),
        [((name,), 1) for name in sorted(done.quarantined)],
    )
    yield families.gauge(
        'state_unsaved_files',
        'Files of state that are out of date, because writing failed.',
        (),
        [((), len(done.unsaved))],
    )
    yield families.gauge(
        'neutral_bool',
        'Whether CPU weights are neutral because they did harm.',
        (),
        [((), _net(done).rest > 0)],
    )
    yield families.gauge(
        'harm_ratio',
        'Part that a user has less with CPU weights than without, at most.',
        (),
        [((), _net(done).harm)],
    )
    yield families.gauge(
        'instances',
        'VMs on this node.',
        (),
        [((), len(done.incarnations))],
    )


def _vm(done: round_model.Round, row: int) -> families.Labels:
    vm = done.incarnations[row].instance
    return (vm.uuid, vm.user_id, vm.project_id)


# Prometheus keeps the label "instance" for itself.
_VM_LABELS = ('instance_uuid', 'user', 'project')


def _applied(done: round_model.Round) -> families.Metrics:
    yield families.gauge(
        'control_works_bool',
        'Whether VMs are steered by a control on this node.',
        ('control',),
        [((kind.value,), item.works) for kind, item in done.controls.items()],
    )
    labels = {
        item.key: _vm(done, row) for row, item in enumerate(done.incarnations)
    }
    yield families.gauge(
        'instance_control_units',
        'Values in the kernel, in its own units.',
        (*_VM_LABELS, 'control'),
        [
            ((*labels[knob.incarnation], knob.control.value), value)
            for knob, value in done.applied.items()
            if knob.incarnation in labels
        ],
    )
    yield families.gauge(
        'instance_cpu_shares',
        'CPU shares (cgroup v1) or cpu.weight (v2) that the kernel holds.',
        _VM_LABELS,
        [
            (labels[knob.incarnation], value)
            for knob, value in done.applied.items()
            if knob.control is resources.ResourceControl.CPU
            and knob.incarnation in labels
        ],
    )


def _idle(done: round_model.Round) -> core.Metric:
    vms = [vm.instance.uuid for vm in done.incarnations]
    return families.gauge(
        'instance_idle_seconds',
        'Seconds for which a VM has done next to nothing.',
        _VM_LABELS,
        [
            (_vm(done, row), max(done.wall_s - done.idle_since[uuid], 0.0))
            for row, uuid in enumerate(vms)
            if uuid in done.idle_since
        ],
    )


def _effect(
    done: round_model.Round, effect: round_model.Effect
) -> families.Metrics:
    rows = np.flatnonzero(np.isfinite(effect.expected))
    for name, what, parts in (
        (
            'instance_cpu_expected_ratio',
            'should have by its weight',
            effect.expected,
        ),
        ('instance_cpu_received_ratio', 'had', effect.received),
    ):
        yield families.gauge(
            name,
            f'Part of the CPU time of steered VMs that a VM {what}.',
            _VM_LABELS,
            [(_vm(done, row), parts[row]) for row in rows.tolist()],
        )
    cpu = (resources.ResourceControl.CPU.value,)
    yield families.gauge(
        'control_effect_ratio',
        'How far VMs follow the weights of a control; 1 is wholly.',
        ('control',),
        [] if effect.followed is None else [(cpu, effect.followed)],
    )


def _heaviness(
    done: round_model.Round, measured: round_model.MeasuredRound
) -> families.Metrics:
    yield families.gauge(
        'user_heaviness_quotas',
        'Heaviness of a user; 1 is a whole quota.',
        ('user',),
        [
            ((user,), heaviness)
            for user, heaviness in zip(
                measured.ownership.users,
                measured.user_heaviness,
                strict=True,
            )
        ],
    )
    rows = range(len(done.incarnations))
    yield families.gauge(
        'instance_heaviness_quotas',
        'Heaviness by which a VM is treated; 1 is a whole quota.',
        _VM_LABELS,
        [(_vm(done, row), measured.heaviness[row]) for row in rows],
    )
    yield families.gauge(
        'instance_cpu_stall_ratio',
        'Part of the interval in which a VM waited for a CPU.',
        _VM_LABELS,
        [
            (_vm(done, row), measured.usage.cpu_stall[row])
            for row in rows
            if np.isfinite(measured.usage.cpu_stall[row])
        ],
    )
    yield _usage(done, measured)


def _usage(
    done: round_model.Round, measured: round_model.MeasuredRound
) -> core.Metric:
    supply = done.node.supply(measured.usage.interval_s)
    parts = np.divide(
        measured.usage.amounts,
        supply,
        out=np.zeros_like(measured.usage.amounts),
        where=supply > 0,
    )
    return families.gauge(
        'instance_usage_ratio',
        'Part of what the node has that a VM used, by resource.',
        (*_VM_LABELS, 'resource'),
        [
            ((*_vm(done, row), name), parts[row, place])
            for row in range(len(done.incarnations))
            for place, name in enumerate(resources.RESOURCES.names)
        ],
    )


def _weights(
    done: round_model.Round, decided: round_model.DecidedRound
) -> families.Metrics:
    yield families.gauge(
        'contended_bool',
        'Whether VMs of this node compete for what a control steers.',
        ('control',),
        [
            ((control.value,), decided.contended[place])
            for place, control in enumerate(resources.CONTROLS)
        ],
    )
    yield families.gauge(
        'instance_weight_ratio',
        'Weight of a VM; 1 is neutral, more is more service.',
        (*_VM_LABELS, 'control'),
        [
            ((*_vm(done, row), control.value), decided.weights[row, place])
            for row in range(len(done.incarnations))
            for place, control in enumerate(resources.CONTROLS)
        ],
    )
