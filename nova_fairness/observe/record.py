# SPDX-License-Identifier: Apache-2.0

"""Record of rounds: one JSON object per round in a file."""

from collections.abc import Mapping
import json
import math
import os
import pathlib
from typing import Any

import numpy as np

from nova_fairness import exception
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.observe import status

VERSION = 1
"""Version of the record's format."""


def _number(value: float) -> float | None:
    """Return a number, or ``None`` for an unknown one: JSON has no NaN."""
    return float(value) if math.isfinite(value) else None


def _by_resource(vector: resources.Vector) -> dict[str, float | None]:
    return {
        name: _number(value)
        for name, value in zip(resources.RESOURCES.names, vector, strict=True)
    }


def _by_control(values: Any) -> dict[str, Any]:
    """Return the entries of a (c,) array by the name of their control."""
    return {
        control.value: value.item()
        for control, value in zip(resources.CONTROLS, values, strict=True)
    }


def _units(source: allocation.Allocation, key: str) -> dict[str, int]:
    """Return the kernel units of one VM by control."""
    knobs = (
        (control, allocation.Knob(key, control))
        for control in resources.CONTROLS
    )
    return {
        control.value: source[knob]
        for control, knob in knobs
        if knob in source
    }


def _identity(vm: instance.Instance) -> dict[str, Any]:
    return {
        'uuid': vm.uuid,
        'domain': vm.domain_name,
        'name': vm.display_name or vm.domain_name,
        'user': vm.user_id,
        'project': vm.project_id,
        'vcpus': vm.vcpus,
        'memory_bytes': vm.memory_bytes,
    }


def _measured(measured: round_model.MeasuredRound, row: int) -> dict[str, Any]:
    return {
        'usage': _by_resource(measured.usage.amounts[row]),
        'endowment': _by_resource(measured.endowment[row]),
        'known': bool(measured.usage.known[row]),
        'instance_heaviness': _number(measured.instance_heaviness[row]),
        'heaviness': _number(measured.heaviness[row]),
        'stall': _number(measured.usage.cpu_stall[row]),
    }


def _decided(
    decided: round_model.DecidedRound, row: int, key: str
) -> dict[str, Any]:
    return {
        'wanting': _by_control(decided.wanting[row]),
        'weights': _by_control(decided.weights[row]),
        'wanted': _units(decided.wanted, key),
        'best_effort': key in decided.best_effort,
        **_preference(decided, row),
    }


def _preference(decided: round_model.DecidedRound, row: int) -> dict[str, Any]:
    if decided.preference is None:
        return {}
    return {'preference': _number(decided.preference[row])}


def _instance(done: round_model.Round, row: int) -> dict[str, Any]:
    incarnation = done.incarnations[row]
    entry = _identity(incarnation.instance)
    entry['incarnation'] = incarnation.key
    entry['read_at_s'] = _number(done.sample.read_at_s[row])
    entry['counters'] = _by_resource(done.sample.totals[row])
    if done.measured is not None:
        entry |= _measured(done.measured, row)
    if done.decided is not None:
        entry |= _decided(done.decided, row, incarnation.key)
    entry |= _shadow_of_vm(done.shadow, incarnation.key)
    entry['applied'] = _units(done.applied, incarnation.key)
    return entry


def _shadow_of_vm(
    shadow: round_model.ShadowHeaviness | None, key: str
) -> dict[str, Any]:
    if shadow is None or key not in shadow.heaviness:
        return {}
    return {
        'shadow_instance_heaviness': _number(shadow.instance_heaviness[key]),
        'shadow_heaviness': _number(shadow.heaviness[key]),
    }


def _users(
    measured: round_model.MeasuredRound,
    shadow: round_model.ShadowHeaviness | None,
) -> dict[str, Any]:
    ownership = measured.ownership
    shadowed = {} if shadow is None else shadow.user_heaviness
    count = np.bincount(ownership.user_index, minlength=len(ownership.users))
    return {
        user: {
            'heaviness': _number(measured.user_heaviness[place]),
            'instances': int(count[place]),
            **(
                {'shadow_heaviness': _number(shadowed[user])}
                if user in shadowed
                else {}
            ),
        }
        for place, user in enumerate(ownership.users)
    }


def _cloud(done: round_model.Round) -> dict[str, Any]:
    """Return the fields that describe all VMs together."""
    entry: dict[str, Any] = {}
    if done.measured is not None:
        entry['interval_s'] = done.measured.usage.interval_s
        entry['supply'] = _by_resource(done.measured.supply)
        entry['user_count'] = len(done.measured.ownership.users)
        entry['users'] = _users(done.measured, done.shadow)
        entry['left_out'] = dict(done.measured.view.left_out)
        entry['peers'] = status.peers_status(
            done.measured.view, done.node.host
        )
    if done.decided is not None:
        entry['contended'] = _by_control(done.decided.contended)
    if (shadow := status.shadow_status(done)) is not None:
        entry['shadow'] = dict(shadow)
    return entry


def as_json(done: round_model.Round) -> Mapping[str, Any]:
    """Convert a round to JSON types; the format is versioned and
    documented.
    """
    return {
        'version': VERSION,
        'round': done.number,
        'time_s': done.started_s,
        'wall_s': done.wall_s,
        'duration_s': done.duration_s,
        'host': done.node.host,
        'metric': done.metric,
        'policy': done.policy,
        'enforced': done.enforced,
        'epoch': done.epoch,
        'paused': done.paused,
        'node': {
            'cpus': list(done.node.cpus),
            'speed_factor': done.node.speed_factor,
            'capacity': _by_resource(done.node.capacity),
        },
        **_cloud(done),
        'instances': [
            _instance(done, row) for row in range(len(done.incarnations))
        ],
        'controls': {
            kind.value: item.works for kind, item in done.controls.items()
        },
        'changes': done.tally.changed,
        'failed': done.tally.failed,
        'restored': done.tally.restored,
        'drifted': done.tally.drifted,
        'missed': done.tally.missed,
        'quarantined': dict(done.quarantined),
        'errors': list(done.errors),
        'unsaved': list(done.unsaved),
    }


class RoundRecorder:
    """Appends each round to a file.

    :param path: file that is created if it is absent; earlier records are
        preserved.
    :raises StateError: if the file cannot be opened for appending.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        try:
            self._ends_with_newline = _ends_with_newline(path)
            # Unbuffered: a part that a full disk refused must not be
            # written later.
            self._file = path.open('ab', buffering=0)
        except OSError as error:
            raise exception.StateError(
                f'[fairness] record_path {path}: not opened for appending: '
                f'{error.strerror}; choose another file or set no path'
            ) from error

    def add(self, done: round_model.Round) -> None:
        """Append one round to the file, without a buffer.

        :raises StateError: if the file cannot be written; the next round then
            begins on a new line.
        """
        line = json.dumps(as_json(done)).encode() + b'\n'
        rest = memoryview(line if self._ends_with_newline else b'\n' + line)
        self._ends_with_newline = False
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
        except OSError as error:
            raise exception.StateError(
                f'[fairness] record_path {self._path}: not written: '
                f'{error.strerror}; the next round tries again'
            ) from error
        self._ends_with_newline = True

    def close(self) -> None:
        """Close the file; a second call has no effect."""
        self._file.close()


def _ends_with_newline(path: pathlib.Path) -> bool:
    """Return whether the file is empty or ends with a newline; an agent that
    was killed may leave a partial line.
    """
    if not path.is_file() or path.stat().st_size == 0:
        return True
    with path.open('rb') as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b'\n'
