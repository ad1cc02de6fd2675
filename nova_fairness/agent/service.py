# SPDX-License-Identifier: Apache-2.0

"""The agent as a service: starts, runs rounds on time, stops cleanly."""

from collections.abc import Callable
import dataclasses
import functools
import logging
import math
import os
import pathlib
import signal
import threading
import time

from oslo_config import cfg
from oslo_service import service

from nova_fairness import exception
from nova_fairness.agent import assembly
from nova_fairness.agent import settings as settings_module
from nova_fairness.agent.explain import history
from nova_fairness.agent.round import preview
from nova_fairness.agent.round import shadow
from nova_fairness.conf import file_faults
from nova_fairness.conf import opts
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import wording
from nova_fairness.observe import endpoint
from nova_fairness.observe import metrics
from nova_fairness.observe import notifications
from nova_fairness.observe import record
from nova_fairness.runtime import supervision

LOG = logging.getLogger(__name__)


class RoundTimer:
    """Computes when rounds begin; a late round never delays more than itself.

    :param interval_s: seconds from one round to the next, > 0.
    :param now_s: start of the first round, monotonic seconds.
    """

    def __init__(self, interval_s: float, now_s: float) -> None:
        self._interval_s = interval_s
        self.next_s = now_s

    def advance(self, now_s: float) -> int:
        """Set the time of the next round.

        :returns: number of rounds that are skipped because their time is past.
        """
        self.next_s += self._interval_s
        late_s = now_s - self.next_s
        if late_s <= 0:
            return 0
        missed = math.ceil(late_s / self._interval_s)
        self.next_s += missed * self._interval_s
        return missed


_LIBVIRT_WAIT_S = 10.0
"""Longest wait of the first round for libvirt, in seconds; other rounds do
not wait."""

_POLL_S = 0.1
"""Seconds between two checks whether that wait must end early."""

_SAVE_INTERVAL_S = 30.0
"""Smallest time between two saves of the policies' memory, in seconds."""

_STOP = (signal.SIGTERM, signal.SIGINT)


