# SPDX-License-Identifier: Apache-2.0

"""Runs a scenario on a backend by the clock and records what happens."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import functools
import pathlib
import signal
import threading
import time
from typing import Any

from fairness_lab.figures import progress as progress_module
from fairness_lab.results import phases
from fairness_lab.results import recorder as recorder_module
from fairness_lab.results import recording
from fairness_lab.scenario import demand
from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed import backend as backend_module
from fairness_lab.testbed.guests import domain
from nova_fairness import version

SAMPLE_S = 1.0

_ABSENT = backend_module.VmState(None, None, None, 'absent')

READY = 'ready'
"""Event: a VM that was started late takes commands."""

_OF_AGENTS = frozenset(
    {scenario_module.Subject.AGENT, scenario_module.Subject.REDIS}
)
"""Subjects of events that are left out in a run without agents."""


Action = scenario_module.ScenarioAction
_Do = Callable[[backend_module.Backend, str], None]

_AT_ONCE: Mapping[Action, _Do] = {
    Action.DESTROY: lambda backend, vm: backend.destroy_vm(vm),
    Action.FREEZE: lambda backend, vm: backend.freeze_vm(vm),
    Action.THAW: lambda backend, vm: backend.thaw_vm(vm),
    Action.KILL_AGENT: lambda backend, node: backend.stop_agents(
        [node], kill=True
    ),
    Action.START_AGENT: lambda backend, node: backend.start_agents(
        [node], wait=False
    ),
    Action.RESTART_AGENT: lambda backend, node: backend.restart_agent(node),
    Action.FREEZE_AGENT: lambda backend, node: backend.hold_agents([node]),
    Action.THAW_AGENT: lambda backend, node: backend.release_agents([node]),
    Action.CUT: lambda backend, node: backend.cut(node),
    Action.HEAL: lambda backend, node: backend.heal(node),
    Action.FREEZE_REDIS: lambda backend, _: backend.redis().freeze(),
    Action.THAW_REDIS: lambda backend, _: backend.redis().thaw(),
    Action.KILL_REDIS: lambda backend, _: backend.redis().kill(),
    Action.START_REDIS: lambda backend, _: backend.redis().start(),
    Action.FLUSH_REDIS: lambda backend, _: backend.redis().flush(),
}
"""Functions of events that are over at once.

A start and a move are not: they take until the guest has booted.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class _TimedAction:
    """Something to do at a time."""

    at_s: float
    order: int
    do: Callable[[], None]


