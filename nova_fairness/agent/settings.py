# SPDX-License-Identifier: Apache-2.0

"""The configuration as frozen values, so that no logic reads options."""

from collections.abc import Mapping
import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
from oslo_config import cfg

from nova_fairness import exception
from nova_fairness.conf import fairness as options
from nova_fairness.exchange import limits
from nova_fairness.model import cpus as cpus_module
from nova_fairness.model import instance
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

ByControl = Mapping[resources.ResourceControl, float]

TOLERANCE = 0.01
"""Smallest relative change that is written; smaller changes have no effect."""

TOLERANCES: ByControl = {resources.ResourceControl.MEMORY: 0.05}
"""Smallest relative changes of single controls. The memory of a VM varies all
the time."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a round; units are those of the options.

    :ivar overcommit: (r,) factors on the supply, > 0.
    :ivar controls: controls to steer where the node has them.
    :ivar pin_vcpus: whether vCPUs are pinned to cores.
    :ivar safety_net: whether weights that do harm return to neutral.
    :ivar exempt: IDs of users, projects and servers that are not steered.
    :ivar max_weight_ratios: exceptions for single controls.
    :ivar largest_steps: exceptions for single controls.
    :ivar shadow_metric: metric that is computed and not used; empty: none.
    """

    host: str
    metric: str
    policy: str
    interval_s: float
    enforce: bool
    entity: str
    decay_factor: float
    max_weight_ratio: float
    largest_step: float
    metric_deadline_s: float
    exempt: frozenset[str]
    quota_weights: Mapping[str, float]
    overcommit: resources.Vector
    controls: frozenset[resources.ResourceControl] = frozenset(
        resources.CONTROLS
    )
    pin_vcpus: bool = False
    safety_net: bool = True
    max_weight_ratios: ByControl = dataclasses.field(default_factory=dict)
    largest_steps: ByControl = dataclasses.field(default_factory=dict)
    shadow_metric: str = ''

    def is_exempt(self, vm: instance.Instance) -> bool:
        """Check whether an operator exempted a VM."""
        return not self.exempt.isdisjoint((vm.uuid, vm.user_id, vm.project_id))

    def max_ratios(self) -> usage_model.Scalars:
        """Return the largest weight ratio of each control, (c,)."""
        return _values_by_control(
            self.max_weight_ratio, self.max_weight_ratios
        )

    def max_steps(self) -> usage_model.Scalars:
        """Return the largest step of each control, (c,)."""
        return _values_by_control(self.largest_step, self.largest_steps)

    def tolerance(self, control: resources.ResourceControl) -> float:
        """Return the smallest relative change of a control that is written."""
        return TOLERANCES.get(control, TOLERANCE)


def _values_by_control(
    default: float, exceptions: ByControl
) -> usage_model.Scalars:
    return np.array(
        [exceptions.get(control, default) for control in resources.CONTROLS]
    )


def _overcommit(group: Any) -> resources.Vector:
    of_all, factors = _option_by_control(group, 'overcommit')
    return resources.RESOURCES.vector(
        **{
            item.name: factors.get(item.control, of_all)
            if item.control
            else of_all
            for item in resources.RESOURCES
        }
    )


def from_conf(conf: cfg.ConfigOpts) -> Settings:
    """Return the settings of the rounds."""
    group = conf.fairness
    ratio, ratios = _option_by_control(group, 'max_weight_ratio')

    step, steps = _option_by_control(group, 'largest_step')
    return Settings(
        host=group.host,
        metric=group.metric,
        policy=group.policy,
        interval_s=group.interval,
        enforce=group.enforce,
        entity=group.entity,
        decay_factor=group.decay_factor,
        max_weight_ratio=ratio,
        largest_step=step,
        metric_deadline_s=group.metric_deadline,
        exempt=frozenset(group.exempt),
        quota_weights=dict(group.quota_weights),
        overcommit=_overcommit(conf.fairness_node),
        controls=frozenset(map(resources.ResourceControl, group.controls)),
        pin_vcpus=group.pin_vcpus,
        safety_net=group.safety_net,
        max_weight_ratios=ratios,
        largest_steps=steps,
        shadow_metric=group.shadow_metric.strip(),
    )


