# SPDX-License-Identifier: Apache-2.0

"""Answers the calls to an agent; no answer waits for a round."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import time
from typing import Any

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness import version
from nova_fairness.agent.comms import peering as peering_module
from nova_fairness.agent.explain import answer
from nova_fairness.agent.explain import history as weight_history
from nova_fairness.agent.explain import parts as parts_module
from nova_fairness.agent.inputs import active_settings
from nova_fairness.agent.inputs import preferences as preferences_module
from nova_fairness.agent.round import preview as preview_module
from nova_fairness.exchange import desired as desired_module
from nova_fairness.model import caller
from nova_fairness.model import round as round_model
from nova_fairness.observe import status
from nova_fairness.rpc import endpoint


@dataclasses.dataclass(frozen=True)
class Sources:
    """The objects that answers are computed from.

    :ivar boot_id: identifier of this run of the agent.
    :ivar newest_round: returns the last finished round, ``None`` before the
        first.
    :ivar clock: monotonic, seconds.
    :ivar history: weights of this node's VMs in the last hour.
    :ivar previewer: forecasts the effect of other metrics.
    :ivar explainer: computes the parts of a heaviness.
    :ivar wall_clock: seconds since the epoch.
    """

    boot_id: str
    peering: peering_module.Peering
    regime: active_settings.Regime
    orders: active_settings.SettingOrders
    preferences: preferences_module.Preferences
    newest_round: Callable[[], round_model.Round | None]
    clock: Callable[[], float]
    history: weight_history.WeightHistory
    previewer: preview_module.Previewer
    explainer: parts_module.Explainer = dataclasses.field(
        default_factory=parts_module.Explainer
    )
    wall_clock: Callable[[], float] = time.time


class AgentOperations(endpoint.AgentCalls):
    """Implements the calls to an agent; methods may run on any thread.

    :param sources: the objects that answers are computed from.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def choose(
        self,
        metric: str | None,
        policy: str | None,
        by: caller.Asker = caller.UNKNOWN,
    ) -> endpoint.Answer:
        """Create a new epoch of the desired state."""
        _check_plugins(metric, policy)
        configured = self._sources.regime.configured
        made = self._desired.set(
            metric, policy, (configured.metric, configured.policy), by
        )
        return self._epoch_reply(made)

    def take_over(
        self,
        metric: str | None,
        policy: str | None,
        epoch: int,
        origin: str,
        signature: str = '',
        by: caller.Asker = caller.UNKNOWN,
    ) -> endpoint.Answer:
        """Accept an epoch that a controller or another node created."""
        _check_plugins(metric, policy)
        now = self._sources.regime.in_force.settings
        given = desired_module.DesiredChoice(
            epoch,
            metric or now.metric,
            policy or now.policy,
            origin,
            signature,
            by.user_id,
            by.request_id,
        )
        counts = self._desired.take_over(given)
        if counts != given:
            raise exception.Superseded(
                f'epoch {epoch} of {origin}: refused: epoch '
                f'{counts.epoch} of {counts.origin} (metric {counts.metric}, '
                f'policy {counts.policy}) is in force already'
            )
        return self._epoch_reply(counts)

    def pause(self, by: caller.Asker = caller.UNKNOWN) -> endpoint.Answer:
        """Restore all controls in the next round, and pause enforcement."""
        return self._set_paused(by, paused=True)

    def resume(self, by: caller.Asker = caller.UNKNOWN) -> endpoint.Answer:
        """Enforce weights again from the next round on."""
        return self._set_paused(by, paused=False)

    def reset(self) -> endpoint.Answer:
        """Reset all weights to neutral in the next round."""
        self._sources.orders.request_reset()
        return self._reply()

    def prefer(
        self, preferences: Mapping[str, float | None]
    ) -> endpoint.Answer:
        """Set preferences of owners among their VMs, from the next round
        on.
        """
        problem = self._sources.preferences.store(preferences)
        return self._reply(
            preferences_count=len(self._sources.preferences.current()),
            persistent=not problem,
            problem=problem,
        )

    def status(self) -> endpoint.Answer:
        """Return the state of the agent."""
        regime = self._sources.regime
        in_force, settings = regime.in_force, regime.configured
        done = self._sources.newest_round()
        return {
            'host': settings.host,
            'boot_id': self._sources.boot_id,
            'version': version.release(),
            'metric': in_force.settings.metric,
            'policy': in_force.settings.policy,
            'epoch': in_force.epoch,
            'origin': in_force.chosen_by.caller,
            'refused': in_force.refused,
            'warning': in_force.warning,
            'desired': self._desired_status(),
            'paused': self._sources.orders.paused,
            'enforce': settings.enforce,
            'interval_s': settings.interval_s,
            'next_round': regime.next_round,
            'round': None if done is None else status.round_summary(done),
            'peers': status.peers_status(
                self._sources.peering.exchange.view(
                    self._sources.clock(), in_force.settings.metric
                ),
                settings.host,
            ),
            'controls': {} if done is None else status.controls_status(done),
            'quarantined': dict(done.quarantined) if done is not None else {},
            'shadow': status.shadow_status(done),
            'unsaved': [] if done is None else list(done.unsaved),
            **self._sources.peering.statistics(),
        }

    def instances(self) -> endpoint.Answer:
        """Return the state of the VMs on this node."""
        done = self._sources.newest_round()
        return self._round_reply(
            done,
            instances=status.instances_status(done),
            shadow_metric=status.shadow_name(done),
        )

    def users(self) -> endpoint.Answer:
        """Return the state of the users on all known nodes."""
        done = self._sources.newest_round()
        return self._round_reply(
            done,
            users=status.users_status(done),
            entity=self._entity,
            shadow_metric=status.shadow_name(done),
        )

    def usage(self) -> endpoint.Answer:
        """Return each user's part of the use on all known nodes."""
        done = self._sources.newest_round()
        return self._round_reply(
            done, users=status.usage_of_users(done), entity=self._entity
        )

    def idle(self, at_least_s: float) -> endpoint.Answer:
        """Return the VMs of this node that are idle.

        :param at_least_s: shortest time for which a VM is idle, in seconds.
        """
        done = self._sources.newest_round()
        return self._round_reply(
            done, idle=status.idle_seconds(done, at_least_s)
        )

    def lacking(self) -> endpoint.Answer:
        """Return the CPUs that the VMs of this node want, and those they
        get.
        """
        done = self._sources.newest_round()
        return self._round_reply(
            done,
            entity=self._entity,
            cpus_count=None if done is None else len(done.node.cpus),
            instances=status.cpu_demand(done),
        )

    def projects(self) -> endpoint.Answer:
        """Return the state of the projects on this node, or on all known
        nodes.
        """
        done = self._sources.newest_round()
        everywhere = self._entity == 'project'
        tell = status.users_status if everywhere else status.projects_status
        return self._round_reply(
            done,
            entity=self._entity,
            scope='domain' if everywhere else 'host',
            projects=tell(done),
            shadow_metric=status.shadow_name(done),
        )

    def plugins(self) -> endpoint.Answer:
        """Return the metrics and policies that are installed on this node."""
        return {
            'host': self._sources.regime.configured.host,
            'metric': self._sources.regime.in_force.settings.metric,
            'policy': self._sources.regime.in_force.settings.policy,
            'metrics': _plugin_list(plugins.describe_metrics()),
            'policies': _plugin_list(plugins.describe_policies()),
        }

    def instance(self, uuid: str) -> endpoint.Answer:
        """Explain why a VM gets its resources.

        :raises UnknownInstance: if the VM was not in the newest round.
        """
        done = self._sources.newest_round()
        row = None if done is None else answer.find_row(done, uuid)
        if done is None or row is None:
            host = self._sources.regime.configured.host
            raise exception.UnknownInstance(
                f'VM {uuid}: unknown: it was not in the newest round of '
                f'node {host}'
            )
        asked = answer.AskedVm(
            done,
            row,
            self._sources.explainer.parts(done),
            self._sources.history.entries_of(uuid, self._sources.wall_clock()),
            self._sources.regime.in_force.settings,
            self._sources.explainer.preset(done),
        )
        return self._round_reply(done, instance=answer.explain(asked))

    def preview(self, metric: str | None) -> endpoint.Answer:
        """Forecast the CPUs of this node's VMs with weights in force.

        :param metric: its name; ``None`` forecasts all installed metrics.
        """
        _check_plugins(metric, None)
        done = self._sources.newest_round()
        settings = self._sources.regime.in_force.settings
        return self._round_reply(
            done,
            entity=self._entity,
            policy=settings.policy,
            enforced=None if done is None else done.enforced,
            not_foreseen=preview_module.contended_besides_cpu(done),
            metrics=self._sources.previewer.previews(
                done,
                settings,
                self._sources.preferences.current(),
                plugins.metric_names() if metric is None else (metric,),
            ),
        )

    @property
    def _entity(self) -> str:
        return self._sources.regime.in_force.settings.entity

    @property
    def _desired(self) -> Any:
        if self._sources.peering.desired is None:
            raise exception.StateError(
                'this node belongs to no domain: transport_url is not set'
            )
        return self._sources.peering.desired

    def _desired_status(self) -> dict[str, Any]:
        desired = self._sources.peering.desired
        return {} if desired is None else dict(desired.status())

    def _reply(self, **more: Any) -> dict[str, Any]:
        return {
            'host': self._sources.regime.configured.host,
            'from_round': self._sources.regime.next_round,
            **more,
        }

    def _epoch_reply(
        self, chosen: desired_module.DesiredChoice
    ) -> dict[str, Any]:
        return self._reply(
            **dataclasses.asdict(chosen),
            warning=plugins.warning(chosen.metric, chosen.policy),
        )

    def _set_paused(self, by: caller.Asker, *, paused: bool) -> dict[str, Any]:
        problem = self._sources.orders.pause(by, paused=paused)
        return self._reply(
            paused=paused, persistent=not problem, problem=problem
        )

    def _round_reply(
        self, done: round_model.Round | None, **more: Any
    ) -> dict[str, Any]:
        return {
            'host': self._sources.regime.configured.host,
            'round': None if done is None else done.number,
            **more,
        }


def _plugin_list(found: Mapping[str, str]) -> list[dict[str, str]]:
    return [
        {'name': name, 'description': text} for name, text in found.items()
    ]


def _check_plugins(metric: str | None, policy: str | None) -> None:
    """Refuse plugins that cannot be loaded here, before an epoch names them.

    :raises PluginError: with the names that are installed.
    """
    if metric is not None:
        plugins.load_metric(metric)
    if policy is not None:
        plugins.load_policy(policy)