class FairnessService(service.ServiceBase):  # type: ignore[misc]  # untyped
    """Runs the node cycle on its own thread.

    :param conf: parsed, with the options of this package.
    :param parts: the agent's objects, created from the same configuration.
    """

    def __init__(
        self, conf: cfg.ConfigOpts, parts: assembly.AgentParts
    ) -> None:
        super().__init__()
        self._manager = supervision.ServiceManager()
        self._report_alive = self._manager.loop()
        self._conf = conf
        self._parts = parts
        self._stopping = threading.Event()
        self._stopped = threading.Event()
        self._reload = threading.Event()
        self._history = history.WeightHistory()
        self._previewer = preview.Previewer(parts.controls.scales)
        self._notifying = notifications.configured_notifications(conf)
        self._collector = metrics.RoundCollector(
            lambda: {
                **parts.peering.statistics(),
                'notifications': self._notifying.statistics(),
                'notices': parts.notices.statistics() if parts.notices else {},
            }
        )
        self._http_endpoint = _http_endpoint(conf, self._collector)
        self._recorder = _recorder(conf)
        self._shadow = shadow.ShadowMeasurement(self._complete)
        self._saved_s = 0.0
        self._had_round = self._is_ready = False
        self._signal_pipe: int | None = None
        self._thread = threading.Thread(
            target=self._run_rounds, name='rounds', daemon=True
        )

    def start(self) -> None:
        """Start the agent's parts and the rounds."""
        self._catch_signals()
        self._parts.cycle_parts.inventory.start()
        self._parts.cloud.start(self._parts.cycle_parts.inventory.look_again)
        self._parts.best_effort.start()
        if self._parts.notices is not None:
            self._parts.notices.start()
        self._parts.peering.start(
            self._parts.operations(
                lambda: self._collector.newest,
                self._history,
                self._previewer,
            )
        )
        self._notifying.start()
        if self._http_endpoint is not None:
            self._http_endpoint.start()
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end of the service; executes what signals request."""
        if self._signal_pipe is not None and not self._stopped.is_set():
            while (number := os.read(self._signal_pipe, 1)[0]) not in _STOP:
                if number == signal.SIGHUP:
                    self.reset()
            # oslo.service's handler of the alarm ends the process.
            signal.alarm(getattr(self._conf, 'graceful_shutdown_timeout', 0))
            self.stop()
        self._stopped.wait()

    def stop(self, graceful: bool = True) -> None:
        """Stop the rounds, restore the found values, and close everything."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._manager.stopping()
        if self._thread.ident is not None:
            self._thread.join()
        try:
            self._restore_and_close()
        finally:
            self._stopped.set()

    def reset(self) -> None:
        """Apply changes of the mutable options before the next round."""
        self._reload.set()

    def _catch_signals(self) -> None:
        # oslo.service ends a service that does not fork at SIGHUP, at SIGINT
        # without restoring anything, and at SIGTERM within the handler. That
        # may interrupt the main thread while it holds a lock, the log's for
        # one, for which the thread of the rounds waits that it would wait for.
        if threading.current_thread() is not threading.main_thread():
            return
        self._signal_pipe, tell = os.pipe()
        os.set_blocking(tell, False)
        # The interpreter writes each signal's number there at once. A handler
        # of ours would run on the main thread, and not before wait() reads on
        # if the signal comes while it is about to, or to another thread.
        signal.set_wakeup_fd(tell)
        for number in (*_STOP, signal.SIGHUP):
            signal.signal(number, lambda *_: None)

    def _run_rounds(self) -> None:
        # Not on the main thread: a signal's handler runs there, and would
        # wait for the helper in the middle of a call to it.
        self._parts.warm_up()
        self._wait_for_inventory()
        pace = RoundTimer(self._conf.fairness.interval, time.monotonic())
        missed = 0
        while not self._wait_until(pace.next_s):
            if self._reload.is_set():
                self._reload.clear()
                self._apply_new_configuration()
            self._run_round(missed)
            self._report_alive()
            if not self._had_round:
                # Also if the round failed: the log says why, and the next
                # one may not. systemd would kill an agent that is not ready.
                self._manager.ready()
            self._had_round = True
            missed = pace.advance(time.monotonic())

    def _wait_until(self, at_s: float) -> bool:
        """Wait for the next round; return whether the agent is stopping.

        :param at_s: start of the next round, monotonic seconds.
        """
        while (left_s := at_s - time.monotonic()) > supervision.PAUSE_S:
            if self._stopping.wait(supervision.PAUSE_S):
                return True
            self._report_alive()
        return self._stopping.wait(max(0.0, left_s))

    def _wait_for_inventory(self) -> None:
        inventory = self._parts.cycle_parts.inventory
        for _ in range(int(_LIBVIRT_WAIT_S / _POLL_S)):
            if self._stopping.is_set() or inventory.problem:
                return
            if inventory.wait_ready(_POLL_S):
                return

    def _run_round(self, missed: int) -> None:
        for item in self._parts.state_files:
            item.retry()
        try:
            self._parts.regime.begin_round(self._parts.node_cycle)
            done = self._parts.node_cycle.round(missed)
        except Exception:
            # The next round starts from a new snapshot after any error.
            LOG.exception('A round failed; all weights stay as they are')
            return
        _log_state_errors(self._save)
        problems = (item.problem for item in self._parts.state_files)
        done = dataclasses.replace(
            done,
            unsaved=tuple(text for text in problems if text),
            shadow=self._shadow.newest,
        )
        self._collector.add(done)
        if self._parts.notices is not None:
            self._parts.notices.set_vms(done.incarnations)
        self._add_to_histories(done)
        _log_round(done)
        self._manager.say(_status_line(done))
        if not self._is_ready:
            LOG.info(
                'Ready: VMs are %s',
                'steered' if done.enforced else 'measured and not steered',
            )
        self._is_ready = True
        settings = self._parts.regime.in_force.settings
        if not self._shadow.add(done, settings):
            self._record(done)

    def _complete(self, done: round_model.Round) -> None:
        """Show and record a round with the result of the shadow metric."""
        self._collector.complete(done)
        self._record(done)

    def _record(self, done: round_model.Round) -> None:
        if self._recorder is not None:
            _log_state_errors(functools.partial(self._recorder.add, done))

    def _add_to_histories(self, done: round_model.Round) -> None:
        """Add a round to the weight history, the previews and
        notifications.
        """
        try:
            self._history.add(done)
            self._previewer.add_round(done)
            settings = self._parts.regime.in_force.settings
            self._notifying.add(done, settings.max_ratios())
        except Exception:
            LOG.exception('Histories: a round could not be added')

    def _save(self, *, at_once: bool = False) -> None:
        now_s = time.monotonic()
        if at_once or now_s - self._saved_s >= _SAVE_INTERVAL_S:
            self._saved_s = now_s
            self._parts.memory.save(self._parts.cycle_parts.decision.memory)

    def _apply_new_configuration(self) -> None:
        """Read the configuration files again, and apply mutable options."""
        try:
            self._conf.mutate_config_files()
            settings = settings_module.from_conf(self._conf)
            self._parts.regime.configure(settings, self._parts.node_cycle)
            self._shadow.retry()
        except (exception.FairnessError, cfg.Error, ValueError) as error:
            LOG.error('Configuration: the new one was refused: %s', error)
            return
        files = file_faults.configuration_files(self._conf)
        for fault in file_faults.invalid_values(files, opts.list_opts()):
            LOG.error(
                'Configuration: %s; the value in force stays, and the next'
                ' start will fail: correct the file',
                fault,
            )
        now = self._parts.regime.in_force
        LOG.info(
            'Configuration applied: metric %s, policy %s, enforce %s%s',
            now.settings.metric,
            now.settings.policy,
            now.settings.enforce,
            f' (from epoch {now.epoch} of the domain)' if now.epoch else '',
        )

    def _restore_and_close(self) -> None:
        """Restore the found values, and stop all parts."""
        parts = self._parts
        try:
            restored = parts.node_cycle.restore()
            LOG.info(
                'Stopped; %s the values they were found with',
                wording.counted(
                    sum(item.written for item in restored),
                    'control has',
                    'controls have',
                ),
            )
            self._save(at_once=True)
            if parts.cycle_parts.idling is not None:
                parts.cycle_parts.idling.save()
        except exception.FairnessError as error:
            LOG.error('Error while stopping: %s', error)
        self._shadow.stop()
        parts.best_effort.stop()
        if parts.notices is not None:
            parts.notices.stop()
        parts.cloud.stop()
        parts.peering.stop()
        self._notifying.stop()
        if self._http_endpoint is not None:
            self._http_endpoint.stop()
        if self._recorder is not None:
            self._recorder.close()
        parts.cycle_parts.inventory.stop()
        parts.cycle_parts.counters.close()
        parts.cycle_parts.guard.stop()
        parts.controls.close()
        parts.pressure.close()
        parts.found.close()


