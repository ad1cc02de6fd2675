# SPDX-License-Identifier: Apache-2.0

"""The interface of a policy, which computes weights from heaviness."""

import abc
from collections.abc import Mapping
import dataclasses
import enum
from typing import Any
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nova_fairness.model import allocation
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import pairing
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Memory = Mapping[str, Any]
"""Memory of a policy: JSON types only, string keys, never changed in place.
Values per VM belong under the incarnation's key, so that they end with it."""


class Preset(enum.Enum):
    """How weights are converted to kernel units."""

    DEFAULT = 'default'
    """base x vCPUs x weight, bounded by ``max_weight_ratio``."""

    THESIS = 'thesis'
    """Ranges of the original system: a weight, 0..1, is a place in a range
    (1 to 100 CPU shares), for any number of vCPUs."""


@dataclasses.dataclass(frozen=True, eq=False)
class Situation:
    """Heaviness of the VMs of a node, and the resources that they wait for.

    :ivar keys: (n) keys of the incarnations, row order of all arrays.
    :ivar heaviness: (n,) finite; higher is heavier.
    :ivar user: (n,) index of each VM's user.
    :ivar vcpus: (n,) >= 1.
    :ivar contended: (c,) whether VMs compete for the resource of each
        control, in the order of ``resources.CONTROLS``.
    :ivar wanting: (n, c) whether each VM waits for more of the resource. A
        weight has an effect only on a VM that wants more.
    :ivar foresight: knowledge about other nodes; ``None`` if there is none.
    """

    keys: tuple[str, ...]
    heaviness: npt.NDArray[np.float64]
    user: usage_model.Indices
    vcpus: npt.NDArray[np.int64]
    contended: resources.Mask
    wanting: resources.Mask
    foresight: foresight_model.Foresight | None = None


class Policy(abc.ABC):
    """Base of all policies; subclasses are loaded by stevedore.

    A policy is pure and deterministic. It does not know kernel units, and its
    caller bounds the weights.
    """

    description: ClassVar[str]
    """One sentence for operators."""

    kind: ClassVar[pairing.PolicyKind | None] = None
    """Kind of the reaction to heaviness; with ``None`` no metric causes a
    warning that it does not suit the policy."""

    preset: ClassVar[Preset] = Preset.DEFAULT

    uses_foresight: ClassVar[bool] = False
    """Whether it uses :attr:`Situation.foresight`, which takes CPU time."""

    @abc.abstractmethod
    def __call__(
        self,
        situation: Situation,
        previous: allocation.Weights,
        memory: Memory,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, Memory]:
        """Decide the weights of one round.

        :param situation: situation of this round.
        :param previous: (n, c) weights that were applied last, after bounds
            and failed writes; the neutral weight for a new VM.
        :param memory: memory that this policy returned last; empty in the
            first round.
        :param elapsed_s: seconds since the last decision, > 0.
        :returns: (n, c) finite weights > 0, and the new memory.
        """
