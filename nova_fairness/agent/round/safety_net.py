# SPDX-License-Identifier: Apache-2.0

"""The safety net of an agent: neutral weights where weights do harm."""

from collections.abc import Mapping
import dataclasses
import functools
import logging

import numpy as np

from nova_fairness.agent import settings as settings_module
from nova_fairness.decide import safety_net
from nova_fairness.decide.controls import scale as scale_module
from nova_fairness.measure import foresight as measure_foresight
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import round as measure_round
from nova_fairness.measure import stages
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model
from nova_fairness.model import wording
from nova_fairness.runtime import guard as guard_module
from nova_fairness.shares import grouping

LOG = logging.getLogger(__name__)

_CPU = resources.ResourceControl.CPU
_TIME = resources.RESOURCES.index('cpu_time')


class SafetyNet:
    """Judges the effect of weights; starts again for a new metric or policy.

    :param guard: runs the metric.
    """

    def __init__(self, guard: guard_module.Guard) -> None:
        self._guard = guard
        self._settings_pair = ('', '')
        self.forget()

    def forget(self) -> None:
        """Delete the recorded effects of weights."""
        self._past = safety_net.RoundCounts.unknown(1)

    def judge(
        self,
        measured: round_model.MeasuredRound,
        metric: metric_base.Metric,
        settings: settings_module.Settings,
        scale: scale_module.Scale,
        facts: scale_module.ScaleFacts,
    ) -> round_model.SafetyVerdict:
        """Judge the effect of the CPU weights in an interval.

        :param scale: converts CPU weights to kernel units.
        :param facts: of the round, with the kernel values in the interval.
        :raises PluginMisbehaved: if the metric fails.
        """
        chosen = (settings.metric, settings.policy)
        if self._settings_pair != chosen:
            self._settings_pair = chosen
            self.forget()
        was_neutral = bool(self._past.rest[0])
        found = safety_net.judge(
            _division(measured, scale, facts),
            self._past,
            functools.partial(
                self._heaviness_without, measured, metric, settings
            ),
        )
        self._past = found.past
        told = round_model.SafetyVerdict(
            harm=float(found.harm[0]),
            rest=int(found.past.rest[0]),
            returned=bool(found.returned[0]),
        )
        if told.returned:
            LOG.warning(
                'node %s: returned to neutral CPU weights for %s: user'
                ' %s has %.0f %% less with the weights of policy %s than'
                ' without; if this happens again, set another policy',
                settings.host,
                wording.counted(told.rest, 'round'),
                measured.ownership.users[found.harmed[0]],
                100 * told.harm,
                settings.policy,
            )
        elif was_neutral and not told.rest:
            LOG.info(
                'node %s: policy %s decides CPU weights again',
                settings.host,
                settings.policy,
            )
        return told

    def _heaviness_without(
        self,
        measured: round_model.MeasuredRound,
        metric: metric_base.Metric,
        settings: settings_module.Settings,
        cpu_time: usage_model.Scalars,
    ) -> usage_model.Scalars:
        if not cpu_time.any():
            return measured.heaviness
        return self._guard.call(
            settings.metric,
            lambda: heaviness_with_less_cpu(measured, metric, cpu_time),
        )


def heaviness_with_less_cpu(
    measured: round_model.MeasuredRound,
    metric: metric_base.Metric,
    cpu_time: usage_model.Scalars,
) -> usage_model.Scalars:
    """Return the heaviness of VMs as if they had used less CPU time.

    :param cpu_time: (n,) amounts to subtract; below 0 adds.
    :returns: (n,).
    :raises PluginMisbehaved: if the metric fails in any stage.
    """
    basis, of_all = measured.basis, measured.user_usage
    if basis is None or of_all is None:
        return measured.heaviness
    usage = measured.weighed.amounts.copy()
    usage[:, _TIME] = (usage[:, _TIME] - cpu_time).clip(0.0)
    users, place = grouping.number_present_groups(
        measured.ownership.user_index
    )
    of_users = measure_foresight.of_users(
        metric, measured.quota[users], basis.user_supply
    )
    if of_users is None:
        return _heaviness_by_stages(measured, metric, basis, of_all, usage)
    # Such a metric needs no other users, and there may be many.
    change = usage - measured.weighed.amounts
    return of_users(_add_by_user(of_all[users], place, change))[place]


def _heaviness_by_stages(
    measured: round_model.MeasuredRound,
    metric: metric_base.Metric,
    basis: round_model.Basis,
    of_all: resources.Vector,
    usage: resources.Vector,
) -> usage_model.Scalars:
    """Run all stages of the metric with other usage of the VMs, (n,)."""
    user = measured.ownership.user_index
    own = stages.instance_stage(
        metric,
        metric_base.Demands(
            usage=usage,
            endowment=measured.endowment,
            supply=basis.supply,
            node=measured.ownership.node_index,
            user_count=basis.user_count,
            rates=basis.rates,
        ),
    )
    heavier = own - measured.instance_heaviness
    totals = metric_base.Totals(
        instance_heaviness=basis.user_instance_heaviness
        + grouping.sum_by(user, heavier, len(of_all)),
        usage=_add_by_user(of_all, user, usage - measured.weighed.amounts),
        endowment=basis.user_endowment,
        quota=measured.quota,
        supply=basis.user_supply,
    )
    return measure_round.run_user_stages(metric, totals, user, own)[1]


def _add_by_user(
    of_all: resources.Vector, user: usage_model.Indices, more: resources.Vector
) -> resources.Vector:
    return (of_all + grouping.sum_by(user, more, len(of_all))).clip(0.0)


def with_safety_net(
    controls: Mapping[resources.ResourceControl, round_model.ControlStatus],
    verdict: round_model.SafetyVerdict | None,
) -> Mapping[resources.ResourceControl, round_model.ControlStatus]:
    """Return the state of the controls; CPU weights do not work while
    neutral.
    """
    working = controls.get(_CPU)
    if (
        verdict is None
        or not verdict.rest
        or working is None
        or not working.works
    ):
        return controls
    why = (
        'returned to neutral: users had less with the weights than without;'
        f' the policy decides again in'
        f' {wording.counted(verdict.rest, "round")}'
    )
    return {
        **controls,
        _CPU: dataclasses.replace(working, works=False, why=why),
    }


def _division(
    measured: round_model.MeasuredRound,
    scale: scale_module.Scale,
    facts: scale_module.ScaleFacts,
) -> safety_net.CpuDivision:
    used = measured.weighed.newest
    wanted = used if measured.wanted is None else measured.wanted
    user = measured.ownership.user_index
    of_all = measured.user_usage
    count = len(used)
    rows = [
        row
        for row in scale.steerable_rows(facts)
        if not facts.is_best_effort[row]
    ]
    held = [facts.units(_CPU)[row] for row in rows]
    parts, neutral, counts = np.ones(count), np.ones(count), np.zeros(count)
    parts[rows] = [
        scale.weight_of_units(units) for units in held if units is not None
    ]
    neutral[rows] = [
        scale.weight_of_units(units)
        for units in scale.units(np.ones(count), rows, facts)
    ]
    counts[rows] = 1
    return safety_net.CpuDivision(
        node=np.zeros(count, dtype=np.intp),
        nodes=1,
        user=user,
        received=used[:, _TIME],
        wanted=wanted[:, _TIME],
        parts=parts,
        neutral=neutral,
        user_total=used[:, _TIME] if of_all is None else of_all[user, _TIME],
        is_steered=(counts > 0) & measured.weighed.known,
    )
