# SPDX-License-Identifier: Apache-2.0

"""The simulator's form of a scenario: rounds, and changes in them."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import math
import pathlib
import types

import numpy as np

from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import demand
from fairness_lab.scenario import generate
from fairness_lab.scenario import programs
from fairness_lab.scenario import reader
from fairness_lab.scenario import traces
from fairness_lab.scenario import values
from nova_fairness.model import resources

Action = values.ScenarioAction

_AS_WRITTEN: Mapping[str, str] = types.MappingProxyType({})
_CPU = resources.RESOURCES.index('cpu_time')
_MEMORY = resources.RESOURCES.index('memory')
_FLOWS = {'tcp_send_flows': 'net_sent', 'tcp_receive_flows': 'net_received'}
"""Connections, which are as fast as they can be."""

_SILENCING = {
    Action.KILL_AGENT: True,
    Action.FREEZE_AGENT: True,
    Action.START_AGENT: False,
    Action.THAW_AGENT: False,
}
_CUTTING = {Action.CUT: True, Action.HEAL: False}


def find(
    name: str, overrides: Mapping[str, str] = _AS_WRITTEN
) -> cloud_module.Experiment:
    """Read a scenario of the standard set, or one in a file.

    :param name: its name, or the path of a YAML file.
    :param overrides: see :func:`.reader.read`.
    :raises BadScenario: if there is none, or it is wrong.
    :raises BadTrace: if its trace is wrong.
    """
    return of_scenario(reader.find(name, programs.SIMULATOR, overrides))


def read(
    path: pathlib.Path, overrides: Mapping[str, str] = _AS_WRITTEN
) -> cloud_module.Experiment:
    """Read a scenario file.

    :raises BadScenario: with file, line and what was expected.
    :raises BadTrace: if its trace is wrong.
    """
    return of_scenario(reader.read(path, programs.SIMULATOR, overrides))


def of_scenario(scenario: values.Scenario) -> cloud_module.Experiment:
    """Turn a scenario into arrays.

    :raises BadTrace: if its trace is wrong.
    """
    return cloud_module.Experiment(_cloud(scenario), scenario.agents)


def _cloud(scenario: values.Scenario) -> cloud_module.Cloud:
    rounds = round(scenario.duration_s / scenario.interval_s)
    if scenario.drawn is not None:
        return generate.generate(
            scenario.drawn,
            scenario.name,
            scenario.description,
            scenario.interval_s,
            rounds,
        )
    story = cloud_module.ScenarioDraft(
        scenario.name,
        scenario.description,
        scenario.interval_s,
        rounds,
        tuple(scenario.nodes.values()),
        {user.name: user.weight for user in scenario.users.values()},
        tuple(
            _with_loop_of_first_load(vm, scenario)
            for vm in scenario.vms.values()
        ),
        tuple(_changes(scenario, rounds)),
        silent=_rounds_in_state(scenario, rounds, _SILENCING),
        cut=_rounds_in_state(scenario, rounds, _CUTTING),
    )
    if scenario.trace is not None:
        story = traces.add(story, scenario.trace)
    return story.cloud()


def _with_loop_of_first_load(
    vm: values.Vm, scenario: values.Scenario
) -> values.Vm:
    """Set the loop of a VM to that of its first load, if it has one."""
    for step in scenario.load.get(vm.name, ()):
        if step.cycle is not None:
            # Jobs of cron are done late, as open loops are.
            load = step.cycle.load
            cron = load is demand.CpuLoad.CRON
            return dataclasses.replace(
                vm,
                loop=demand.CpuLoad.OPEN if cron else load,
                threads=step.cycle.threads,
            )
    return vm


@dataclasses.dataclass(frozen=True, eq=False)
class _DemandFrom:
    """Wants of a VM from a moment on.

    :ivar at_s: seconds since the begin.
    :ivar demand: (r,) as in :class:`.cloud.Changes`; NaN leaves a thing as it
        was.
    """

    at_s: float
    demand: resources.Vector


def _demands_over_time(
    steps: tuple[demand.DemandStep, ...], scenario: values.Scenario
) -> Iterator[_DemandFrom]:
    ends_s = [step.at_s for step in steps[1:]] + [scenario.duration_s]
    for step, end_s in zip(steps, ends_s, strict=True):
        yield from _repeated_demands(step, end_s, scenario.interval_s)


def _repeated_demands(
    step: demand.DemandStep, end_s: float, interval_s: float
) -> Iterator[_DemandFrom]:
    """Wants of a step, up to the next one."""
    wanted, every_s, for_s = _demand_of_step(step), step.every_s, step.for_s
    if step.cycle is not None and step.cycle.load is demand.CpuLoad.CRON:
        period_s = step.cycle.wait_s
        every_s, for_s = _cron_job_times_s(
            wanted[_CPU] * period_s, period_s, interval_s
        )
        if every_s:
            wanted[_CPU] = wanted[_CPU] * period_s / for_s
    yield _DemandFrom(step.at_s, wanted)
    if not every_s:
        return
    rest = np.full(len(wanted), np.nan)
    rest[_CPU] = 0.0
    for number in range(math.ceil((end_s - step.at_s) / every_s)):
        at_s = step.at_s + number * every_s
        if number:
            yield _DemandFrom(at_s, wanted)
        if at_s + for_s < end_s:
            yield _DemandFrom(at_s + for_s, rest)


def _cron_job_times_s(
    work_s: float, period_s: float, interval_s: float
) -> tuple[float, float]:
    """Length and period of a cron job, in seconds of whole rounds.

    :param work_s: CPU seconds that come in each period.
    :returns: seconds from job to job and for which one comes; zeros if it
        comes all the time, or never.
    """
    length_s = max(1, math.ceil(work_s / interval_s - 1e-9)) * interval_s
    if not work_s > 0 or length_s >= period_s:
        return 0.0, 0.0
    return period_s, length_s


def _demand_of_step(step: demand.DemandStep) -> resources.Vector:
    wanted = np.full(len(resources.RESOURCES), np.nan)
    for key, (name, unit) in traces.LOAD.items():
        amount = getattr(step, key)
        if amount is not None:
            wanted[resources.RESOURCES.index(name)] = amount * unit
    for key, name in _FLOWS.items():
        flows, place = getattr(step, key), resources.RESOURCES.index(name)
        if flows is not None and np.isnan(wanted[place]):
            wanted[place] = math.inf if flows else 0.0
    wanted[_MEMORY] += cloud_module.IDLE_MEMORY_MIB * values.MIB
    return wanted


def _idle_demand() -> resources.Vector:
    return resources.RESOURCES.vector(
        memory=cloud_module.IDLE_MEMORY_MIB * values.MIB
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _VmState:
    """A VM at a moment.

    :ivar node: where it is, or would be.
    :ivar present: whether it exists.
    :ivar frozen: whether it stands still.
    :ivar demand: (r,) what it wants when it does not.
    """

    node: str
    present: bool = True
    frozen: bool = False
    demand: resources.Vector = dataclasses.field(default_factory=_idle_demand)

    def after(self, what: _DemandFrom | values.ScenarioEvent) -> '_VmState':
        """State after a new demand or an event."""
        if isinstance(what, _DemandFrom):
            new = np.where(np.isnan(what.demand), self.demand, what.demand)
            return dataclasses.replace(self, demand=new)
        match what.action:
            case Action.START:
                return dataclasses.replace(self, present=True)
            case Action.DESTROY:
                return dataclasses.replace(self, present=False)
            case Action.MOVE:
                return dataclasses.replace(self, node=what.to)
            case action:
                frozen = action is Action.FREEZE
                return dataclasses.replace(self, frozen=frozen)

    def change(self, when: int, name: str) -> cloud_module.VmChange:
        """The change that the simulator gets."""
        time_shared = resources.RESOURCES.time_shared
        running = np.where(time_shared & self.frozen, 0.0, self.demand)
        return cloud_module.VmChange(
            when, name, self.node if self.present else '', running
        )


def _changes(
    scenario: values.Scenario, rounds: int
) -> Iterator[cloud_module.VmChange]:
    """Yield the changes of each VM from load and events together."""
    wishes = {
        steps: tuple(_demands_over_time(steps, scenario))
        for steps in set(scenario.load.values())
    }
    for name, vm in scenario.vms.items():
        state = _VmState(vm.node, present=not scenario.starts_late(name))
        yield state.change(0, name)
        # At the same moment, events are later than load.
        happening: list[_DemandFrom | values.ScenarioEvent] = [
            *wishes.get(scenario.load.get(name, ()), ()),
            *(
                event
                for event in scenario.events
                if event.subject == name
                and event.action.concerns is values.Subject.VM
            ),
        ]
        for what in sorted(happening, key=lambda item: item.at_s):
            state = state.after(what)
            when = _round_of(what.at_s, scenario)
            if when < rounds:
                yield state.change(when, name)


def _round_of(at_s: float, scenario: values.Scenario) -> int:
    return math.ceil(at_s / scenario.interval_s - 1e-9)


def _rounds_in_state(
    scenario: values.Scenario, rounds: int, meaning: Mapping[Action, bool]
) -> resources.Mask | None:
    """Rounds of a state by node: (rounds, m), ``None`` if never."""
    mine = [event for event in scenario.events if event.action in meaning]
    if not mine:
        return None
    nodes = tuple(scenario.nodes)
    result = np.zeros((rounds, len(nodes)), dtype=np.bool_)
    seen: set[str] = set()
    for event in mine:
        place = nodes.index(event.subject)
        when = _round_of(event.at_s, scenario)
        # Who is started first was not there before.
        if event.action is Action.START_AGENT and event.subject not in seen:
            result[:when, place] = True
        result[when:, place] = meaning[event.action]
        seen.add(event.subject)
    return result