def _option_by_control(group: Any, name: str) -> tuple[float, ByControl]:
    """Return an option's default, and its values for single controls."""
    said = options.by_control(name, group[name])
    of_all = said.pop(None)
    return of_all, {
        resources.ResourceControl(control): number
        for control, number in said.items()
    }


def parse_cpus(text: str) -> tuple[int, ...] | None:
    """Parse ``[fairness_node] cpus``.

    :returns: CPU numbers; ``None`` if the option is empty.
    :raises ConfigurationError: if it is no list of CPUs.
    """
    if not text.strip():
        return None
    try:
        return cpus_module.parse_cpus(text)
    except ValueError as error:
        raise exception.ConfigurationError(
            f'[fairness_node] cpus = {text!r}: expected CPU numbers and '
            f'ranges such as 0-3,6'
        ) from error


def read_owners(path: str) -> Mapping[str, tuple[str, str]]:
    """Read ``[fairness] owners_file``.

    :returns: user and project by UUID or libvirt name.
    :raises ConfigurationError: if it cannot be read or is no such mapping.
    """
    if not path:
        return {}
    try:
        entries = json.loads(pathlib.Path(path).read_text('utf-8'))
        return {
            name: (
                str(entry.get('user', instance.UNOWNED)),
                str(entry.get('project', instance.UNOWNED)),
            )
            for name, entry in entries.items()
        }
    except (OSError, ValueError, AttributeError) as error:
        raise exception.ConfigurationError(
            f'[fairness] owners_file = {path}: {error}; expected a JSON '
            'object {"UUID or name": {"user": "...", "project": "..."}}'
        ) from error


def exchange_limits(group: Any) -> limits.Bounds:
    """Return the bounds of peers' claims, by ``[fairness_exchange]``.

    :param group: with an attribute for each option.
    :raises ConfigurationError: if the file of capacities cannot be used.
    """
    return limits.Bounds(
        domain=group.domain,
        view_max_age=group.view_max_age,
        max_total_users=limits.MEAN_USERS * group.max_peers,
        max_peers=group.max_peers,
        capacities=_peer_capacities(group.peer_capacity_file),
        max_heaviness=group.max_peer_heaviness,
    )


def _peer_capacities(
    path: str,
) -> tuple[tuple[str, resources.Vector], ...]:
    """Return the bounds of hosts' capacities by pattern, in the file's
    sequence.
    """
    if not path:
        return ()
    try:
        entries = json.loads(pathlib.Path(path).read_text('utf-8'))
        return tuple(
            (
                pattern,
                _peer_capacity(f'{limits.CAPACITY_FILE} = {path}', given),
            )
            for pattern, given in entries.items()
        )
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise exception.ConfigurationError(
            f'[fairness_exchange] {limits.CAPACITY_FILE} = {path}: {error}; '
            'expected a JSON object {"host or pattern": {"resource": number}}'
        ) from error


def _peer_capacity(
    option: str, configured: Mapping[str, Any]
) -> resources.Vector:
    known = resources.RESOURCES.names
    if strange := sorted(set(configured) - set(known)):
        raise exception.ConfigurationError(
            f'[fairness_exchange] {option} names {strange}; '
            f'expected resources out of {", ".join(known)}'
        )
    given = {
        name: _positive(option, name, value)
        for name, value in configured.items()
    }
    return resources.RESOURCES.vector(**{**limits.LARGEST_CAPACITY, **given})


def _positive(option: str, name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not 0 < number <= np.finfo(np.float64).max:
        raise exception.ConfigurationError(
            f'[fairness_exchange] {option}: {name}:{value}; '
            'expected a number above 0'
        )
    return number