def _http_endpoint(
    conf: cfg.ConfigOpts, collector: metrics.RoundCollector
) -> endpoint.HttpEndpoint | None:
    group = conf.fairness_observe
    return endpoint.open_endpoint(group, group.prometheus_port, collector)


def _recorder(conf: cfg.ConfigOpts) -> record.RoundRecorder | None:
    path = conf.fairness.record_path
    return record.RoundRecorder(pathlib.Path(path)) if path else None


def _log_state_errors(write: Callable[[], None]) -> None:
    """Write a file that a round does not need; log a failure."""
    try:
        write()
    except exception.StateError as error:
        LOG.error('%s', error)


def _status_line(done: round_model.Round) -> str:
    """Return the state of the agent for ``systemctl status``."""
    does = 'steers' if done.enforced else 'measures and does not steer'
    text = f'{does} {wording.counted(len(done.incarnations), "VM")}'
    if done.errors:
        errors = wording.counted(len(done.errors), 'error')
        text += f'; the newest round had {errors}'
    return text


def _log_round(done: round_model.Round) -> None:
    """Log the one line of a round."""
    users = (
        len(done.measured.ownership.users) if done.measured is not None else 0
    )
    contended = (
        [
            control.value
            for control, is_contended in zip(
                resources.CONTROLS,
                done.decided.contended,
                strict=True,
            )
            if is_contended
        ]
        if done.decided is not None
        else []
    )
    LOG.info(
        'Round %d: %s, %s, contended: %s; %d changed, %d drifted, '
        '%d failed, %d restored; %.1f ms%s%s',
        done.number,
        wording.counted(len(done.incarnations), 'VM'),
        wording.counted(users, 'user'),
        ', '.join(contended) or 'nothing',
        done.tally.changed,
        done.tally.drifted,
        done.tally.failed,
        done.tally.restored,
        done.duration_s * 1000,
        f'; {done.tally.missed} missed' if done.tally.missed else '',
        f'; errors: {"; ".join(done.errors)}' if done.errors else '',
    )
