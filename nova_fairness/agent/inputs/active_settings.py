# SPDX-License-Identifier: Apache-2.0

"""The settings in force: configuration, the domain's choice, operator
orders.
"""

from collections.abc import Callable
import dataclasses
import json
import logging
import pathlib
import threading

from nova_fairness import exception
from nova_fairness.agent import settings as settings_module
from nova_fairness.agent.round import cycle
from nova_fairness.exchange import desired as desired_module
from nova_fairness.model import caller
from nova_fairness.model import pairing
from nova_fairness.runtime import state_file

LOG = logging.getLogger(__name__)

_PAUSE_VERSION = 1


class SettingOrders:
    """Stores the operator's orders until the next round reads them.

    A pause also survives restarts of the agent.

    :param path: of the file that stores whether enforcement is paused.
    :ivar state_file: that file.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self.state_file = state_file.StateFile(path)
        self._lock = threading.Lock()
        self._reset = False
        self._paused = self._load()
        self._paused_by = caller.UNKNOWN

    @property
    def paused(self) -> bool:
        """Whether the agent must not change the kernel's settings."""
        return self._paused

    @property
    def paused_by(self) -> caller.Asker:
        """The sender of the last pause or resume in this run of the agent."""
        return self._paused_by

    def pause(self, by: caller.Asker = caller.UNKNOWN, *, paused: bool) -> str:
        """Begin or end the pause, from the next round on.

        :returns: why the change will not survive a restart; empty if it will.
        """
        with self._lock:
            self._paused, self._paused_by = paused, by
            return self.state_file.write(
                json.dumps({'version': _PAUSE_VERSION, 'paused': paused})
            )

    def request_reset(self) -> None:
        """Request that the next round starts from neutral weights."""
        with self._lock:
            self._reset = True

    def pop_reset_request(self) -> bool:
        """Return whether a reset was requested, and clear the request."""
        with self._lock:
            asked, self._reset = self._reset, False
        return asked

    def _load(self) -> bool:
        try:
            content = json.loads(self.state_file.path.read_text('utf-8'))
            if content['version'] == _PAUSE_VERSION:
                return content['paused'] is True
            problem = f'its version is {content["version"]}'
        except FileNotFoundError:
            return False
        except (OSError, ValueError, LookupError, TypeError) as error:
            problem = str(error)
        # The file exists only after a pause: steering against an
        # operator's will is worse than not steering.
        LOG.error(
            '%s: the file cannot be read: %s; this node is paused until it is '
            'told to resume',
            self.state_file.path,
            problem,
        )
        return True


Newest = Callable[[], desired_module.DesiredChoice | None]
"""Returns the desired state of the domain; never blocks."""

Load = Callable[[settings_module.Settings], cycle.Plugins]
"""Loads the plugins that settings name; raises PluginError."""


@dataclasses.dataclass(frozen=True)
class SettingsInForce:
    """The settings that rounds run with.

    :ivar settings: with the metric and policy in force.
    :ivar epoch: of the desired state; 0 if the configuration applies.
    :ivar chosen_by: who created that epoch.
    :ivar refused: why a newer desired state is not in force; empty if the
        newest is.
    :ivar warning: that users may be worse off than without an agent; empty if
        there is no such sign.
    """

    settings: settings_module.Settings
    epoch: int = 0
    chosen_by: caller.Asker = caller.UNKNOWN
    refused: str = ''
    warning: str = ''


