# SPDX-License-Identifier: Apache-2.0

"""Policies whose arithmetic takes many nodes at once.

The contract of a policy is one node per call, with memory that is JSON. A
policy written in arrays keeps that contract, because an agent has one node,
and can be asked about thousands of nodes in one call, as a simulator does.
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
"""Memory by name of the field; rows as in :class:`Crowd`."""

VERSION = 1
_LARGEST = 1e15


class Per(enum.Enum):
    """Of what a field is remembered, and so the shape of its array."""

    VM = 'vm'
    """(n,): one number per VM."""

    VM_CONTROL = 'vm_control'
    """(n, c): one per VM and control."""

    NODE_CONTROL = 'node_control'
    """(m, c): one per node and control."""


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryField:
    """Something that a policy remembers from one round to the next.

    :ivar per: of what.
    :ivar unknown: the value where nothing is remembered; may be NaN.
    """

    per: Per
    unknown: float = math.nan


@dataclasses.dataclass(frozen=True, eq=False)
class Crowd:
    """The VMs of one or more nodes; :class:`.policy.Situation` as arrays.

    :ivar node: (n,) index of each VM's node.
    :ivar nodes: number of nodes m.
    :ivar heaviness: (n,) finite; higher is heavier.
    :ivar user: (n,) index of each VM's user; the same on all nodes.
    :ivar vcpus: (n,) > 0.
    :ivar contended: (m, c) whether the VMs of a node compete.
    :ivar wanting: (n, c) whether each VM wants more.
    :ivar foresight: what is known of other nodes; ``None``: nothing.
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

    Subclasses write :meth:`decide` and name in :attr:`FIELDS` what they
    remember. A node's weights must depend on that node's rows alone.
    """

    FIELDS: ClassVar[Mapping[str, MemoryField]] = {}

    @abc.abstractmethod
    def decide(
        self,
        crowd: Crowd,
        previous: allocation.Weights,
        memory: Memories,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, Memories]:
        """Decide the weights of one round of every node.

        :param crowd: of this round.
        :param previous: (n, c) what was really applied last.
        :param memory: an array for each of :attr:`FIELDS`.
        :param elapsed_s: since the last decision, seconds, > 0.
        :returns: (n, c) finite weights > 0, and the new memory.
        """

    def __call__(
        self,
        situation: policy.Situation,
        previous: allocation.Weights,
        memory: policy.Memory,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, policy.Memory]:
        """Decide for one node; the order of its rows changes nothing."""
        order = np.argsort(np.array(situation.keys, dtype=np.str_))
        keys = [situation.keys[row] for row in order]
        weights, kept = self.decide(
            _crowd(situation, order),
            np.asarray(previous, dtype=np.float64)[order],
            self._thawed(memory, keys),
            elapsed_s,
        )
        result = np.empty_like(weights)
        result[order] = weights
        return result, self._frozen(kept, keys)

    @classmethod
    def nothing(cls, vms: int, nodes: int) -> Memories:
        """Memory of VMs and nodes never seen before."""
        return {
            name: np.full(_shape(field, vms, nodes), field.unknown)
            for name, field in cls.FIELDS.items()
        }

    def _thawed(self, memory: policy.Memory, keys: Sequence[str]) -> Memories:
        """Read memory, which may be another policy's or edited by hand."""
        own = _part(memory, type(self).__name__)
        usable = own if own.get('version') == VERSION else {}
        vms = _part(usable, 'vms')
        rows = [_part(vms, key) for key in keys]
        node = [_part(usable, 'node')]
        result = self.nothing(len(keys), 1)
        for name, field in self.FIELDS.items():
            found = node if field.per is Per.NODE_CONTROL else rows
            for row, entry in enumerate(found):
                _fill(result[name][row : row + 1], entry.get(name))
        return result

    def _frozen(self, kept: Memories, keys: Sequence[str]) -> policy.Memory:
        """Memory in JSON types; unknown values are left out."""
        vms: dict[str, dict[str, Any]] = {key: {} for key in keys}
        node: dict[str, Any] = {}
        for name, field in self.FIELDS.items():
            of_node = field.per is Per.NODE_CONTROL
            targets = [node] if of_node else [vms[key] for key in keys]
            for target, value in zip(targets, kept[name], strict=True):
                if np.isfinite(value).any():
                    target[name] = _jsonable(value)
        own = {'version': VERSION, 'node': node, 'vms': vms}
        return {type(self).__name__: own}


def _crowd(situation: policy.Situation, order: usage_model.Indices) -> Crowd:
    return Crowd(
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
        Per.VM: (vms,),
        Per.VM_CONTROL: (vms, controls),
        Per.NODE_CONTROL: (nodes, controls),
    }[field.per]


def _part(whole: object, name: str) -> Mapping[Any, Any]:
    found = whole.get(name) if isinstance(whole, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _fill(row: Array, value: object) -> None:
    """Put remembered numbers into a row, entry by entry."""
    values = value if isinstance(value, list) else [value]
    if len(values) != row.size:
        return
    for place, number in enumerate(values):
        if _usable(number):
            row.reshape(-1)[place] = number


def _usable(number: object) -> bool:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    return abs(number) <= _LARGEST


def _jsonable(value: Any) -> Any:
    """JSON has no NaN: what is not known is null."""
    if np.ndim(value):
        return [_jsonable(item) for item in value]
    return float(value) if np.isfinite(value) else None
