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


"""Two or three sentences: how a VM fares, why, and what would change it.

A pure function of facts. Whoever may see the VM may read them, so its owner
is spoken of and not to.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import enum

from nova_fairness.model import wording

FULL = 0.95
"""Part of what it can use from which a VM uses all of it."""

DIFFERS = 0.1
"""A part differs from the fair one if it does by more than this part."""

HOST_BUSY = 0.1
"""Part of a node's CPUs from which what the host itself uses is told."""

NOT_MEASURED = (
    'Nothing is known of this VM for now: its node has not measured it yet. '
    'Ask again in a minute.'
)

NOBODY_JUDGED = (
    'The metric or the policy of this node failed, so nobody is judged at the '
    'moment, and weights stay as they are until an operator sets it again.'
)

EXEMPT = (
    'An operator exempted this VM from fair sharing: it gets what it would '
    'get without it.'
)

PAUSED = (
    'This VM is paused: its vCPUs do not run, and it waits for nothing. '
    'Unpause it and ask again.'
)

NOT_ENFORCED = (
    'Weights are not in force on this node at the moment: an operator paused '
    'it, or it only observes.'
)


class Standing(enum.Enum):
    """How heavy an owner is, by the metric in force.

    Compared are those who wait for the same thing on the same node.
    """

    EVEN = 'even'
    HEAVIER = 'heavier'
    LIGHTER = 'lighter'
    ALONE = 'alone'
    """Nobody else waits for it."""


class Cause(enum.Enum):
    """What makes an owner heavy."""

    USED = 'used'
    RESERVED = 'reserved'
    """The metric charges for what VMs have reserved, used or not."""

    ELSEWHERE = 'elsewhere'
    """VMs on other nodes, of which the resource is not told."""

    UNKNOWN = 'unknown'


@dataclasses.dataclass(frozen=True)
class Cpu:
    """What a VM has of the CPUs of its node; amounts are CPUs.

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
class Sharing:
    """How something is shared for which the VM waits and others compete.

    :ivar resource: for which it waits.
    :ivar steered: whether the VM's weight has an effect.
    :ivar standing: of its owner.
    :ivar waiting: owners who wait for it on this node, its own included.
    :ivar fair: part of what the node has that is the owner's by quota among
        those who want it there, 0..1; ``None`` if that is not known.
    :ivar has: part that the owner's VMs have, 0..1; likewise.
    :ivar weight: 1 is neutral.
    :ivar at_end: whether no weight further from neutral is allowed.
    :ivar is_place: whether the weight is a place in a range, from 0 to 1.
    """

    resource: str
    steered: bool
    standing: Standing
    waiting: int
    fair: float | None = None
    has: float | None = None
    weight: float = 1.0
    at_end: bool = False
    is_place: bool = False


@dataclasses.dataclass(frozen=True)
class Facts:
    """All that the sentences depend on.

    :ivar entity: ``user`` or ``project``: who the owner is.
    :ivar enforced: whether weights are in force on the node.
    :ivar exempt: whether an operator exempted the VM.
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
    sharing: Sequence[Sharing] = ()
    waits: Sequence[str] = ()
    cause: Cause = Cause.UNKNOWN
    heaviest: str = ''
    used: tuple[float, float] | None = None
    preference: float = 1.0


def text(facts: Facts) -> str:
    """Say how a VM fares, why, and what would change it, in short."""
    return ' '.join(_first(facts))


def sentences(facts: Facts) -> list[str]:
    """Say the same, and as much of all else that it waits for.

    :returns: at least one sentence.
    """
    found = list(_first(facts))
    if facts.sharing and not (facts.exempt or facts.paused):
        for more in facts.sharing[1:]:
            found.extend(_shared(facts, more))
        if facts.waits:
            found.append(_held(facts))
    return list(dict.fromkeys(found))


def _first(facts: Facts) -> Iterator[str]:
    if facts.exempt:
        yield EXEMPT
    elif facts.paused:
        yield PAUSED
    elif facts.sharing:
        yield from _shared(facts, facts.sharing[0])
    elif 'cpu_time' in facts.waits:
        yield from _alone(facts.cpu)
    else:
        yield from _free(facts)


def _free(facts: Facts) -> Iterator[str]:
    cpu = facts.cpu
    if facts.waits:
        yield _held(facts)
    elif cpu.gets >= FULL * cpu.most:
        yield (
            f'This VM uses all that its vCPUs can do ({_amount(cpu.gets)}), '
            'and nothing slows it down.'
        )
        yield 'With more vCPUs it could use more.'
    else:
        yield (
            f'Nothing slows this VM down: it uses {_amount(cpu.gets)} and '
            'waits for nothing.'
        )


def _held(facts: Facts) -> str:
    names = ' and '.join(map(wording.resource, facts.waits))
    return (
        f'This VM waits for {names}, but other VMs are not the reason: the '
        'device itself, or a limit of its flavor, holds it back.'
    )


def _alone(cpu: Cpu) -> Iterator[str]:
    """Tell of who waits for a CPU, but not because of other VMs."""
    if cpu.limit is not None and cpu.gets >= FULL * cpu.limit:
        yield (
            f'This VM gets {_amount(cpu.gets)}, which is the limit of its '
            'flavor; other VMs do not slow it down.'
        )
        yield 'Another flavor gives more.'
        return
    yield (
        f'This VM gets {_amount(cpu.gets)} and wants '
        f'{_amount(cpu.wants)}. Other VMs do not slow it down.'
    )
    if _is_host_busy(cpu):
        yield (
            f'The host is busy itself: its own programs use '
            f'{_amount(cpu.host)} of {cpu.node:g}. Tell the operator.'
        )
    else:
        yield 'Why it waits is not known here; tell the operator if it lasts.'


