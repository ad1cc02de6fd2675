# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What the feedback policy remembers, as JSON types and as arrays.

Memory may be of another policy or version, or edited by hand: whatever
cannot be used counts as not remembered.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
from typing import Any

import numpy as np

from nova_fairness.decide import policy
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

VERSION = 1
_OWNER = 'feedback'
_LARGEST = 1e15


@dataclasses.dataclass(frozen=True, eq=False)
class ControlMemory:
    """What is remembered of one control.

    :ivar settled: whether the contenders were about equally heavy.
    :ivar wanted: (n,) logarithm of the weight wanted last; NaN if unknown.
    :ivar error: (n,) the error it answered to, 0 if unknown.
    :ivar damping: (n,) factor of the steps, in (0, 1].
    """

    settled: bool
    wanted: usage_model.Scalars
    error: usage_model.Scalars
    damping: usage_model.Scalars


def nothing(count: int) -> ControlMemory:
    """Give the memory of a control that was not contended."""
    return ControlMemory(
        settled=False,
        wanted=np.full(count, np.nan),
        error=np.zeros(count),
        damping=np.ones(count),
    )


def heaviness_of(
    memory: policy.Memory, keys: Sequence[str]
) -> usage_model.Scalars:
    """Give the last heaviness of each VM, NaN where there is none."""
    known = _part(_own(memory), 'heaviness')
    return np.array(
        [_number(known.get(key), math.nan) for key in keys], dtype=np.float64
    )


def control_of(
    memory: policy.Memory, control: resources.Control, keys: Sequence[str]
) -> ControlMemory:
    """Give what is remembered of a control, for these VMs."""
    known = _part(_part(_own(memory), 'controls'), control.value)
    instances = _part(known, 'instances')
    entries = [_part(instances, key) for key in keys]
    damping = _column(entries, 'damping', 1.0)
    return ControlMemory(
        settled=known.get('settled') is True,
        wanted=_column(entries, 'wanted', math.nan),
        error=_column(entries, 'error', 0.0),
        damping=np.where((damping > 0) & (damping <= 1), damping, 1.0),
    )


def freeze(
    keys: Sequence[str],
    heaviness: usage_model.Scalars,
    controls: Mapping[str, ControlMemory],
) -> policy.Memory:
    """Give the memory to keep: only VMs that are there, only JSON types."""
    return {
        'owner': _OWNER,
        'version': VERSION,
        'heaviness': dict(zip(keys, heaviness.tolist(), strict=True)),
        'controls': {
            name: {
                'settled': item.settled,
                'instances': _instances(keys, item),
            }
            for name, item in controls.items()
        },
    }


def _instances(
    keys: Sequence[str], item: ControlMemory
) -> Mapping[str, Mapping[str, float]]:
    columns = zip(
        keys,
        item.wanted.tolist(),
        item.error.tolist(),
        item.damping.tolist(),
        strict=True,
    )
    # JSON has no NaN: what is unknown is left out.
    return {
        key: {'wanted': wanted, 'error': error, 'damping': damping}
        for key, wanted, error, damping in columns
        if math.isfinite(wanted)
    }


def _own(memory: object) -> Mapping[Any, Any]:
    if not isinstance(memory, Mapping):
        return {}
    version = memory.get('version')
    own = memory.get('owner') == _OWNER and version == VERSION
    return memory if own else {}


def _part(whole: Mapping[Any, Any], name: str) -> Mapping[Any, Any]:
    found = whole.get(name)
    return found if isinstance(found, Mapping) else {}


def _column(
    entries: Sequence[Mapping[Any, Any]], name: str, default: float
) -> usage_model.Scalars:
    return np.array(
        [_number(item.get(name), default) for item in entries],
        dtype=np.float64,
    )


def _number(value: object, default: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return default
    # Also turns down NaN, which compares false.
    return float(value) if abs(value) <= _LARGEST else default
