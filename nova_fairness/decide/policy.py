# SPDX-License-Identifier: Apache-2.0

"""The contract of a policy: from heaviness to weights."""

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
    """How unit-less weights become kernel units."""

    DEFAULT = 'default'
    """base x vCPUs x weight, bounded by ``max_weight_ratio``."""

    THESIS = 'thesis'
    """The original's ranges: a weight in 0..1 is a place in the range
    (1..100 CPU shares), whatever the number of vCPUs."""


@dataclasses.dataclass(frozen=True, eq=False)
class Situation:
    """How heavy the VMs of a node are, and who wants more of what.

    :ivar keys: (n) keys of the incarnations, row order of all arrays.
    :ivar heaviness: (n,) finite; higher is heavier.
    :ivar user: (n,) index of each VM's user.
    :ivar vcpus: (n,) >= 1.
    :ivar contended: (c,) whether anybody on the node waits for what that
        control steers; column order of ``resources.CONTROLS``.
    :ivar wanting: (n, c) whether that VM waits for more of it. A weight
        works only for a VM that wants more.
    :ivar foresight: what is known of other nodes; ``None``: nothing.
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

    A policy is pure and deterministic. It never touches the kernel, it does
    not know what a share is, and its result is bounded by the caller.
    """

    description: ClassVar[str]
    """One sentence for operators."""

    kind: ClassVar[pairing.PolicyKind | None] = None
    """Kind of reaction to heaviness; ``None``: no warning for metrics that do
    not suit it."""

    preset: ClassVar[Preset] = Preset.DEFAULT

    uses_foresight: ClassVar[bool] = False
    """Whether it wants :attr:`Situation.foresight`, which costs something."""

    @abc.abstractmethod
    def __call__(
        self,
        situation: Situation,
        previous: allocation.Weights,
        memory: Memory,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, Memory]:
        """Decide the weights of one round.

        :param situation: of this round.
        :param previous: (n, c) what was really applied last, after bounds,
            steps and failures; the neutral weight for a new VM.
        :param memory: what this policy returned last, empty at first.
        :param elapsed_s: since the last decision, seconds, > 0.
        :returns: (n, c) finite weights > 0, and the new memory.
        """
