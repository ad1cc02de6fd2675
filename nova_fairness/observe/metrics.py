# SPDX-License-Identifier: Apache-2.0

"""Prometheus metrics of the newest round; every name ends with its unit."""

from collections.abc import Callable
from collections.abc import Mapping
import threading
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
"""Returns counters by name, by source: ``exchange``, ``transport``,
``notifications``, ``notices``.
"""


class RoundCollector(registry.Collector):
    """Stores the newest round, and totals over all rounds.

    A round costs only one assignment; metrics are created at each scrape.

    :param statistics: returns the counters at every scrape.
    """

    def __init__(self, statistics: Statistics = dict) -> None:
        self._statistics = statistics
        self._newest: round_model.Round | None = None
        self._replacing = threading.Lock()
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
        """Store a round and add its numbers to the totals."""
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
            ('neutral_returns', _safety_verdict(done).returned),
        ):
            self._sums[name] += amount
        with self._replacing:
            self._newest = done

    def complete(self, done: round_model.Round) -> None:
        """Replace the newest round by the same with more results; an older
        round is ignored.
        """
        with self._replacing:
            if self._newest is not None and self._newest.number == done.number:
                self._newest = done

    @property
    def newest(self) -> round_model.Round | None:
        """The newest round; ``None`` before the first."""
        return self._newest

    def status(self) -> Mapping[str, Any] | None:
        """Return the newest round as JSON types; ``None`` before the first."""
        newest = self._newest
        return None if newest is None else record.as_json(newest)

    def collect(self) -> families.Metrics:
        """Yield all metrics; the Prometheus library calls this method."""
        for name, total in self._sums.items():
            yield families.metric(name, [((), total)])
        statistics = self._statistics()
        yield from peers.counter_metrics(statistics)
        yield from _notifications(statistics.get('notifications', {}))
        yield from _notices(statistics.get('notices', {}))
        done = self._newest
        if done is None:
            return
        yield from _state(done)
        yield from peers.state_metrics(done)
        yield from _applied(done)
        yield _idle(done)
        if done.effect is not None:
            yield from _effect(done, done.effect)
        if done.measured is not None:
            yield from _heaviness(done, done.measured)
            yield from peers.view_metrics(done.measured.view, done.node.host)
        if done.decided is not None:
            yield from _weights(done, done.decided)
        if done.shadow is not None:
            yield from _shadow(done, done.shadow)


def _notifications(counts: Mapping[str, int]) -> families.Metrics:
    yield families.metric('notifications_sent', [((), counts.get('sent', 0))])
    yield families.metric(
        'notifications_dropped', [((), counts.get('dropped', 0))]
    )


def _notices(counts: Mapping[str, int]) -> families.Metrics:
    yield families.metric('guest_notices_sent', [((), counts.get('sent', 0))])
    yield families.metric(
        'guest_notices_failed', [((), counts.get('failed', 0))]
    )


_NO_VERDICT = round_model.SafetyVerdict(0.0, 0, returned=False)


def _safety_verdict(done: round_model.Round) -> round_model.SafetyVerdict:
    found = None if done.decided is None else done.decided.safety_net
    return found or _NO_VERDICT


def _state(done: round_model.Round) -> families.Metrics:
    yield families.metric('round_timestamp_seconds', [((), done.wall_s)])
    yield families.metric('enforced_bool', [((), done.enforced)])
    yield families.metric(
        'metric_in_force_bool', [((done.metric, done.policy), 1)]
    )
    yield families.metric(
        'plugin_quarantined_bool',
        [((name,), 1) for name in sorted(done.quarantined)],
    )
    yield families.metric('state_unsaved_files', [((), len(done.unsaved))])
    yield families.metric(
        'neutral_bool', [((), _safety_verdict(done).rest > 0)]
    )
    yield families.metric('harm_ratio', [((), _safety_verdict(done).harm)])
    yield families.metric('instances', [((), len(done.incarnations))])