class Driver:
    """Runs one scenario once.

    :param scenario: what to run.
    :param backend: what runs it.
    :param out: directory of the recording.
    :param agents: whether agents run at all.
    :param progress: what says how it goes.
    """

    def __init__(
        self,
        scenario: scenario_module.Scenario,
        backend: backend_module.Backend,
        out: pathlib.Path,
        *,
        agents: bool,
        progress: progress_module.RunProgress,
    ) -> None:
        self._scenario = scenario
        self._backend = backend
        self._agents = agents
        self._progress = progress
        self._recorder = recorder_module.RunRecorder(out)
        self._start_s = 0.0
        self._last: dict[str, float] = {}
        self._steps: dict[str, list[demand.DemandStep]] = {}
        self._booting: set[str] = set()
        self._where = {vm.name: vm.node for vm in scenario.vms.values()}

    def run(self) -> None:
        """Run it to its end, and clean up however it ends.

        :raises LabError: if something does not work.
        """
        try:
            self._backend.open(self._progress.print_line)
            self._run_load()
        finally:
            self._progress.end()
            self._progress.print_line('cleaning up')
            with _undisturbed():
                self._backend.close()
                self._recorder.close()

    def _run_load(self) -> None:
        scenario = self._scenario
        if self._agents:
            self._progress.print_line(
                f'starting agents: {scenario.agents.metric}, '
                f'{scenario.agents.policy}, '
                f'every {scenario.interval_s:g} s'
            )
            early = [n for n in scenario.nodes if not scenario.joins_late(n)]
            self._backend.start_agents(early, wait=True)
        self._backend.sleep_until(self._backend.now() + scenario.settle_s)
        machine = self._backend.machine()
        self._start_s = self._backend.now()
        self._recorder.meta(self._meta(machine))
        self._progress.begin(scenario.duration_s)
        for act in sorted(
            self._timed_actions(), key=lambda item: (item.at_s, item.order)
        ):
            self._backend.sleep_until(self._start_s + act.at_s)
            act.do()
        if scenario.fio_s:
            self._progress.print_line(
                f'fio repeats it for {scenario.fio_s:g} s'
            )
            self._recorder.fio(self._backend.fio(scenario.fio_s))

    def _timed_actions(self) -> Iterator[_TimedAction]:
        scenario = self._scenario
        for event in scenario.events:
            yield _TimedAction(
                event.at_s, 0, functools.partial(self._apply_event, event)
            )
        for vm, steps in scenario.load.items():
            for step in steps:
                yield _TimedAction(
                    step.at_s, 1, functools.partial(self._load, vm, step)
                )
        if self._agents and scenario.pairs:
            yield from self._phase_actions()
        for number in range(int(scenario.duration_s / SAMPLE_S) + 1):
            yield _TimedAction(number * SAMPLE_S, 3, self._record_readings)
        if scenario.duration_s % SAMPLE_S:
            yield _TimedAction(scenario.duration_s, 3, self._record_readings)

    def _phase_actions(self) -> Iterator[_TimedAction]:
        """Make pairs of a window without and one with agents.

        They take turns as fast as they can, for the speed of a machine that
        others use, too, wanders; and the second half begins with agents, so
        that one that only gets slower or faster does so for both. The agents
        are held and not ended: what a program needs to start is not what it
        needs to run.
        """
        pairs = self._scenario.pairs
        length_s = self._scenario.duration_s / (2 * pairs)
        for number in range(2 * pairs):
            on = (number % 2 == 1) is (number < pairs)
            yield _TimedAction(
                number * length_s,
                2,
                functools.partial(self._switch_agents, on=on),
            )

    def _switch_agents(self, *, on: bool) -> None:
        if on:
            self._backend.release_agents(self._scenario.nodes)
            self._record_event(phases.AGENTS_STARTED, '')
        else:
            self._backend.hold_agents(self._scenario.nodes)
            self._record_event(phases.AGENTS_STOPPED, '')

    def _apply_event(self, event: scenario_module.ScenarioEvent) -> None:
        if event.action.concerns in _OF_AGENTS and not self._agents:
            return
        said = f'{event.action.value} {event.subject} {event.to}'
        self._progress.print_line(said.rstrip())
        self._record_event(event.action.value, event.subject)
        if event.action is scenario_module.ScenarioAction.START:
            self._start_vm(event.subject)
        elif event.action is scenario_module.ScenarioAction.MOVE:
            self._move_vm(event.subject, event.to)
        else:
            _AT_ONCE[event.action](self._backend, event.subject)

    def _start_vm(self, vm: str) -> None:
        self._booting.add(vm)
        # a guest that boots wants all that it can get
        self._record_offer(vm, demand.MAXIMUM)
        self._backend.start_vm(
            vm, functools.partial(self._load_after_boot, vm)
        )

    def _move_vm(self, vm: str, node: str) -> None:
        self._booting.add(vm)
        self._where[vm] = node
        self._record_offer(vm, demand.MAXIMUM)
        self._backend.move_vm(
            vm, node, functools.partial(self._load_after_boot, vm)
        )

    def _load_after_boot(self, vm: str) -> None:
        """VM that has booted the load that it should have by now."""
        self._booting.discard(vm)
        self._record_event(READY, vm)
        steps = self._steps.get(vm, [])
        if not any(step.cpu is not None for step in steps):
            self._record_offer(vm, 0.0)
        for step in steps:
            self._send_load(vm, step)

    def _load(self, vm: str, step: demand.DemandStep) -> None:
        self._steps.setdefault(vm, []).append(step)
        if vm not in self._booting:
            self._send_load(vm, step)

    def _send_load(self, vm: str, step: demand.DemandStep) -> None:
        if self._backend.state(vm) is None:
            return
        self._backend.load(vm, step)
        if step.cpu is not None:
            self._record_offer(vm, step.cpu)

    def _record_offer(self, vm: str, cpu: float) -> None:
        self._recorder.offer(recording.Offer(self._elapsed(), vm, cpu))

    def _record_event(self, event: str, subject: str) -> None:
        self._recorder.event(
            recording.EventRow(self._elapsed(), event, subject)
        )

    def _elapsed(self) -> float:
        return self._backend.now() - self._start_s

    def _record_readings(self) -> None:
        used: dict[str, float] = {}
        for vm in self._scenario.vms.values():
            state = self._backend.state(vm.name) or _ABSENT
            user = vm.user
            self._recorder.reading(
                recording.Reading(
                    self._elapsed(),
                    self._where[vm.name],
                    vm.name,
                    user,
                    **dataclasses.asdict(state),
                )
            )
            before = self._last.get(vm.name)
            if state.cpu_s is not None:
                self._last[vm.name] = state.cpu_s
                if before is not None and state.cpu_s >= before:
                    got = state.cpu_s - before
                    used[user] = used.get(user, 0.0) + got
        whole = sum(used.values()) or 1.0
        parts = {user: used.get(user, 0.0) / whole for user in sorted(used)}
        self._progress.tick(self._elapsed(), parts)

    def _meta(self, machine: dict[str, Any]) -> dict[str, Any]:
        scenario = self._scenario
        return {
            'name': scenario.name,
            'scenario': scenario.to_json(),
            'backend': self._backend.name,
            'options': {
                'agents': self._agents,
                'metric': scenario.agents.metric,
                'policy': scenario.agents.policy,
                'interval_s': scenario.interval_s,
                'duration_s': scenario.duration_s,
                'max_weight_ratio': scenario.agents.max_weight_ratio,
                'pairs': scenario.pairs,
            },
            'user_ids': {
                domain.owner_id(f'user {name}'): name
                for name in scenario.users
            },
            'monotonic_start_s': self._start_s,
            'wall_start': time.time(),
            'machine': machine,
            'version': version.release(),
        }


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let nothing but SIGKILL interrupt the cleaning up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, action in zip(numbers, before, strict=True):
            signal.signal(number, action)
