# SPDX-License-Identifier: Apache-2.0


"""The facts from which it is said how a VM fares: values, and nothing else."""

from collections.abc import Sequence
import dataclasses
import enum

DIFFERS = 0.1
"""Part of the fair part of a user. If it has less by more than this, it has
"less than its fair part"."""


class HeavinessStanding(enum.Enum):
    """How heavy an owner is, by the metric in force.

    Compared are those who wait for the same thing on the same node.
    """

    EVEN = 'even'
    HEAVIER = 'heavier'
    LIGHTER = 'lighter'
    ALONE = 'alone'
    """No other owner waits for it."""


class HeavinessCause(enum.Enum):
    """The cause of an owner's heaviness."""

    USED = 'used'
    RESERVED = 'reserved'
    """The metric charges for what VMs have reserved, used or not."""

    ELSEWHERE = 'elsewhere'
    """VMs on other nodes; their reports do not tell the resource."""

    UNKNOWN = 'unknown'


@dataclasses.dataclass(frozen=True)
class Cpu:
    """A VM's use of the CPUs of its node; amounts are CPUs.

    :ivar gets: in the newest interval, >= 0.
    :ivar wants: with plenty, at least ``gets``.
    :ivar most: that its vCPUs can use, > 0.
    :ivar limit: that its flavor allows; ``None`` if it names none.
    :ivar host: that the host itself uses; ``None`` if that is not known.
    :ivar node: that the node has, > 0.
    """

    gets: float
    wants: float
    most: float
    limit: float | None = None
    host: float | None = None
    node: float = 1.0


@dataclasses.dataclass(frozen=True)
class ContendedShare:
    """How something is shared for which the VM waits and others compete.

    :ivar resource: for which it waits.
    :ivar steered: whether the VM's weight has an effect.
    :ivar standing: of its owner.
    :ivar waiting: owners who wait for it on this node, its own included.
    :ivar fair: part of what the node has that is the owner's by quota among
        those who want it there, 0..1; ``None`` if that is not known.
    :ivar has: part that the owner's VMs have, 0..1; ``None`` if that is not
        known.
    :ivar weight: 1 is neutral.
    :ivar at_end: whether no weight further from neutral is allowed.
    :ivar is_place: whether the weight is a place in a range, from 0 to 1.
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
    """All that the sentences depend on.

    :ivar entity: ``user`` or ``project``: who the owner is.
    :ivar enforced: whether weights are in force on the node.
    :ivar exempt: whether an operator exempted the VM.
    :ivar best_effort: whether it gets only what is left over.
    :ivar paused: whether its vCPUs do not run.
    :ivar cpu: what it has.
    :ivar sharing: of all that others make it wait for, in the order of the
        controls.
    :ivar waits: resources for which it waits, but not for others.
    :ivar cause: what makes its owner heaviest.
    :ivar heaviest: the resource; empty if that is not known.
    :ivar used: what the owner's VMs use of it, and what their part of all
        known nodes is, in its unit.
    :ivar preference: of the owner for this VM; 1 is none.
    """

    entity: str
    enforced: bool
    exempt: bool
    paused: bool
    cpu: Cpu
    sharing: Sequence[ContendedShare] = ()
    waits: Sequence[str] = ()
    cause: HeavinessCause = HeavinessCause.UNKNOWN
    heaviest: str = ''
    used: tuple[float, float] | None = None
    preference: float = 1.0
    best_effort: bool = False
