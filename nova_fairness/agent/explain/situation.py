# SPDX-License-Identifier: Apache-2.0


"""The facts from which the explanation of a VM is written."""

from collections.abc import Sequence
import dataclasses
import enum

SIGNIFICANT_PART = 0.1
"""Relative difference that counts. A user who has less than the fair part by
more than this has "less than its fair part"."""


class HeavinessStanding(enum.Enum):
    """The owner's heaviness compared with that of other owners.

    The others are those whose VMs wait for the same resource on the same node.
    """

    EVEN = 'even'
    HEAVIER = 'heavier'
    LIGHTER = 'lighter'
    ALONE = 'alone'
    """No other owner has a VM that waits for the resource."""


class HeavinessCause(enum.Enum):
    """The largest cause of an owner's heaviness."""

    USED = 'used'
    RESERVED = 'reserved'
    """The metric charges for reserved resources, used or not."""

    ELSEWHERE = 'elsewhere'
    """The owner's VMs on other nodes; their reports do not name the resource.
    """

    UNKNOWN = 'unknown'


@dataclasses.dataclass(frozen=True)
class VmCpu:
    """CPU use of a VM and of its node; amounts are CPUs.

    :ivar gets: CPUs that the VM used in the newest interval, >= 0.
    :ivar wants: CPUs that it would use without competition, >= ``gets``.
    :ivar most: CPUs that its vCPUs can use, > 0.
    :ivar limit: limit of its flavor; ``None`` if the flavor has none.
    :ivar host: CPUs that the host's own programs use; ``None`` if unknown.
    :ivar node: CPUs of the node, > 0.
    """

    gets: float
    wants: float
    most: float
    limit: float | None = None
    host: float | None = None
    node: float = 1.0


@dataclasses.dataclass(frozen=True)
class ContendedShare:
    """Division of a contended resource that the VM waits for.

    :ivar resource: name of the resource.
    :ivar steered: whether the VM's weight has an effect.
    :ivar standing: heaviness of the VM's owner compared with other owners.
    :ivar waiting: number of owners who wait for the resource on this node, the
        VM's owner included.
    :ivar fair: part of the node's resource that the owner is entitled to by
        quota, 0..1; ``None`` if unknown.
    :ivar has: part that the owner's VMs have, 0..1; ``None`` if unknown.
    :ivar weight: of the VM; 1 is neutral.
    :ivar at_end: whether the weight is the largest or smallest allowed one.
    :ivar is_place: whether the weight is a position in a range from 0 to 1.
    """

    resource: str
    steered: bool
    standing: HeavinessStanding
    waiting: int
    fair: float | None = None
    has: float | None = None
    weight: float = 1.0
    at_end: bool = False
    is_place: bool = False


@dataclasses.dataclass(frozen=True)
class SituationFacts:
    """All facts that the sentences about a VM depend on.

    :ivar entity: ``user`` or ``project``: the kind of the owner.
    :ivar enforced: whether weights are in force on the node.
    :ivar exempt: whether an operator exempted the VM.
    :ivar best_effort: whether the VM gets only leftover resources.
    :ivar paused: whether the VM's vCPUs are paused.
    :ivar cpu: CPU use of the VM.
    :ivar sharing: the contended resources that the VM waits for, in the order
        of the controls.
    :ivar waits: resources that the VM waits for without contention.
    :ivar cause: largest cause of the owner's heaviness.
    :ivar heaviest: the resource of that cause; empty if unknown.
    :ivar used: the owner's use of that resource and the owner's quota of it,
        in its unit.
    :ivar preference: of the owner for this VM; 1 means no preference.
    """

    entity: str
    enforced: bool
    exempt: bool
    paused: bool
    cpu: VmCpu
    sharing: Sequence[ContendedShare] = ()
    waits: Sequence[str] = ()
    cause: HeavinessCause = HeavinessCause.UNKNOWN
    heaviest: str = ''
    used: tuple[float, float] | None = None
    preference: float = 1.0
    best_effort: bool = False
