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
    """Where answers come from.

    :ivar boot_id: of this run of the agent.
    :ivar newest_round: the last finished one, if any.
    :ivar clock: monotonic, seconds.
    :ivar history: of the weights of this node's VMs.
    :ivar previewer: says what other metrics would do.
    :ivar explainer: takes heaviness apart.
    :ivar wall_clock: since the epoch, seconds.
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
    """Operations of an agent, on any thread.

    :param sources: where answers come from.
    """

    def __init__(self, sources: Sources) -> None:
        self._of = sources

    def choose(
        self,
        metric: str | None,
        policy: str | None,
        by: caller.Asker = caller.UNKNOWN,
    ) -> endpoint.Answer:
        """Make a new epoch."""
        _check_plugins(metric, policy)
        configured = self._of.regime.configured
        made = self._desired.set(
            metric, policy, (configured.metric, configured.policy), by
        )
        return self._promise(made)

    def take_over(
        self,
        metric: str | None,
        policy: str | None,
        epoch: int,
        origin: str,
        signature: str = '',
        by: caller.Asker = caller.UNKNOWN,
    ) -> endpoint.Answer:
        """Take over an epoch that a controller or another node made."""
        _check_plugins(metric, policy)
        now = self._of.regime.in_force.settings
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
                f'epoch {epoch} of {origin} is not taken over: epoch '
                f'{counts.epoch} of {counts.origin} (metric {counts.metric}, '
                f'policy {counts.policy}) is in force already'
            )
        return self._promise(counts)

    def pause(self, by: caller.Asker = caller.UNKNOWN) -> endpoint.Answer:
        """Restore all controls with the next round."""
        return self._paused(by, paused=True)

    def resume(self, by: caller.Asker = caller.UNKNOWN) -> endpoint.Answer:
        """Steer again from the next round on."""
        return self._paused(by, paused=False)

    def reset(self) -> endpoint.Answer:
        """Start from neutral with the next round."""
        self._of.orders.ask_reset()
        return self._answer()

    def prefer(
        self, preferences: Mapping[str, float | None]
    ) -> endpoint.Answer:
        """Divide what owners have among their VMs from the next round on."""
        problem = self._of.preferences.state(preferences)
        return self._answer(
            preferences_count=len(self._of.preferences.stated()),
            persistent=not problem,
            problem=problem,
        )

    def status(self) -> endpoint.Answer:
        """Say how the agent is."""
        regime = self._of.regime
        in_force, settings = regime.in_force, regime.configured
        done = self._of.newest_round()
        return {
            'host': settings.host,
            'boot_id': self._of.boot_id,
            'version': version.release(),
            'metric': in_force.settings.metric,
            'policy': in_force.settings.policy,
            'epoch': in_force.epoch,
            'origin': in_force.chosen_by.caller,
            'refused': in_force.refused,
            'warning': in_force.warning,
            'desired': self._desired_status(),
            'paused': self._of.orders.paused,
            'enforce': settings.enforce,
            'interval_s': settings.interval_s,
            'next_round': regime.next_round,
            'round': None if done is None else status.round_summary(done),
            'peers': status.peers_status(
                self._of.peering.exchange.view(
                    self._of.clock(), in_force.settings.metric
                ),
                settings.host,
            ),
            'controls': {} if done is None else status.controls_status(done),
            'quarantined': dict(done.quarantined) if done is not None else {},
            'unsaved': [] if done is None else list(done.unsaved),
            **self._of.peering.statistics(),
        }

    def instances(self) -> endpoint.Answer:
        """Say how the VMs of this node are."""
        done = self._of.newest_round()
        return self._listed(done, instances=status.instances_status(done))

    def users(self) -> endpoint.Answer:
        """Say how the users of all known nodes are."""
        done = self._of.newest_round()
        return self._listed(
            done, users=status.users_status(done), entity=self._entity
        )

    def usage(self) -> endpoint.Answer:
        """Say which part of all known nodes each user uses."""
        done = self._of.newest_round()
        return self._listed(
            done, users=status.usage_of_users(done), entity=self._entity
        )

    def idle(self, at_least_s: float) -> endpoint.Answer:
        """Say which VMs of this node do next to nothing."""
        done = self._of.newest_round()
        return self._listed(done, idle=status.idle_seconds(done, at_least_s))

    def lacking(self) -> endpoint.Answer:
        """Say what the VMs of this node want of its CPUs, and get."""
        done = self._of.newest_round()
        return self._listed(
            done,
            entity=self._entity,
            cpus_count=None if done is None else len(done.node.cpus),
            instances=status.cpu_demand(done),
        )

    def projects(self) -> endpoint.Answer:
        """Say how the projects of this node, or of all, are."""
        done = self._of.newest_round()
        everywhere = self._entity == 'project'
        tell = status.users_status if everywhere else status.projects_status
        return self._listed(
            done,
            entity=self._entity,
            scope='domain' if everywhere else 'host',
            projects=tell(done),
        )

    def plugins(self) -> endpoint.Answer:
        """Say what is installed on this node."""
        return {
            'host': self._of.regime.configured.host,
            'metric': self._of.regime.in_force.settings.metric,
            'policy': self._of.regime.in_force.settings.policy,
            'metrics': _described(plugins.describe_metrics()),
            'policies': _described(plugins.describe_policies()),
        }

    def instance(self, uuid: str) -> endpoint.Answer:
        """Say why a VM gets what it gets."""
        done = self._of.newest_round()
        row = None if done is None else answer.row_of(done, uuid)
        if done is None or row is None:
            host = self._of.regime.configured.host
            raise exception.UnknownInstance(
                f'no VM {uuid} was on {host} in its newest round'
            )
        asked = answer.AskedVm(
            done,
            row,
            self._of.explainer.parts(done),
            self._of.history.of(uuid, self._of.wall_clock()),
            self._of.regime.in_force.settings,
            self._of.explainer.preset(done),
        )
        return self._listed(done, instance=answer.explain(asked))

    def preview(self, metric: str | None) -> endpoint.Answer:
        """Say what would become of the VMs of this node if it enforced."""
        _check_plugins(metric, None)
        done = self._of.newest_round()
        settings = self._of.regime.in_force.settings
        return self._listed(
            done,
            entity=self._entity,
            policy=settings.policy,
            enforced=None if done is None else done.enforced,
            not_foreseen=preview_module.not_foreseen(done),
            metrics=self._of.previewer.told(
                done,
                settings,
                self._of.preferences.stated(),
                plugins.metric_names() if metric is None else (metric,),
            ),
        )

    @property
    def _entity(self) -> str:
        return self._of.regime.in_force.settings.entity

    @property
    def _desired(self) -> Any:
        if self._of.peering.desired is None:
            raise exception.StateError(
                'this node belongs to no domain: transport_url is not set'
            )
        return self._of.peering.desired

    def _desired_status(self) -> dict[str, Any]:
        desired = self._of.peering.desired
        return {} if desired is None else dict(desired.status())

    def _answer(self, **more: Any) -> dict[str, Any]:
        return {
            'host': self._of.regime.configured.host,
            'from_round': self._of.regime.next_round,
            **more,
        }

    def _promise(self, chosen: desired_module.DesiredChoice) -> dict[str, Any]:
        return self._answer(
            **dataclasses.asdict(chosen),
            warning=plugins.warning(chosen.metric, chosen.policy),
        )

    def _paused(self, by: caller.Asker, *, paused: bool) -> dict[str, Any]:
        problem = self._of.orders.pause(by, paused=paused)
        return self._answer(
            paused=paused, persistent=not problem, problem=problem
        )

    def _listed(
        self, done: round_model.Round | None, **more: Any
    ) -> dict[str, Any]:
        return {
            'host': self._of.regime.configured.host,
            'round': None if done is None else done.number,
            **more,
        }


def _described(found: Mapping[str, str]) -> list[dict[str, str]]:
    return [
        {'name': name, 'description': text} for name, text in found.items()
    ]


def _check_plugins(metric: str | None, policy: str | None) -> None:
    """Refuse what cannot be loaded here, before anybody takes it over.

    :raises PluginError: with the names that are installed.
    """
    if metric is not None:
        plugins.load_metric(metric)
    if policy is not None:
        plugins.load_policy(policy)
