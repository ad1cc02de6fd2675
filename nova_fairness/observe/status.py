# SPDX-License-Identifier: Apache-2.0

"""Answers to RPCs about a round: JSON types, with the unit in each name."""

from collections.abc import Mapping
from collections.abc import Sequence
import math
from typing import Any

import numpy as np

from nova_fairness.model import allocation
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import round as round_model

MOST_ERRORS = 20
"""Largest number of errors of a round in an answer; the log has all."""

LONGEST_TEXT = 300
"""Largest length of an error, characters."""

MOST_USERS = 10_000
"""Largest number of users in an answer: users with VMs on this node first,
then the heaviest.

Each user needs about 300 bytes, so the answer fits a message of the usual
largest size.
"""


def round_summary(done: round_model.Round) -> Mapping[str, Any]:
    """Return a summary of a round."""
    measured = done.measured
    users = 0 if measured is None else len(measured.ownership.users)
    return {
        'number': done.number,
        'wall_s': done.wall_s,
        'duration_s': done.duration_s,
        'enforced': done.enforced,
        'instances_count': len(done.incarnations),
        'users_count': users,
        'changed_count': done.tally.changed,
        'failed_count': done.tally.failed,
        'missed_count': done.tally.missed,
        'errors': [text[:LONGEST_TEXT] for text in done.errors[:MOST_ERRORS]],
    }


def shadow_status(done: round_model.Round | None) -> Mapping[str, Any] | None:
    """Return whether the shadow metric works; ``None`` if there is none."""
    if done is None or done.shadow is None:
        return None
    return {
        'metric': done.shadow.metric,
        'round': done.shadow.round_number,
        'problem': done.shadow.problem[:LONGEST_TEXT],
    }


def shadow_name(done: round_model.Round | None) -> str:
    """Return the name of the shadow metric; empty if there is none."""
    if done is None or done.shadow is None:
        return ''
    return done.shadow.metric


def controls_status(done: round_model.Round) -> Mapping[str, Any]:
    """Return which controls work, and the VMs for which a control has no full
    effect.
    """
    return {
        kind.value: {
            'works': item.works,
            'why': item.why[:LONGEST_TEXT],
            'without_effect': {
                key.partition('/')[0]: why[:LONGEST_TEXT]
                for key, why in sorted(item.without_effect.items())
                if key
            },
        }
        for kind, item in done.controls.items()
    }


def idle_seconds(
    done: round_model.Round | None, at_least_s: float
) -> Mapping[str, float]:
    """Return the seconds for which VMs have been idle, by UUID.

    :param at_least_s: shortest idle time that is returned, seconds.
    """
    if done is None:
        return {}
    idle = {
        uuid: max(done.wall_s - since, 0.0)
        for uuid, since in done.idle_since.items()
    }
    return {uuid: s for uuid, s in sorted(idle.items()) if s >= at_least_s}


def cpu_demand(done: round_model.Round | None) -> Mapping[str, Any]:
    """Return the CPUs that VMs wanted and got over a period, by UUID."""
    if done is None or done.measured is None:
        return {}
    owners = done.measured.ownership
    told = {}
    for row, vm in enumerate(done.incarnations):
        seen = done.lacks.get(vm.key)
        if seen is not None:
            units = _units(done.applied, vm.key)
            told[vm.instance.uuid] = {
                'owner': owners.users[owners.user_index[row]],
                'wanted_cpus': seen.wanted,
                'got_cpus': seen.got,
                'weight_units': units.get(resources.ResourceControl.CPU.value),
                'seen_s': seen.seen_s,
            }
    return told


def peers_status(view: report.View, own_host: str) -> Mapping[str, Any]:
    """Return the age of each other node's report, or the reason why it is not
    used.
    """
    hosts = {*view.age_s, *view.left_out} - {own_host}
    return {
        host: {
            'age_s': view.age_s.get(host),
            'left_out': view.left_out.get(host),
        }
        for host in sorted(hosts)
    }


def instances_status(
    done: round_model.Round | None,
) -> list[Mapping[str, Any]]:
    """Return heaviness, weights and kernel units of each VM; sorted by
    UUID.
    """
    if done is None:
        return []
    return [_instance(done, row) for row in range(len(done.incarnations))]


def _instance(done: round_model.Round, row: int) -> Mapping[str, Any]:
    incarnation = done.incarnations[row]
    vm = incarnation.instance
    measured, decided = done.measured, done.decided
    return {
        'uuid': vm.uuid,
        'name': vm.display_name or vm.domain_name,
        'domain': vm.domain_name,
        'user': vm.user_id,
        'user_name': vm.user_name or vm.user_id,
        'project': vm.project_id,
        'project_name': vm.project_name or vm.project_id,
        'vcpus_count': vm.vcpus,
        'memory_bytes': vm.memory_bytes,
        'heaviness_quotas': (
            None if measured is None else _number(measured.heaviness[row])
        ),
        'shadow_heaviness_quotas': (
            None
            if done.shadow is None
            else _known(done.shadow.heaviness, incarnation.key)
        ),
        'wanting': {} if decided is None else _controls(decided.wanting[row]),
        'preference_ratio': _preference(decided, row),
        'weight_ratios': (
            {} if decided is None else _controls(decided.weights[row])
        ),
        'applied_units': _units(done.applied, incarnation.key),
    }


