# SPDX-License-Identifier: Apache-2.0

"""Orders and victim policies that no faulty plugin can stop.

A plugin that exceeds its deadline enters the quarantine, and the next plugin
of its kind works in its place at once. The plugin is tried again after a
pause. A victim policy that fails in any other way is treated in the same way.

An order may raise an error because of one request. So this module passes the
error on with the name of the plugin, and
:class:`~nova_fairness.cluster.admission.isolation.PlannerIsolation` first looks for
    the request that causes it.
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
"""Seconds that one call of a plugin may take; a lease lasts longer."""

_PLUGIN = quarantine_module.InputKind.PLUGIN
_P = TypeVar('_P')
_T = TypeVar('_T')


class _Fallbacks(Generic[_P]):
    """Plugins of one kind; the first that is not in quarantine works.

    :param kind: kind of the plugins, for messages.
    :param plugins: by name; a later plugin replaces those before it. The last
        one has no deadline.
    :param quarantine: of plugins that misbehaved.
    :param deadline_s: seconds that one call may take, > 0.
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
        """Call the first plugin that is not in quarantine.

        :param call_plugin: calls a plugin; it raises only :class:`.PluginMisbehaved`.
        :param tolerated_errors: errors after which the next plugin is called.
        :raises PluginMisbehaved: any other error; it names the plugin.
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
    """Call a plugin, and prevent it from ending the process."""
    try:
        return call_plugin(plugin)
    except SystemExit as error:
        raise exception.PluginMisbehaved('it called exit') from error


class OrderFallbacks(order_module.Order):
    """Uses the first of several orders that works.

    :param orders: by name, the preferred order first.
    :param quarantine: of orders that misbehaved.
    :param deadline_s: seconds that one call may take, > 0.
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
        """Put requests in order; see :meth:`.Order.arrange`."""
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
        """Numbers that explain positions; see :meth:`.Order.factors`."""
        return self._orders.call(
            lambda each: order_module.factors(waiting, snapshot, now, each),
            (exception.PluginTooSlow,),
        )


class VictimFallbacks(victims_module.Victims):
    """Uses the first of several victim policies that works.

    :param policies: by name, the preferred policy first.
    :param quarantine: of policies that misbehaved.
    :param deadline_s: seconds that one call may take, > 0.
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
        """Choose hosts and victims; see :meth:`.Victims.choose`."""
        return self._policies.call(
            lambda each: victims_module.chosen(needs, field, each),
            (exception.PluginMisbehaved,),
        )