class Regime:
    """Updates the settings of a cycle before each round.

    The newest epoch of the domain has precedence over the configuration. A
    metric or policy that cannot be loaded here is refused; the node keeps the
    settings in force.

    :param settings: the configured settings.
    :param orders: operators' orders for this node.
    :param newest: returns the desired state of the domain.
    :param load: loads plugins.
    :raises PluginError: if the configured plugins cannot be loaded.
    """

    def __init__(
        self,
        settings: settings_module.Settings,
        orders: SettingOrders,
        newest: Newest,
        load: Load,
    ) -> None:
        self._configured = settings
        self._orders = orders
        self._newest = newest
        self._load = load
        self._seen: desired_module.DesiredChoice | None = None
        self._in_force = SettingsInForce(settings)
        warning = self._warning(settings, load(settings))
        self._in_force = SettingsInForce(settings, warning=warning)
        self._lock = threading.Lock()
        self._begun = 0

    @property
    def configured(self) -> settings_module.Settings:
        """The configured settings."""
        return self._configured

    @property
    def in_force(self) -> SettingsInForce:
        """The settings of the newest round."""
        return self._in_force

    @property
    def next_round(self) -> int:
        """The number of the round that will read an order sent now."""
        with self._lock:
            return self._begun + 1

    def configure(
        self, settings: settings_module.Settings, node_cycle: cycle.Cycle
    ) -> None:
        """Apply a new configuration.

        :raises PluginError: if its metric or policy cannot be loaded; then
            nothing changes.
        """
        self._load(settings)
        self._configured = settings
        self._activate(self._seen, node_cycle)

    def begin_round(self, node_cycle: cycle.Cycle) -> None:
        """Apply all orders since the last round."""
        with self._lock:
            self._begun += 1
        try:
            self._apply_orders(node_cycle)
        except exception.FairnessError as error:
            LOG.error('%s', error)

    def _apply_orders(self, node_cycle: cycle.Cycle) -> None:
        node_cycle.paused = self._orders.paused
        node_cycle.paused_by = self._orders.paused_by
        newest = self._newest()
        if newest != self._seen:
            self._seen = newest
            self._activate(newest, node_cycle)
        if self._orders.pop_reset_request():
            LOG.info(
                'All weights are set to neutral, as an operator requested'
            )
            node_cycle.reset()

    def _activate(
        self,
        newest: desired_module.DesiredChoice | None,
        node_cycle: cycle.Cycle,
    ) -> None:
        wanted, refused = self._desired_settings(newest), ''
        try:
            loaded = self._load(wanted.settings)
        except exception.PluginError as error:
            refused = str(error)
            wanted = self._current_choice()
            loaded = self._load(wanted.settings)
            LOG.error(
                'Setting refused: %s; this node continues with metric %s and '
                'policy %s',
                refused,
                wanted.settings.metric,
                wanted.settings.policy,
            )
        if wanted.epoch != self._in_force.epoch:
            LOG.info(
                'From round %d on: metric %s, policy %s (epoch %d of %s)',
                self._begun,
                wanted.settings.metric,
                wanted.settings.policy,
                wanted.epoch,
                wanted.chosen_by.caller,
            )
        self._in_force = dataclasses.replace(
            wanted,
            refused=refused,
            warning=self._warning(wanted.settings, loaded),
        )
        node_cycle.epoch = wanted.epoch
        node_cycle.chosen_by = wanted.chosen_by
        node_cycle.reconfigure(wanted.settings, loaded)

    def _warning(
        self, settings: settings_module.Settings, loaded: cycle.Plugins
    ) -> str:
        """Return the warning about a metric and policy; log a new one."""
        warning = pairing.pairing_warning(
            settings.metric,
            loaded.metric.suits,
            settings.policy,
            loaded.policy.kind,
        )
        if warning and warning != self._in_force.warning:
            LOG.warning('%s', warning)
        return warning

    def _desired_settings(
        self, newest: desired_module.DesiredChoice | None
    ) -> SettingsInForce:
        if newest is None:
            return SettingsInForce(self._configured)
        settings = dataclasses.replace(
            self._configured, metric=newest.metric, policy=newest.policy
        )
        by = caller.Asker(newest.origin, newest.user_id, newest.request_id)
        return SettingsInForce(settings, newest.epoch, by)

    def _current_choice(self) -> SettingsInForce:
        """Return the metric and policy in force with all other settings as
        configured.
        """
        if not self._in_force.epoch:
            return SettingsInForce(self._configured)
        before = self._in_force.settings
        return dataclasses.replace(
            self._in_force,
            settings=dataclasses.replace(
                self._configured, metric=before.metric, policy=before.policy
            ),
        )