def users_status(done: round_model.Round | None) -> Mapping[str, Any]:
    """Return the heaviness and usage of users of all known nodes, by ID."""
    if done is None or done.measured is None:
        return {}
    measured = done.measured
    ownership = measured.ownership
    shadow = {} if done.shadow is None else done.shadow.user_heaviness
    here = np.bincount(ownership.user_index, minlength=len(ownership.users))
    rows = _rows_to_report(here, measured.user_heaviness)
    return {
        ownership.users[row]: {
            'heaviness_quotas': _number(measured.user_heaviness[row]),
            'shadow_heaviness_quotas': _known(shadow, ownership.users[row]),
            'instances_here_count': int(here[row]),
            'usage_quotas': quotas,
        }
        for row, quotas in zip(rows, _quotas(measured, rows), strict=True)
    }


def usage_of_users(done: round_model.Round | None) -> Mapping[str, Any]:
    """Return the usage of each user as a part of all known nodes, by ID."""
    measured = None if done is None else done.measured
    if measured is None or measured.user_usage is None:
        return {}
    users = measured.ownership.users
    here = np.bincount(measured.ownership.user_index, minlength=len(users))
    rows = _rows_to_report(here, measured.user_heaviness)
    used = measured.user_usage[rows]
    supply = np.broadcast_to(measured.supply, used.shape)
    return {
        users[row]: {'usage_parts': parts}
        for row, parts in zip(rows, _in_parts(used, supply), strict=True)
    }


def projects_status(done: round_model.Round | None) -> Mapping[str, Any]:
    """Return the heaviness of the VMs of each project on this node, by ID.

    Usage is divided by the cloud's supply per user, because a project has no
    quota if users are compared.
    """
    if done is None or done.measured is None:
        return {}
    measured = done.measured
    rows_of: dict[str, list[int]] = {}
    for row, item in enumerate(done.incarnations):
        rows_of.setdefault(item.instance.project_id, []).append(row)
    equal = measured.supply / max(1, len(measured.ownership.users))
    told = {}
    for project, rows in sorted(rows_of.items()):
        used = measured.usage.amounts[rows].sum(axis=0)
        told[project] = {
            'heaviness_quotas': _number(
                measured.instance_heaviness[rows].sum()
            ),
            'shadow_heaviness_quotas': _shadow_sum(done, rows),
            'instances_here_count': len(rows),
            'usage_quotas': _in_parts(used[None], equal[None])[0],
        }
    return told


def _shadow_sum(done: round_model.Round, rows: Sequence[int]) -> float | None:
    """Return the sum over VMs by the shadow metric; ``None`` if it is not
    known of one of them.
    """
    known = {} if done.shadow is None else done.shadow.instance_heaviness
    keys = [done.incarnations[row].key for row in rows]
    if not all(key in known for key in keys):
        return None
    return _number(sum(known[key] for key in keys))


def _known(numbers: Mapping[str, float], name: str) -> float | None:
    found = numbers.get(name)
    return None if found is None else _number(found)


def _rows_to_report(here: Any, heaviness: Any) -> list[int]:
    """Choose the rows of users that an answer contains, in their order."""
    count = len(here)
    if count <= MOST_USERS:
        return list(range(count))
    first = np.lexsort((-np.nan_to_num(heaviness), here == 0))
    chosen: list[int] = np.sort(first[:MOST_USERS]).tolist()
    return chosen


def _quotas(
    measured: round_model.MeasuredRound, rows: Sequence[int]
) -> list[Mapping[str, float | None]]:
    """Return the usage of users by resource, in parts of their quotas."""
    if measured.user_usage is None:
        return [{} for _ in rows]
    return _in_parts(measured.user_usage[rows], measured.quota[rows])


def _in_parts(
    used: resources.Vector, quota: resources.Vector
) -> list[Mapping[str, float | None]]:
    """Divide used amounts by quotas, (n, r) each, and return the parts by
    resource per row.
    """
    parts = np.full(used.shape, np.nan)
    np.divide(used, quota, out=parts, where=quota > 0)
    names = resources.RESOURCES.names
    return [
        dict(zip(names, map(_number, row), strict=True))
        for row in parts.tolist()
    ]


def _number(value: float) -> float | None:
    """Return a number, or ``None`` for an unknown one: JSON has no NaN."""
    return float(value) if math.isfinite(value) else None


def _controls(values: Any) -> Mapping[str, Any]:
    return {
        control.value: value.item()
        for control, value in zip(resources.CONTROLS, values, strict=True)
    }


def _preference(
    decided: round_model.DecidedRound | None, row: int
) -> float | None:
    if decided is None or decided.preference is None:
        return None
    return _number(decided.preference[row])


def _units(source: allocation.Allocation, key: str) -> Mapping[str, int]:
    knobs = {
        control.value: allocation.Knob(key, control)
        for control in resources.CONTROLS
    }
    return {
        name: source[knob] for name, knob in knobs.items() if knob in source
    }
