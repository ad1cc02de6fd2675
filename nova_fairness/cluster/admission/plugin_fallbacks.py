# SPDX-License-Identifier: Apache-2.0

"""Fallbacks for order and victim plugins that fail.

A plugin that exceeds its deadline is quarantined, and the next plugin of its
kind replaces it at once. After a pause, the plugin is called again. A victim
policy that fails in any other way is treated in the same way.

An order plugin may fail because of one request. So its error is raised with
the name of the plugin, and
:class:`~nova_fairness.cluster.admission.isolation.PlannerIsolation` first
searches for the request that causes the error.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import functools
from typing import Generic
from typing import TypeVar

from nova_fairness import exception
from nova_fairness.cluster import quarantine as quarantine_module
from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.preemption import candidates
from nova_fairness.planners.preemption import victims as victims_module
from nova_fairness.runtime import guard

DEADLINE_S = 10.0
"""Longest duration of one call of a plugin, in seconds; shorter than the lease
of a leader.
"""

_PLUGIN = quarantine_module.InputKind.PLUGIN
_P = TypeVar('_P')
_T = TypeVar('_T')


class _Fallbacks(Generic[_P]):
    """Plugins of one kind; calls use the first plugin that is not in
    quarantine.

    :param kind: kind of the plugins, for messages.
    :param plugins: plugins by name, the preferred plugin first. The last one
        has no deadline.
    :param quarantine: quarantine of plugins that misbehaved.
    :param deadline_s: longest duration of one call, in seconds, > 0.
    """

    def __init__(
        self,
        kind: str,
        plugins: Mapping[str, _P],
        quarantine: quarantine_module.Quarantine,
        deadline_s: float,
    ) -> None:
        names = [f'{kind} {name}' for name in plugins]
        *self._guarded, last = zip(names, plugins.values(), strict=True)
        self._last = last[1]
        self._quarantine = quarantine
        self._runner = guard.Runner(deadline_s)

    def call(
        self,
        call_plugin: Callable[[_P], _T],
        tolerated_errors: tuple[type[exception.PluginMisbehaved], ...],
    ) -> _T:
        """Call the first plugin that is not in quarantine, and return its
        result.

        :param call_plugin: calls a plugin; it raises only
            :class:`.PluginMisbehaved`.
        :param tolerated_errors: errors after which the plugin is quarantined
            and the next plugin is called.
        :raises PluginMisbehaved: for any other error; it names the plugin.
        """
        for name, plugin in self._guarded:
            if self._quarantine.holds(_PLUGIN, name):
                continue
            try:
                return self._runner.run(
                    functools.partial(_call_without_exit, call_plugin, plugin)
                )
            except tolerated_errors as error:
                self._quarantine.put(_PLUGIN, name, error)
            except exception.PluginMisbehaved as error:
                error.plugin = name
                raise
        return call_plugin(self._last)


def _call_without_exit(call_plugin: Callable[[_P], _T], plugin: _P) -> _T:
    """Call a plugin; if it exits the process, raise :class:`.PluginMisbehaved`
    instead.
    """
    try:
        return call_plugin(plugin)
    except SystemExit as error:
        raise exception.PluginMisbehaved(
            'the plugin tried to exit the process'
        ) from error


class OrderFallbacks(order_module.Order):
    """Uses the first of several orders that does not fail.

    :param orders: orders by name, the preferred order first.
    :param quarantine: quarantine of orders that misbehaved.
    :param deadline_s: longest duration of one call, in seconds, > 0.
    """

    description = 'The first of several orders that works.'

    def __init__(
        self,
        orders: Mapping[str, order_module.Order],
        quarantine: quarantine_module.Quarantine,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._orders = _Fallbacks('order', orders, quarantine, deadline_s)

    def arrange(
        self,
        waiting: Sequence[request_model.Request],
        snapshot: cluster.ClusterSnapshot,
        now: float,
    ) -> Sequence[request_model.Request]:
        """Return the requests in order; see :meth:`.Order.arrange`."""
        return self._orders.call(
            lambda each: order_module.arranged(waiting, snapshot, now, each),
            (exception.PluginTooSlow,),
        )

    def factors(
        self,
        waiting: Sequence[request_model.Request],
        snapshot: cluster.ClusterSnapshot,
        now: float,
    ) -> Mapping[str, cluster.Factors]:
        """Return the numbers that explain positions; see
        :meth:`.Order.factors`.
        """
        return self._orders.call(
            lambda each: order_module.checked_factors(
                waiting, snapshot, now, each
            ),
            (exception.PluginTooSlow,),
        )


class VictimFallbacks(victims_module.Victims):
    """Uses the first of several victim policies that does not fail.

    :param policies: policies by name, the preferred policy first.
    :param quarantine: quarantine of policies that misbehaved.
    :param deadline_s: longest duration of one call, in seconds, > 0.
    """

    description = 'The first of several victim policies that works.'

    def __init__(
        self,
        policies: Mapping[str, victims_module.Victims],
        quarantine: quarantine_module.Quarantine,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._policies = _Fallbacks(
            'victims', policies, quarantine, deadline_s
        )

    def choose(
        self,
        needs: Sequence[candidates.Need],
        field: candidates.VictimCandidates,
    ) -> Sequence[candidates.VictimChoice | None]:
        """Choose hosts and victims for requests; see
        :meth:`.Victims.choose`.
        """
        return self._policies.call(
            lambda each: victims_module.chosen(needs, field, each),
            (exception.PluginMisbehaved,),
        )
