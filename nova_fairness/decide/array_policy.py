# SPDX-License-Identifier: Apache-2.0

"""Policies that compute the weights of many nodes in one call.

By its contract a policy gets one node per call, and its memory is JSON. A
policy written in arrays keeps this contract for the agent, which has one node.
A simulator calls it once for thousands of nodes.
"""

import abc
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import math
from typing import Any
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nova_fairness.decide import policy
from nova_fairness.model import allocation
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Array = npt.NDArray[np.float64]
Memories = Mapping[str, Array]
"""Memory by name of the field; rows as in :class:`SituationArrays`."""

VERSION = 1
_LARGEST = 1e15


class MemoryScope(enum.Enum):
    """Objects for which a policy stores numbers: the shape of the array."""

    VM = 'vm'
    """(n,): one number per VM."""

    VM_CONTROL = 'vm_control'
    """(n, c): one per VM and control."""

    NODE_CONTROL = 'node_control'
    """(m, c): one per node and control."""


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryField:
    """Numbers that a policy stores from one round to the next.

    :ivar per: objects that have one number each.
    :ivar unknown: value of an object without a stored number; may be NaN.
    """

    per: MemoryScope
    unknown: float = math.nan


@dataclasses.dataclass(frozen=True, eq=False)
class SituationArrays:
    """Situation of one or more nodes; see :class:`.policy.Situation`.

    :ivar node: (n,) index of each VM's node.
    :ivar nodes: number of nodes m.
    :ivar heaviness: (n,) finite; higher is heavier.
    :ivar user: (n,) index of each VM's user; the same on all nodes.
    :ivar vcpus: (n,) > 0.
    :ivar contended: (m, c) whether the VMs of a node compete.
    :ivar wanting: (n, c) whether each VM wants more.
    :ivar foresight: knowledge about other nodes; ``None`` if there is none.
    """

    node: usage_model.Indices
    nodes: int
    heaviness: Array
    user: usage_model.Indices
    vcpus: npt.NDArray[np.int64] | Array
    contended: resources.Mask
    wanting: resources.Mask
    foresight: foresight_model.Foresight | None = None


class ArrayPolicy(policy.Policy):
    """Base of policies that decide for many nodes in one call.

    Subclasses write :meth:`decide`, and list in :attr:`FIELDS` the numbers
    that they store. The weights of a node must depend only on its own rows.
    """

    FIELDS: ClassVar[Mapping[str, MemoryField]] = {}

    @abc.abstractmethod
    def decide(
        self,
        crowd: SituationArrays,
        previous: allocation.Weights,
        memory: Memories,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, Memories]:
        """Decide the weights of one round of every node.

        :param crowd: situation of this round.
        :param previous: (n, c) weights that were applied last.
        :param memory: an array for each of :attr:`FIELDS`.
        :param elapsed_s: seconds since the last decision, > 0.
        :returns: (n, c) finite weights > 0, and the new memory.
        """

    def __call__(
        self,
        situation: policy.Situation,
        previous: allocation.Weights,
        memory: policy.Memory,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, policy.Memory]:
        """Decide the weights of one node; the order of rows has no effect."""
        order = np.argsort(np.array(situation.keys, dtype=np.str_))
        keys = [situation.keys[row] for row in order]
        weights, kept = self.decide(
            _situation_arrays(situation, order),
            np.asarray(previous, dtype=np.float64)[order],
            self._parse_memory(memory, keys),
            elapsed_s,
        )
        result = np.empty_like(weights)
        result[order] = weights
        return result, self._format_memory(kept, keys)

    @classmethod
    def initial_memory(cls, vms: int, nodes: int) -> Memories:
        """Return the memory of VMs and nodes that were never seen before."""
        return {
            name: np.full(_shape(field, vms, nodes), field.unknown)
            for name, field in cls.FIELDS.items()
        }

    def _parse_memory(
        self, memory: policy.Memory, keys: Sequence[str]
    ) -> Memories:
        """Convert JSON types to arrays; unusable entries count as unknown.

        The memory may be of another policy, or edited by hand.
        """
        own = _sub_mapping(memory, type(self).__name__)
        usable = own if own.get('version') == VERSION else {}
        vms = _sub_mapping(usable, 'vms')
        rows = [_sub_mapping(vms, key) for key in keys]
        node = [_sub_mapping(usable, 'node')]
        result = self.initial_memory(len(keys), 1)
        for name, field in self.FIELDS.items():
            found = node if field.per is MemoryScope.NODE_CONTROL else rows
            for row, entry in enumerate(found):
                _store_numbers(result[name][row : row + 1], entry.get(name))
        return result

    def _format_memory(
        self, kept: Memories, keys: Sequence[str]
    ) -> policy.Memory:
        """Convert arrays to JSON types, without unknown values."""
        vms: dict[str, dict[str, Any]] = {key: {} for key in keys}
        node: dict[str, Any] = {}
        for name, field in self.FIELDS.items():
            of_node = field.per is MemoryScope.NODE_CONTROL
            targets = [node] if of_node else [vms[key] for key in keys]
            for target, value in zip(targets, kept[name], strict=True):
                if np.isfinite(value).any():
                    target[name] = _as_json(value)
        own = {'version': VERSION, 'node': node, 'vms': vms}
        return {type(self).__name__: own}


def _situation_arrays(
    situation: policy.Situation, order: usage_model.Indices
) -> SituationArrays:
    return SituationArrays(
        node=np.zeros(len(order), dtype=np.intp),
        nodes=1,
        heaviness=situation.heaviness[order],
        user=situation.user[order],
        vcpus=situation.vcpus[order],
        contended=situation.contended[np.newaxis, :],
        wanting=situation.wanting[order],
        foresight=situation.foresight and situation.foresight.reordered(order),
    )


def _shape(field: MemoryField, vms: int, nodes: int) -> tuple[int, ...]:
    controls = len(resources.CONTROLS)
    return {
        MemoryScope.VM: (vms,),
        MemoryScope.VM_CONTROL: (vms, controls),
        MemoryScope.NODE_CONTROL: (nodes, controls),
    }[field.per]


def _sub_mapping(whole: object, name: str) -> Mapping[Any, Any]:
    found = whole.get(name) if isinstance(whole, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _store_numbers(row: Array, value: object) -> None:
    """Write stored numbers into a row; skip unusable ones."""
    values = value if isinstance(value, list) else [value]
    if len(values) != row.size:
        return
    for place, number in enumerate(values):
        if _is_usable_number(number):
            row.reshape(-1)[place] = number


def _is_usable_number(number: object) -> bool:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    return abs(number) <= _LARGEST


def _as_json(value: Any) -> Any:
    """Convert numbers to JSON; NaN becomes null, because JSON has no NaN."""
    if np.ndim(value):
        return [_as_json(item) for item in value]
    return float(value) if np.isfinite(value) else None
