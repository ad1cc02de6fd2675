# SPDX-License-Identifier: Apache-2.0


"""Run a scenario with its agents, and write the results."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import numbers
import pathlib
from typing import Any
from typing import Protocol

from fairness_lab.ideal import ideal
from fairness_lab.measures import files
from fairness_lab.measures import measures
from fairness_lab.measures import series
from fairness_lab.measures import summary
from fairness_lab.node_sim import engine
from fairness_lab.node_sim import model
from fairness_lab.node_sim import references
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness import version
from nova_fairness.decide import policy as policy_base
from nova_fairness.model import defaults

VERSION = 1
"""Of ``result.json``: changes when a reader of the old would be misled."""

Json = dict[str, Any]


class ProgressMeter(Protocol):
    """Receives the progress of a run."""

    def begin(self, title: str, rounds: int) -> None:
        """Begin a run."""

    def tick(self, done: int) -> None:
        """Report the number of rounds that are done."""

    def end(self) -> None:
        """End the report of a run."""


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """Options of a run that the scenario does not have.

    :ivar metric: name; ``None`` for the scenario's.
    :ivar policy: name of a policy or reference; ``None`` for the scenario's.
    :ivar share: which share is compared with the ideal.
    :ivar parameters: attributes of the policy that are set to numbers.
    :ivar kind: of the tables, ``csv`` or ``parquet``.
    :ivar detail: whether there is a table of VMs.
    :ivar tables: whether there are tables at all.
    """

    metric: str | None = None
    policy: str | None = None
    share: str = ideal.DOMINANT
    parameters: Mapping[str, float] = dataclasses.field(default_factory=dict)
    kind: str = 'csv'
    detail: bool = False
    tables: bool = True


def setup(
    scenario: cloud_module.Experiment, choice: RunOptions
) -> model.Setup:
    """Create the settings of the agents of a scenario.

    :raises UnknownPlugin: if there is no such metric, policy or reference.
    :raises UnknownParameter: if the policy has no such parameter.
    """
    agents = scenario.agents
    metric = choice.metric or agents.metric
    policy = choice.policy or agents.policy
    nodes = scenario.cloud.nodes
    plain = model.Setup(
        metric=metric,
        policy=policy,
        metric_plugin=plugins.load_metric(metric),
        decay_factor=agents.decay_factor,
        max_weight_ratio=agents.max_weight_ratio or defaults.MAX_WEIGHT_RATIO,
        largest_step=agents.largest_step,
        weight_tolerance=agents.weight_tolerance,
        controls=agents.controls,
        ticks=agents.ticks,
        phase=cloud_module.phases(agents, len(nodes)),
        links=cloud_module.links(agents, nodes),
        view_max_age=agents.view_max_age,
    )
    if policy in references.WITHOUT_AGENTS:
        equal = policy == references.EQUAL_VMS
        return dataclasses.replace(plain, equal_vms=equal)
    if policy in references.ALLOCATORS:
        chosen = references.ALLOCATORS[policy]
        return dataclasses.replace(plain, allocator=chosen)
    plugin = _policy(policy)
    _set_parameters(plugin, policy, choice.parameters)
    return dataclasses.replace(plain, policy_plugin=plugin)


def _policy(name: str) -> policy_base.Policy:
    known = plugins.policy_names()
    if name not in known:
        raise exception.UnknownPlugin(
            f'there is no policy {name}: expected one of {", ".join(known)}'
            f', or a reference: {", ".join(references.names())}'
        )
    return plugins.load_policy(name)


def _set_parameters(
    plugin: policy_base.Policy, name: str, parameters: Mapping[str, float]
) -> None:
    """Set parameters of a policy; unknown ones are errors."""
    for parameter, value in parameters.items():
        if parameter not in _names_of_parameters(plugin):
            known = ', '.join(_names_of_parameters(plugin)) or 'none'
            raise exception.UnknownParameter(
                f'policy {name} has no parameter {parameter}: it has {known}'
            )
        setattr(plugin, parameter, value)


def _names_of_parameters(plugin: policy_base.Policy) -> list[str]:
    return sorted(
        attribute
        for attribute in dir(plugin)
        if not attribute.startswith('_')
        and isinstance(getattr(plugin, attribute), numbers.Real)
    )


def observe(
    cloud: cloud_module.Cloud,
    setup: model.Setup,
    observers: Iterable[model.Observer],
    meter: ProgressMeter | None = None,
) -> None:
    """Simulate, and give every round to the observers."""
    seeing = tuple(observers)
    if meter is not None:
        meter.begin(
            f'{cloud.name}, {setup.metric}, {setup.policy}', cloud.rounds
        )
    try:
        for moment in engine.simulate(cloud, setup):
            for observer in seeing:
                observer.see(moment)
            if meter is not None:
                meter.tick(moment.round + 1)
    finally:
        if meter is not None:
            meter.end()


def run(
    scenario: cloud_module.Experiment,
    choice: RunOptions,
    directory: pathlib.Path,
    meter: ProgressMeter | None = None,
) -> Json:
    """Run a scenario and write result and series into a directory.

    :param directory: that exists.
    :returns: what ``result.json`` holds.
    :raises UnknownPlugin: see :func:`setup`.
    :raises PluginMisbehaved: if the metric or policy fails.
    :raises UnknownShare: if there is no such share.
    """
    made = setup(scenario, choice)
    cloud = scenario.cloud
    judge = measures.Measures(cloud, made, choice.share)
    total = summary.Summary(cloud)
    observers: list[model.Observer] = [judge, total]
    if choice.tables:
        observers.append(
            series.SeriesWriter(
                cloud, directory, choice.kind, detail=choice.detail
            )
        )
    observe(cloud, made, observers, meter)
    for observer in observers[2:]:
        observer.result()
    judged = dict(judge.result())
    drawn = judged.pop('series', {})
    if choice.tables:
        _write_series(directory, drawn)
    result = {
        **_result_head(scenario, made, choice),
        **total.result(),
        'measures': judged,
    }
    files.write_json(directory / files.RESULT, result)
    return result


def _result_head(
    scenario: cloud_module.Experiment, made: model.Setup, choice: RunOptions
) -> Json:
    cloud, agents = scenario.cloud, scenario.agents
    links = agents.links
    return {
        'version': VERSION,
        'scenario': cloud.name,
        'description': cloud.description,
        'package_version': version.release(),
        'metric': made.metric,
        'policy': made.policy,
        'reference': made.policy in references.names(),
        'share': choice.share,
        'parameters': dict(sorted(choice.parameters.items())),
        'interval_s': cloud.interval_s,
        'rounds': cloud.rounds,
        'nodes': len(cloud.nodes),
        'users_count': len(cloud.users),
        'vms': len(cloud.vms),
        'seed': agents.seed,
        'agents': {
            'decay_factor': made.decay_factor,
            'max_weight_ratio': made.max_weight_ratio,
            'largest_step': made.largest_step,
            'weight_tolerance': made.weight_tolerance,
            'view_max_age': made.view_max_age,
            'controls': [control.value for control in made.controls],
            'ticks': made.ticks,
            'spread': agents.spread,
            'reports': None
            if links is None
            else {
                'delay': links.delay,
                'jitter': links.jitter,
                'loss': links.loss,
            },
        },
    }


def _write_series(
    directory: pathlib.Path, given: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write the tables of an observer."""
    for name, table in given.items():
        written = files.CsvTable(directory / name)
        columns = (
            zip(*table['rows'], strict=True)
            if table['rows']
            else ([] for _ in table['columns'])
        )
        written.add(
            {
                column: _column(values)
                for column, values in zip(
                    table['columns'], columns, strict=True
                )
            }
        )
        written.close()


def _column(values: Iterable[Any]) -> list[str]:
    return [
        '' if value is None or value != value else _text(value)
        for value in values
    ]


def _text(value: Any) -> str:
    return f'{value:.9g}' if isinstance(value, float) else str(value)
