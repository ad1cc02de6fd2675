# SPDX-License-Identifier: Apache-2.0

"""Takes the heaviness of a round apart when somebody asks for it."""

from collections.abc import Callable
import logging
import math
import threading
import time

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.agent.explain import parts as breakdown
from nova_fairness.decide import policy as policy_base
from nova_fairness.measure import metric as metric_base
from nova_fairness.model import round as round_model
from nova_fairness.runtime import guard as guard_module

LOG = logging.getLogger(__name__)

AGAIN_S = 60.0
"""Seconds after which a metric that failed is tried again: one that does for
the rounds was only unlucky, on a busy machine for instance."""

Load = Callable[[str], metric_base.Metric]
LoadPolicy = Callable[[str], policy_base.Policy]


class Explainer:
    """Runs the metric beside the rounds, once for each that is asked about.

    Rounds never wait for it, and a metric that fails here is not taken from
    them: its parts are unknown for a while.

    :param load: of a metric by its name; raises PluginError.
    :param load_policy: likewise.
    :param clock: monotonic, seconds.
    :param deadline_s: seconds that the metric may take, > 0.
    """

    def __init__(
        self,
        load: Load = plugins.load_metric,
        deadline_s: float = 1.0,
        load_policy: LoadPolicy = plugins.load_policy,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._failed_s = -math.inf
        self._load = load
        self._load_policy = load_policy
        self._presets: dict[str, policy_base.Preset] = {}
        self._deadline_s = deadline_s
        self._lock = threading.Lock()
        self._guard = guard_module.Guard(deadline_s)
        self._set: tuple[str, int] | None = None
        self._metric: metric_base.Metric | None = None
        self._round: round_model.Round | None = None
        self._parts: breakdown.Parts | None = None

    def parts(self, done: round_model.Round) -> breakdown.Parts | None:
        """Say what each resource has in the heaviness of each VM.

        :returns: ``None`` if that is not known.
        """
        with self._lock:
            if done is not self._round:
                self._parts = self._computed(done)
                self._round = done
            return self._parts

    def preset(self, done: round_model.Round) -> policy_base.Preset:
        """Say what the weights of a round are."""
        with self._lock:
            if done.policy not in self._presets:
                try:
                    found = self._load_policy(done.policy).preset
                except exception.PluginError:
                    return policy_base.Preset.DEFAULT
                self._presets[done.policy] = found
            return self._presets[done.policy]

    def stop(self) -> None:
        """End the thread; may be called twice."""
        self._guard.stop()

    def _computed(self, done: round_model.Round) -> breakdown.Parts | None:
        measured = done.measured
        if measured is None or done.metric in done.quarantined:
            return None
        if self._clock() - self._failed_s < AGAIN_S and self._is_same(done):
            return None
        name = f'the explanation of {done.metric}'
        try:
            metric = self._metric_of(done)
            self._guard.release(name)
            return self._guard.call(
                name, lambda: breakdown.parts(metric, measured)
            )
        except exception.PluginError as error:
            LOG.debug('The parts of a heaviness are not known: %s', error)
            self._failed_s = self._clock()
            return None

    def _is_same(self, done: round_model.Round) -> bool:
        return self._set == (done.metric, done.epoch)

    def _metric_of(self, done: round_model.Round) -> metric_base.Metric:
        if self._metric is None or not self._is_same(done):
            self._guard.stop()
            self._guard = guard_module.Guard(self._deadline_s)
            self._metric = None
            self._set = (done.metric, done.epoch)
            self._metric = self._load(done.metric)
        return self._metric
