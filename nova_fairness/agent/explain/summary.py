# SPDX-License-Identifier: Apache-2.0


"""Two or three sentences: how a VM fares, why, and what would change it.

A pure function of facts. Every reader who may see the VM may read the text, so
it speaks about the owner and not to the owner.
"""

from collections.abc import Iterator
import dataclasses

from nova_fairness.agent.explain import situation
from nova_fairness.model import wording

FULL = 0.95
"""Part of what a VM can use, from which "it uses all it can"."""

NEXT_TO_NOTHING = 0.01
"""CPUs below which a VM wants none, and says nothing about how it is slowed
down: amounts are told with two digits."""

HOST_BUSY = 0.1
"""Part of a node's CPUs from which what the host itself uses is told."""

NOT_MEASURED = (
    'Nothing is known of this VM for now: its node has not measured it yet. '
    'Ask again in a minute.'
)

NOBODY_JUDGED = (
    'The metric or the policy of this node failed, so no user is judged at '
    'the moment. Weights stay as they are until an operator sets it again.'
)

EXEMPT = (
    'An operator exempted this VM from fair sharing: it gets what it would '
    'get without it.'
)

BEST_EFFORT = (
    'This VM is preemptible: it gets what no other VM of its node wants. '
    'Only a server that is not preemptible gets more.'
)

PAUSED = (
    'This VM is paused: its vCPUs do not run, and it waits for nothing. '
    'Unpause it and ask again.'
)

NOT_ENFORCED = (
    'Weights are not in force on this node at the moment: an operator paused '
    'it, or it only observes.'
)


def text(facts: situation.SituationFacts) -> str:
    """Say how a VM fares, why, and what would change it, in short."""
    return ' '.join(_first(_noticeable(facts)))


def sentences(facts: situation.SituationFacts) -> list[str]:
    """Say the same, and as much of all else that it waits for.

    :returns: at least one sentence.
    """
    facts = _noticeable(facts)
    found = list(_first(facts))
    if facts.sharing and not (facts.exempt or facts.paused):
        for more in facts.sharing[1:]:
            found.extend(_shared(facts, more))
        if facts.waits:
            found.append(_held(facts))
    return list(dict.fromkeys(found))


def _noticeable(facts: situation.SituationFacts) -> situation.SituationFacts:
    """The same, without a CPU that a VM waits for and hardly wants."""
    if facts.cpu.wants >= NEXT_TO_NOTHING:
        return facts
    return dataclasses.replace(
        facts,
        sharing=[e for e in facts.sharing if e.resource != 'cpu_time'],
        waits=[each for each in facts.waits if each != 'cpu_time'],
    )


def _first(facts: situation.SituationFacts) -> Iterator[str]:
    if facts.exempt:
        yield EXEMPT
    elif facts.paused:
        yield PAUSED
    elif facts.best_effort:
        yield BEST_EFFORT
    elif _is_limited(facts):
        # The kernel counts as waiting for others what this costs.
        yield (
            f'This VM gets {_amount(facts.cpu.gets)}, which is the limit of '
            'its flavor; other VMs do not slow it down.'
        )
        yield 'Another flavor gives more.'
    elif facts.sharing:
        yield from _shared(facts, facts.sharing[0])
    elif 'cpu_time' in facts.waits:
        yield from _alone(facts.cpu)
    else:
        yield from _free(facts)


def _free(facts: situation.SituationFacts) -> Iterator[str]:
    cpu = facts.cpu
    if facts.waits:
        yield _held(facts)
    elif cpu.wants < NEXT_TO_NOTHING:
        yield 'This VM is idle, and nothing slows it down.'
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


def _held(facts: situation.SituationFacts) -> str:
    names = ' and '.join(map(wording.resource, facts.waits))
    return (
        f'This VM waits for {names}, but other VMs are not the reason: the '
        'device itself, or a limit of its flavor, holds it back.'
    )


def _alone(cpu: situation.Cpu) -> Iterator[str]:
    """Tell of who waits for a CPU, but not because of other VMs."""
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


def _shared(
    facts: situation.SituationFacts, sharing: situation.ContendedShare
) -> Iterator[str]:
    yield _slowed(facts, sharing)
    yield from _parts(facts, sharing)
    if not facts.enforced:
        yield NOT_ENFORCED
    elif not sharing.steered:
        yield (
            'No VM is put first: this node does not steer '
            f'{wording.resource(sharing.resource)} for this VM.'
        )
    else:
        yield _verdict(facts, sharing)
    if sharing.resource == 'cpu_time' and _is_host_busy(facts.cpu):
        yield (
            f'The host itself uses {_amount(facts.cpu.host)} of '
            f'{facts.cpu.node:g}, which no VM can have.'
        )


