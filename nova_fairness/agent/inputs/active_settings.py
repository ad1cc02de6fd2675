# SPDX-License-Identifier: Apache-2.0

"""Settings in force: the configuration, the choice of the domain, orders."""

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
    """Keeps orders until a round takes them; a pause also over restarts.

    :param path: of the file that says whether enforcement is paused.
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
        """Whether the kernel shall be left alone."""
        return self._paused

    @property
    def paused_by(self) -> caller.Asker:
        """The sender of the last pause or resume in this run of the agent."""
        return self._paused_by

    def pause(self, by: caller.Asker = caller.UNKNOWN, *, paused: bool) -> str:
        """Begin or end the pause; it counts from the next round on.

        :returns: why it will not outlive this agent; empty if it will.
        """
        with self._lock:
            self._paused, self._paused_by = paused, by
            return self.state_file.write(
                json.dumps({'version': _PAUSE_VERSION, 'paused': paused})
            )

    def ask_reset(self) -> None:
        """Let the next round begin from neutral weights."""
        with self._lock:
            self._reset = True

    def take_reset(self) -> bool:
        """Tell whether to start from neutral; true once for each order."""
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
        # Whoever wrote it wanted a pause once: steering against an
        # operator's will is worse than not steering.
        LOG.error(
            '%s cannot be understood (%s): this node is paused until it is '
            'told to resume',
            self.state_file.path,
            problem,
        )
        return True


Newest = Callable[[], desired_module.DesiredChoice | None]
"""Gives what the domain shall use; never blocks."""

Load = Callable[[settings_module.Settings], cycle.Plugins]
"""Loads what settings name; raises PluginError."""


@dataclasses.dataclass(frozen=True)
class InForce:
    """Settings that rounds run with.

    :ivar settings: with the metric and policy in force.
    :ivar epoch: of the desired state; 0 if the configuration counts.
    :ivar chosen_by: who made that epoch.
    :ivar refused: why a newer desired state is not in force; empty if the
        newest is.
    :ivar warning: that users may be worse off than without an agent; empty if
        that is not known.
    """

    settings: settings_module.Settings
    epoch: int = 0
    chosen_by: caller.Asker = caller.UNKNOWN
    refused: str = ''
    warning: str = ''


class Regime:
    """Brings a cycle up to date before each round.

    The newest epoch of the domain wins over the configuration. A metric or
    policy that cannot be loaded here is refused: the node keeps what it has.

    :param settings: what is configured.
    :param orders: what operators want of this node.
    :param newest: what the domain shall use.
    :param load: of plugins.
    :raises PluginError: if those that are configured cannot be loaded.
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
        self._in_force = InForce(settings)
        warning = self._warning(settings, load(settings))
        self._in_force = InForce(settings, warning=warning)
        self._lock = threading.Lock()
        self._begun = 0

    @property
    def configured(self) -> settings_module.Settings:
        """The settings of the configuration."""
        return self._configured

    @property
    def in_force(self) -> InForce:
        """The settings of the newest round."""
        return self._in_force

    @property
    def next_round(self) -> int:
        """Number of the round that will see what is ordered now."""
        with self._lock:
            return self._begun + 1

    def configure(
        self, settings: settings_module.Settings, node_cycle: cycle.Cycle
    ) -> None:
        """Take over a new configuration.

        :raises PluginError: if its metric or policy cannot be loaded; all
            stays as it was.
        """
        self._load(settings)
        self._configured = settings
        self._take_over(self._seen, node_cycle)

    def begin(self, node_cycle: cycle.Cycle) -> None:
        """Take over everything that was ordered since the last round."""
        with self._lock:
            self._begun += 1
        try:
            self._take_orders(node_cycle)
        except exception.FairnessError as error:
            LOG.error('%s', error)

    def _take_orders(self, node_cycle: cycle.Cycle) -> None:
        node_cycle.paused = self._orders.paused
        node_cycle.paused_by = self._orders.paused_by
        newest = self._newest()
        if newest != self._seen:
            self._seen = newest
            self._take_over(newest, node_cycle)
        if self._orders.take_reset():
            LOG.info(
                'All weights are set back to neutral, as an operator asked'
            )
            node_cycle.reset()

    def _take_over(
        self,
        newest: desired_module.DesiredChoice | None,
        node_cycle: cycle.Cycle,
    ) -> None:
        wanted, refused = self._wanted(newest), ''
        try:
            loaded = self._load(wanted.settings)
        except exception.PluginError as error:
            refused = str(error)
            wanted = self._kept()
            loaded = self._load(wanted.settings)
            LOG.error(
                'Not taken over: %s. This node goes on with metric %s and '
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
        """Warning about a pair; one that was not said before is logged."""
        warning = pairing.warning(
            settings.metric,
            loaded.metric.suits,
            settings.policy,
            loaded.policy.kind,
        )
        if warning and warning != self._in_force.warning:
            LOG.warning('%s', warning)
        return warning

    def _wanted(self, newest: desired_module.DesiredChoice | None) -> InForce:
        if newest is None:
            return InForce(self._configured)
        settings = dataclasses.replace(
            self._configured, metric=newest.metric, policy=newest.policy
        )
        by = caller.Asker(newest.origin, newest.user_id, newest.request_id)
        return InForce(settings, newest.epoch, by)

    def _kept(self) -> InForce:
        """Settings in force, with all else that is configured now."""
        if not self._in_force.epoch:
            return InForce(self._configured)
        before = self._in_force.settings
        return dataclasses.replace(
            self._in_force,
            settings=dataclasses.replace(
                self._configured, metric=before.metric, policy=before.policy
            ),
        )