def _shared(facts: Facts, sharing: Sharing) -> Iterator[str]:
    yield _slowed(facts, sharing)
    yield from _parts(facts, sharing)
    if not facts.enforced:
        yield NOT_ENFORCED
    elif not sharing.steered:
        yield (
            'Nobody is put first: this node cannot steer '
            f'{wording.resource(sharing.resource)} for this VM.'
        )
    else:
        yield _verdict(facts, sharing)
    if sharing.resource == 'cpu_time' and _is_host_busy(facts.cpu):
        yield (
            f'The host itself uses {_amount(facts.cpu.host)} of '
            f'{facts.cpu.node:g}, which nobody can have.'
        )


def _slowed(facts: Facts, sharing: Sharing) -> str:
    name = wording.resource(sharing.resource)
    if sharing.resource != 'cpu_time':
        return f'This VM is slowed down by sharing: it waits for {name}.'
    cpu = facts.cpu
    return (
        f'This VM is slowed down by sharing: it gets {_amount(cpu.gets)} and '
        f'wants {_amount(cpu.wants)}.'
    )


def _parts(facts: Facts, sharing: Sharing) -> Iterator[str]:
    if sharing.standing is Standing.ALONE:
        return
    name = wording.resource(sharing.resource)
    who = f'{sharing.waiting} {facts.entity}s'
    begun = f'On this node {who} wait for {name}'
    if sharing.fair is None or sharing.has is None:
        yield f'{begun}.'
    else:
        yield (
            f"{begun}; by quota {_owner(facts)}'s part of it here is "
            f'{sharing.fair:.0%}, and {_they(facts)} {sharing.has:.0%}.'
        )


def _verdict(facts: Facts, sharing: Sharing) -> str:
    if sharing.standing is Standing.ALONE:
        return (
            f'No other {facts.entity} waits for it: {_owner(facts)} is not '
            'held back for anybody. Another node, or fewer VMs on this one, '
            'give more.'
        )
    if facts.preference < 1 - DIFFERS:
        return (
            f'Its owner preferred other VMs to this one (preference '
            f'{facts.preference:g}); to prefer it more gives it more.'
        )
    if sharing.standing is Standing.EVEN:
        return _even(facts, sharing)
    if sharing.standing is Standing.LIGHTER:
        return _lighter(facts, sharing)
    return f'{_heavier(facts)}, so this VM stands back{_end(sharing)}.' + (
        _remedy(facts)
    )


def _even(facts: Facts, sharing: Sharing) -> str:
    begun = '' if _has_fair(sharing) else 'All in all, '
    that = 'this' if begun else 'This'
    return (
        f'{begun}{that} is {_their(facts)} fair part: nothing is wrong. More '
        'quota, or another node, gives more.'
    )


def _has_fair(sharing: Sharing) -> bool:
    if sharing.fair is None or sharing.has is None:
        return True
    return abs(sharing.has - sharing.fair) <= DIFFERS * sharing.fair


def _lighter(facts: Facts, sharing: Sharing) -> str:
    begun = (
        f'All in all {_owner(facts)} has less than those it competes with, so '
        'this VM goes first'
    )
    if sharing.at_end and sharing.weight > 1:
        return (
            f'{begun}, with the largest weight that is allowed; only another '
            'node gives more.'
        )
    return f'{begun} ({_weight(sharing)}).'


def _heavier(facts: Facts) -> str:
    return f'All in all {_owner(facts)} is heavier than those it competes with'


def _end(sharing: Sharing) -> str:
    if sharing.at_end and sharing.weight < 1:
        return f' ({_weight(sharing)}, the smallest that is allowed)'
    more = not sharing.is_place and sharing.weight >= 1 - DIFFERS
    return f'{" more and more" if more else ""} ({_weight(sharing)})'


def _weight(sharing: Sharing) -> str:
    if sharing.is_place:
        return f'weight {sharing.weight:.2f} in a range from 0 to 1'
    return f'weight {sharing.weight:.2f}, 1 is neutral'


def _remedy(facts: Facts) -> str:
    """Say what makes the owner heavy, and what would change it."""
    name = wording.resource(facts.heaviest)
    if facts.cause is Cause.RESERVED:
        return (
            f' {_owner(facts).capitalize()} is charged for what '
            f'{_their(facts)} VMs have reserved, used or not, most of all '
            f'{name}: fewer or smaller VMs change that.'
        )
    if facts.cause is Cause.ELSEWHERE:
        return (
            f' What counts most is {_their(facts)} VMs on other nodes: less '
            'use there, or fewer VMs, change that.'
        )
    if facts.cause is Cause.USED and facts.used is not None:
        used, part = (
            wording.amount(facts.heaviest, value) for value in facts.used
        )
        return (
            f' What counts most is {name}: {_their(facts)} VMs use {used} in '
            f'all, and {_their(facts)} part of all nodes is {part}. '
            'If they use less of it, this VM gets more.'
        )
    return ''


def _is_host_busy(cpu: Cpu) -> bool:
    return cpu.host is not None and cpu.host >= HOST_BUSY * cpu.node


def _amount(cpus: float | None) -> str:
    return wording.cpus(cpus or 0.0)


def _owner(facts: Facts) -> str:
    return 'its owner' if facts.entity == 'user' else 'its project'


def _they(facts: Facts) -> str:
    return 'they have' if facts.entity == 'user' else 'it has'


def _their(facts: Facts) -> str:
    return 'their' if facts.entity == 'user' else 'its'