def _slowed(
    facts: situation.SituationFacts, sharing: situation.ContendedShare
) -> str:
    name = wording.resource(sharing.resource)
    if sharing.resource != 'cpu_time':
        return f'This VM is slowed down by sharing: it waits for {name}.'
    cpu = facts.cpu
    return (
        f'This VM is slowed down by sharing: it gets {_amount(cpu.gets)} and '
        f'wants {_amount(cpu.wants)}.'
    )


def _parts(
    facts: situation.SituationFacts, sharing: situation.ContendedShare
) -> Iterator[str]:
    if sharing.standing is situation.HeavinessStanding.ALONE:
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


def _verdict(
    facts: situation.SituationFacts, sharing: situation.ContendedShare
) -> str:
    if sharing.standing is situation.HeavinessStanding.ALONE:
        return (
            f'No other {facts.entity} waits for it: {_owner(facts)} is not '
            'held back for anybody. Another node, or fewer VMs on this one, '
            'give more.'
        )
    if facts.preference < 1 - situation.DIFFERS:
        return (
            f'Its owner preferred other VMs to this one (preference '
            f'{facts.preference:g}); a higher preference gives it more.'
        )
    if sharing.standing is situation.HeavinessStanding.EVEN:
        return _even(facts, sharing)
    if sharing.standing is situation.HeavinessStanding.LIGHTER:
        return _lighter(facts, sharing)
    return (
        f'All in all {_owner(facts)} is heavier than those it competes with, '
        f'so this VM stands back{_end(sharing)}.{_remedy(facts)}'
    )


def _even(
    facts: situation.SituationFacts, sharing: situation.ContendedShare
) -> str:
    begun = 'This' if _has_fair(sharing) else 'All in all, this'
    return (
        f'{begun} is {_their(facts)} fair part: nothing is wrong. More '
        'quota, or another node, gives more.'
    )


def _has_fair(sharing: situation.ContendedShare) -> bool:
    if sharing.fair is None or sharing.has is None:
        return True
    return abs(sharing.has - sharing.fair) <= situation.DIFFERS * sharing.fair


def _lighter(
    facts: situation.SituationFacts, sharing: situation.ContendedShare
) -> str:
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


def _end(sharing: situation.ContendedShare) -> str:
    if sharing.at_end and sharing.weight < 1:
        return f' ({_weight(sharing)}, the smallest that is allowed)'
    more = not sharing.is_place and sharing.weight >= 1 - situation.DIFFERS
    return f'{" more and more" if more else ""} ({_weight(sharing)})'


def _weight(sharing: situation.ContendedShare) -> str:
    if sharing.is_place:
        return f'weight {sharing.weight:.2f} in a range from 0 to 1'
    return f'weight {sharing.weight:.2f}, 1 is neutral'


def _remedy(facts: situation.SituationFacts) -> str:
    """Say what makes the owner heavy, and what would change it."""
    name = wording.resource(facts.heaviest)
    if facts.cause is situation.HeavinessCause.RESERVED:
        return (
            f' {_owner(facts).capitalize()} is charged for what '
            f'{_their(facts)} VMs have reserved, used or not, most of all '
            f'{name}: fewer or smaller VMs change that.'
        )
    if facts.cause is situation.HeavinessCause.ELSEWHERE:
        return (
            f' The greatest part comes from {_their(facts)} VMs on other '
            'nodes: less use there, or fewer VMs, change that.'
        )
    if facts.cause is situation.HeavinessCause.USED and facts.used is not None:
        used, part = (
            wording.amount(facts.heaviest, value) for value in facts.used
        )
        return (
            f' The greatest part comes from {name}: {_their(facts)} VMs use '
            f'{used} in all, and {_their(facts)} part of all nodes is '
            f'{part}. If they use less of it, this VM gets more.'
        )
    return ''


def _is_limited(facts: situation.SituationFacts) -> bool:
    waits = {*facts.waits, *(each.resource for each in facts.sharing)}
    limit = facts.cpu.limit
    return (
        'cpu_time' in waits
        and limit is not None
        and facts.cpu.gets >= FULL * limit
    )


def _is_host_busy(cpu: situation.Cpu) -> bool:
    return cpu.host is not None and cpu.host >= HOST_BUSY * cpu.node


def _amount(cpus: float | None) -> str:
    return wording.cpus(cpus or 0.0)


def _owner(facts: situation.SituationFacts) -> str:
    return 'its owner' if facts.entity == 'user' else 'its project'


def _they(facts: situation.SituationFacts) -> str:
    return 'they have' if facts.entity == 'user' else 'it has'


def _their(facts: situation.SituationFacts) -> str:
    return 'their' if facts.entity == 'user' else 'its'
