# SPDX-License-Identifier: Apache-2.0


"""The explanation of a VM in sentences: its situation, causes and remedies.

The text is computed from facts alone. Everyone who may see the VM may read it,
so it names the owner in the third person.
"""

from collections.abc import Iterator
import dataclasses

from nova_fairness.agent.explain import situation
from nova_fairness.model import wording

FULL_USE = 0.95
"""Part of its possible CPU use from which a VM counts as fully used."""

IDLE_CPUS = 0.01
"""CPUs below which a VM counts as idle. Its waits for a CPU are left out,
because amounts have two digits."""

HOST_BUSY = 0.1
"""Part of a node's CPUs from which the host's own use is mentioned."""

NOT_MEASURED = (
    'Nothing is known of this VM for now: its node has not measured it yet. '
    'Ask again in a minute.'
)

PLUGIN_FAILED = (
    'The metric or the policy of this node failed, so no weights are computed '
    'now. They stay as they are until an operator sets it again.'
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


def short_summary(facts: situation.SituationFacts) -> str:
    """Return a short explanation of a VM: situation, cause and remedy."""
    return ' '.join(_main_sentences(_without_idle_cpu(facts)))


def full_summary(facts: situation.SituationFacts) -> list[str]:
    """Return the short explanation, and a sentence for every other wait.

    :returns: at least one sentence.
    """
    facts = _without_idle_cpu(facts)
    found = list(_main_sentences(facts))
    if facts.sharing and not (facts.exempt or facts.paused):
        for more in facts.sharing[1:]:
            found.extend(_contention_sentences(facts, more))
        if facts.waits:
            found.append(_uncontended_wait(facts))
    return list(dict.fromkeys(found))


def _without_idle_cpu(
    facts: situation.SituationFacts,
) -> situation.SituationFacts:
    """Return the facts without waits for a CPU if the VM hardly wants one."""
    if facts.cpu.wants >= IDLE_CPUS:
        return facts
    return dataclasses.replace(
        facts,
        sharing=[e for e in facts.sharing if e.resource != 'cpu_time'],
        waits=[each for each in facts.waits if each != 'cpu_time'],
    )


def _main_sentences(facts: situation.SituationFacts) -> Iterator[str]:
    if facts.exempt:
        yield EXEMPT
    elif facts.paused:
        yield PAUSED
    elif facts.best_effort:
        yield BEST_EFFORT
    elif _is_limited(facts):
        # The kernel counts as waiting for others what this costs.
        yield (
            f'This VM gets {_cpu_amount(facts.cpu.gets)}, which is the '
            'limit of '
            'its flavor; other VMs do not slow it down.'
        )
        yield 'Another flavor gives more.'
    elif facts.sharing:
        yield from _contention_sentences(facts, facts.sharing[0])
    elif 'cpu_time' in facts.waits:
        yield from _waits_without_rivals(facts.cpu)
    else:
        yield from _sentences_without_slowdown(facts)


def _sentences_without_slowdown(
    facts: situation.SituationFacts,
) -> Iterator[str]:
    cpu = facts.cpu
    if facts.waits:
        yield _uncontended_wait(facts)
    elif cpu.wants < IDLE_CPUS:
        yield 'This VM is idle, and nothing slows it down.'
    elif cpu.gets >= FULL_USE * cpu.most:
        yield (
            'This VM uses all that its vCPUs can do '
            f'({_cpu_amount(cpu.gets)}), '
            'and nothing slows it down.'
        )
        yield 'With more vCPUs it could use more.'
    else:
        yield (
            f'Nothing slows this VM down: it uses {_cpu_amount(cpu.gets)} and '
            'waits for nothing.'
        )


def _uncontended_wait(facts: situation.SituationFacts) -> str:
    names = ' and '.join(map(wording.resource_name, facts.waits))
    return (
        f'This VM waits for {names}, but other VMs are not the reason: the '
        'device itself, or a limit of its flavor, holds it back.'
    )


def _waits_without_rivals(cpu: situation.VmCpu) -> Iterator[str]:
    """Yield sentences on a VM that waits for a CPU without contention."""
    yield (
        f'This VM gets {_cpu_amount(cpu.gets)} and wants '
        f'{_cpu_amount(cpu.wants)}. Other VMs do not slow it down.'
    )
    if _is_host_busy(cpu):
        yield (
            f'The host is busy itself: its own programs use '
            f'{_cpu_amount(cpu.host)} of {cpu.node:g}. Tell the operator.'
        )
    else:
        yield 'The cause is not known here; tell the operator if it continues.'


def _contention_sentences(
    facts: situation.SituationFacts, sharing: situation.ContendedShare
) -> Iterator[str]:
    yield _slowdown(facts, sharing)
    yield from _fair_part(facts, sharing)
    if not facts.enforced:
        yield NOT_ENFORCED
    elif not sharing.steered:
        yield (
            'No VM is preferred: this node does not steer '
            f'{wording.resource_name(sharing.resource)} for this VM.'
        )
    else:
        yield _weight_effect(facts, sharing)
    if sharing.resource == 'cpu_time' and _is_host_busy(facts.cpu):
        yield (
            f'The host itself uses {_cpu_amount(facts.cpu.host)} of '
            f'{facts.cpu.node:g}, which no VM can have.'
        )


def _slowdown(
    facts: situation.SituationFacts, sharing: situation.ContendedShare
) -> str:
    name = wording.resource_name(sharing.resource)
    if sharing.resource != 'cpu_time':
        return f'This VM is slowed down by sharing: it waits for {name}.'
    cpu = facts.cpu
    return (
        'This VM is slowed down by sharing: it gets '
        f'{_cpu_amount(cpu.gets)} and '
        f'wants {_cpu_amount(cpu.wants)}.'
    )


def _fair_part(
    facts: situation.SituationFacts, sharing: situation.ContendedShare
) -> Iterator[str]:
    if sharing.standing is situation.HeavinessStanding.ALONE:
        return
    name = wording.resource_name(sharing.resource)
    who = f'{sharing.waiting} {facts.entity}s'
    begun = f'On this node {who} wait for {name}'
    if sharing.fair is None or sharing.has is None:
        yield f'{begun}.'
    else:
        yield (
            f"{begun}; by quota {_owner(facts)}'s part of it here is "
            f'{sharing.fair:.0%}, and {_owner_has_phrase(facts)} '
            f'{sharing.has:.0%}.'
        )


def _weight_effect(
    facts: situation.SituationFacts, sharing: situation.ContendedShare
) -> str:
    if sharing.standing is situation.HeavinessStanding.ALONE:
        return (
            f'No other {facts.entity} waits for it: {_owner(facts)} is not '
            'held back for anybody. Another node, or fewer VMs on this one, '
            'give more.'
        )
    if facts.preference < 1 - situation.SIGNIFICANT_PART:
        return (
            f'Its owner preferred other VMs to this one (preference '
            f'{facts.preference:g}); a higher preference gives it more.'
        )
    if sharing.standing is situation.HeavinessStanding.EVEN:
        return _at_fair_part(facts, sharing)
    if sharing.standing is situation.HeavinessStanding.LIGHTER:
        return _is_favoured(facts, sharing)
    return (
        f'All in all {_owner(facts)} is heavier than those it competes with, '
        'so the weight of this VM is '
        f'lowered{_weight_note(sharing)}.{_remedy(facts)}'
    )


def _at_fair_part(
    facts: situation.SituationFacts, sharing: situation.ContendedShare
) -> str:
    begun = 'This' if _has_fair_part(sharing) else 'All in all, this'
    return (
        f'{begun} is {_possessive(facts)} fair part: nothing is wrong. More '
        'quota, or another node, gives more.'
    )


def _has_fair_part(sharing: situation.ContendedShare) -> bool:
    if sharing.fair is None or sharing.has is None:
        return True
    return (
        abs(sharing.has - sharing.fair)
        <= situation.SIGNIFICANT_PART * sharing.fair
    )


def _is_favoured(
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


def _weight_note(sharing: situation.ContendedShare) -> str:
    if sharing.at_end and sharing.weight < 1:
        return f' ({_weight(sharing)}, the smallest that is allowed)'
    more = (
        not sharing.is_place
        and sharing.weight >= 1 - situation.SIGNIFICANT_PART
    )
    return f'{" step by step" if more else ""} ({_weight(sharing)})'


def _weight(sharing: situation.ContendedShare) -> str:
    if sharing.is_place:
        return f'weight {sharing.weight:.2f} in a range from 0 to 1'
    return f'weight {sharing.weight:.2f}, 1 is neutral'


def _remedy(facts: situation.SituationFacts) -> str:
    """Return a sentence on the cause of the heaviness and its remedy."""
    name = wording.resource_name(facts.heaviest)
    if facts.cause is situation.HeavinessCause.RESERVED:
        return (
            f' {_owner(facts).capitalize()} is charged for what '
            f'{_possessive(facts)} VMs have reserved, used or not, most of '
            f'all {name}: fewer or smaller VMs change that.'
        )
    if facts.cause is situation.HeavinessCause.ELSEWHERE:
        return (
            f' The greatest part comes from {_possessive(facts)} VMs on other '
            'nodes: less use there, or fewer VMs, change that.'
        )
    if facts.cause is situation.HeavinessCause.USED and facts.used is not None:
        used, part = (
            wording.amount_text(facts.heaviest, value) for value in facts.used
        )
        return (
            f' The greatest part comes from {name}: '
            f'{_possessive(facts)} VMs use {used} in all, and '
            f'{_possessive(facts)} part of all nodes is '
            f'{part}. If they use less of it, this VM gets more.'
        )
    return ''


def _is_limited(facts: situation.SituationFacts) -> bool:
    waits = {*facts.waits, *(each.resource for each in facts.sharing)}
    limit = facts.cpu.limit
    return (
        'cpu_time' in waits
        and limit is not None
        and facts.cpu.gets >= FULL_USE * limit
    )


def _is_host_busy(cpu: situation.VmCpu) -> bool:
    return cpu.host is not None and cpu.host >= HOST_BUSY * cpu.node


def _cpu_amount(cpus: float | None) -> str:
    return wording.cpus_text(cpus or 0.0)


def _owner(facts: situation.SituationFacts) -> str:
    return 'its owner' if facts.entity == 'user' else 'its project'


def _owner_has_phrase(facts: situation.SituationFacts) -> str:
    return 'they have' if facts.entity == 'user' else 'it has'


def _possessive(facts: situation.SituationFacts) -> str:
    return 'their' if facts.entity == 'user' else 'its'
