# SPDX-License-Identifier: Apache-2.0

"""Foresight of an agent, for policies that use it."""

import dataclasses
import logging
import time

import numpy as np

from nova_fairness.agent import settings as settings_module
from nova_fairness.decide import foresight as decide_foresight
from nova_fairness.decide import policy as policy_base
from nova_fairness.decide import preferences
from nova_fairness.measure import foresight as measure_foresight
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import ownership
from nova_fairness.measure import totals
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model
from nova_fairness.runtime import guard as guard_module

LOG = logging.getLogger(__name__)


def knowledge_of_node(
    host: str,
    view: report.View,
    combined: totals.CombinedTotals,
    used: usage_model.Usage,
    metric: metric_base.Metric,
    settings: settings_module.Settings,
) -> foresight_model.NodeKnowledge:
    """Return what the reports in a view say of all nodes, for one node.

    :param host: name of that node; the view contains its report.
    :param combined: sums of the reports in the view.
    :param used: newest usage of the node's own VMs.
    """
    name = settings.metric
    owners = ownership.owners_of_node(used.incarnations, settings.entity)
    hosts = [item.host for item in totals.usable_reports(view, name)]
    known = measure_foresight.knowledge(
        view, used.interval_s, metric, name, combined.totals
    )
    return foresight_model.NodeKnowledge(
        # Others may have these indices in the next round.
        knowledge=dataclasses.replace(
            known, hosts=hosts, users=combined.users
        ),
        place=hosts.index(host),
        user=ownership.with_other_users(owners, combined.users).user_index,
    )


class Foreseer:
    """Searches for the fair division of the CPUs, round by round.

    :param guard: runs the metric under a deadline.
    """

    def __init__(self, guard: guard_module.Guard) -> None:
        self._guard = guard
        self._course = decide_foresight.AgentSearch()
        self._quick = True

    def of_node(
        self,
        measured: round_model.MeasuredRound,
        policy: policy_base.Policy,
        ratios: usage_model.Scalars,
        exempt: resources.Mask,
    ) -> foresight_model.Foresight | None:
        """Continue the search, and return its division for this node's VMs.

        :param ratios: (c,) largest weight divided by the smallest, of each
            control.
        :param exempt: (n,) VMs whose weight is always 1.
        :returns: ``None`` for a policy without foresight, and if a step of
            the search takes too long.
        :raises PluginMisbehaved: if the metric fails.
        """
        if not policy.uses_foresight or measured.knowledge is None:
            return None
        found = measured.knowledge()
        self._continue_search(
            found.knowledge, float(ratios[decide_foresight.CPU])
        )
        last = self._course.last
        if last is None:
            return None
        used = measured.weighed.newest
        here = np.zeros(1, dtype=np.intp)
        return foresight_model.Foresight(
            used=used,
            wanted=used if measured.wanted is None else measured.wanted,
            user=found.user,
            ratio=ratios,
            views=(
                foresight_model.SharedView(
                    here, here + found.place, last.knowledge, last.end
                ),
            ),
            exempt=exempt,
        )

    def _continue_search(
        self, known: foresight_model.CpuKnowledge, ratio: float
    ) -> None:
        """Continue the search for one round.

        Its time is measured in CPU time, so that a busy host does not count.
        """
        longest_s = decide_foresight.AFFORDABLE * self._guard.deadline_s
        times_s = []

        def make(
            known: foresight_model.CpuKnowledge,
            before: decide_foresight.ForesightSearch | None,
            steps: int,
        ) -> tuple[decide_foresight.ForesightSearch, float]:
            def timed() -> tuple[decide_foresight.ForesightSearch, float]:
                began_s = time.thread_time()
                found = decide_foresight.search_division(
                    known, ratio, before, steps
                )
                return found, time.thread_time() - began_s

            found, spent_s = self._guard.call(known.metric, timed)
            times_s.append(spent_s)
            return found, spent_s

        self._course = self._course.continue_for_round(known, make, longest_s)
        if times_s:
            self._log_step_time(
                known, times_s[0], quick=times_s[0] <= longest_s
            )

    def _log_step_time(
        self,
        known: foresight_model.CpuKnowledge,
        step_s: float,
        *,
        quick: bool,
    ) -> None:
        if self._quick != quick:
            LOG.warning(
                'A step of foresight with %s takes %.2f s of CPU time for'
                ' %d pairs of a user and a node, which is %s',
                known.metric,
                step_s,
                len(known.node),
                'fast enough again: foresight decides'
                if quick
                else 'too slow: feedback decides until it takes less',
            )
        self._quick = quick


def of_owners(
    situation: policy_base.Situation, chosen: resources.Mask
) -> foresight_model.Foresight | None:
    """Return the foresight as if owners had no preferences among their VMs.

    All chosen VMs of an owner get the same use and wants per vCPU.

    :param chosen: (n,) VMs by :func:`.preferences.has_unequal_preferences`.
    """
    given, user = situation.foresight, situation.user
    if given is None:
        return None
    vcpus = situation.vcpus.astype(np.float64)

    def alike(amounts: resources.Vector) -> resources.Vector:
        means = [
            preferences.means_of_users(column / vcpus, vcpus, user, chosen)
            for column in amounts.T
        ]
        return np.column_stack(means) * vcpus[:, np.newaxis]

    return dataclasses.replace(
        given, used=alike(given.used), wanted=alike(given.wanted)
    )