def _vm_labels(done: round_model.Round, row: int) -> families.Labels:
    vm = done.incarnations[row].instance
    return (vm.uuid, vm.user_id, vm.project_id)


def _applied(done: round_model.Round) -> families.Metrics:
    yield families.metric(
        'control_works_bool',
        [((kind.value,), item.works) for kind, item in done.controls.items()],
    )
    labels = {
        item.key: _vm_labels(done, row)
        for row, item in enumerate(done.incarnations)
    }
    yield families.metric(
        'instance_control_units',
        [
            ((*labels[knob.incarnation], knob.control.value), value)
            for knob, value in done.applied.items()
            if knob.incarnation in labels
        ],
    )
    yield families.metric(
        'instance_cpu_shares',
        [
            (labels[knob.incarnation], value)
            for knob, value in done.applied.items()
            if knob.control is resources.ResourceControl.CPU
            and knob.incarnation in labels
        ],
    )


def _idle(done: round_model.Round) -> core.Metric:
    vms = [vm.instance.uuid for vm in done.incarnations]
    return families.metric(
        'instance_idle_seconds',
        [
            (
                _vm_labels(done, row),
                max(done.wall_s - done.idle_since[uuid], 0.0),
            )
            for row, uuid in enumerate(vms)
            if uuid in done.idle_since
        ],
    )


def _effect(
    done: round_model.Round, effect: round_model.Effect
) -> families.Metrics:
    rows = np.flatnonzero(np.isfinite(effect.expected))
    for name, parts in (
        ('instance_cpu_expected_ratio', effect.expected),
        ('instance_cpu_received_ratio', effect.received),
    ):
        yield families.metric(
            name,
            [(_vm_labels(done, row), parts[row]) for row in rows.tolist()],
        )
    cpu = (resources.ResourceControl.CPU.value,)
    yield families.metric(
        'control_effect_ratio',
        [] if effect.followed is None else [(cpu, effect.followed)],
    )


def _heaviness(
    done: round_model.Round, measured: round_model.MeasuredRound
) -> families.Metrics:
    yield families.metric(
        'user_heaviness_quotas',
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
    yield families.metric(
        'instance_heaviness_quotas',
        [(_vm_labels(done, row), measured.heaviness[row]) for row in rows],
    )
    yield families.metric(
        'instance_cpu_stall_ratio',
        [
            (_vm_labels(done, row), measured.usage.cpu_stall[row])
            for row in rows
            if np.isfinite(measured.usage.cpu_stall[row])
        ],
    )
    yield _usage(done, measured)


def _shadow(
    done: round_model.Round, shadow: round_model.ShadowHeaviness
) -> families.Metrics:
    yield families.metric(
        'shadow_metric_works_bool', [((shadow.metric,), not shadow.problem)]
    )
    yield families.metric(
        'user_shadow_heaviness_quotas',
        [
            ((user,), heaviness)
            for user, heaviness in shadow.user_heaviness.items()
        ],
    )
    yield families.metric(
        'instance_shadow_heaviness_quotas',
        [
            (_vm_labels(done, row), shadow.heaviness[vm.key])
            for row, vm in enumerate(done.incarnations)
            if vm.key in shadow.heaviness
        ],
    )


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
    return families.metric(
        'instance_usage_ratio',
        [
            ((*_vm_labels(done, row), name), parts[row, place])
            for row in range(len(done.incarnations))
            for place, name in enumerate(resources.RESOURCES.names)
        ],
    )


def _weights(
    done: round_model.Round, decided: round_model.DecidedRound
) -> families.Metrics:
    yield families.metric(
        'contended_bool',
        [
            ((control.value,), decided.contended[place])
            for place, control in enumerate(resources.CONTROLS)
        ],
    )
    yield families.metric(
        'instance_weight_ratio',
        [
            (
                (*_vm_labels(done, row), control.value),
                decided.weights[row, place],
            )
            for row in range(len(done.incarnations))
            for place, control in enumerate(resources.CONTROLS)
        ],
    )
