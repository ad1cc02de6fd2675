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

"""Sentences for the owner of a VM, from the numbers of that VM alone.

Nothing here says, or depends on, how much anybody else uses: only whether VMs
compete for a resource.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses

ABOVE = 1.05
"""Times the own part from which somebody uses more than that."""

HIGH, LOW = 1.01, 0.99
"""Weights between these are neutral."""

FULL = 0.95
"""Part of what its vCPUs can do from which a VM uses all of them."""

NOTHING_KNOWN = (
    'Nothing is known of this VM for now: its node has not measured it yet. '
    'Ask again in a minute.'
)

NOBODY_JUDGED = (
    'The metric or the policy of this node failed, so nobody is judged at the '
    'moment, and weights stay as they are, until an operator sets it again.'
)

_EXEMPT = (
    'An operator exempted this VM: its weights are not written, and it gets '
    'what it would get without fair sharing.'
)

_NOT_ENFORCED = (
    'Weights are not in force on this node at the moment: it was paused, or '
    'only observes. The rest says what they would be.'
)

_NO_COMPETITION = (
    'VMs compete for nothing on this node at the moment, so fair sharing '
    'makes this VM neither faster nor slower.'
)


@dataclasses.dataclass(frozen=True)
class Claim:
    """What a VM and its owner want of what one control steers.

    :ivar resource: of those that the control steers, the one of which the
        owner uses the largest part.
    :ivar part: of the owner's quota of it that the owner uses; ``None`` if
        there is no quota.
    :ivar contended: whether VMs of the node compete for it.
    :ivar waiting: whether this VM waits for it.
    :ivar weight: of this VM; 1 is neutral.
    :ivar smallest: the smallest weight that is allowed.
    :ivar steered: whether the weight has an effect on this VM.
    """

    resource: str
    part: float | None
    contended: bool
    waiting: bool
    weight: float
    smallest: float
    steered: bool


@dataclasses.dataclass(frozen=True)
class Case:
    """All that advice depends on.

    :ivar entity: ``user`` or ``project``: who the owner is.
    :ivar enforced: whether weights are in force on the node.
    :ivar exempt: whether an operator exempted the VM.
    :ivar claims: one for each control.
    :ivar vcpus_used: part of what its vCPUs can do that the VM did, 0..1.
    :ivar heaviest: the resource that makes the owner heaviest; empty if
        that is not known.
    :ivar preference: of the owner for this VM; 1 is none.
    :ivar places: whether weights are places in a range, from 0 to 1.
    """

    entity: str
    enforced: bool
    exempt: bool
    claims: Sequence[Claim]
    vcpus_used: float
    heaviest: str
    preference: float
    places: bool = False


def sentences(case: Case) -> list[str]:
    """Say whether sharing slows a VM down, why, and what would change it.

    :returns: at least one sentence.
    """
    return list(_sentences(case))


def _sentences(case: Case) -> Iterator[str]:
    if case.exempt:
        yield _EXEMPT
        return
    if not case.enforced:
        yield _NOT_ENFORCED
    contended = [claim for claim in case.claims if claim.contended]
    for claim in contended:
        yield _of_contended(claim, case)
    if not contended:
        yield _NO_COMPETITION
    for claim in case.claims:
        if claim.waiting and not claim.contended:
            yield (
                f'This VM waits for {claim.resource}, but not because of '
                'other VMs: a limit of its flavor or the device itself '
                'holds it back.'
            )
    if case.vcpus_used >= FULL:
        yield (
            'This VM uses all that its vCPUs can do: with more of them it '
            'could use more.'
        )


def _of_contended(claim: Claim, case: Case) -> str:
    if not claim.waiting:
        return (
            f'VMs on this node compete for {claim.resource}, but this VM '
            f'does not wait for it.'
        )
    if not claim.steered:
        return (
            f'This VM competes with others for {claim.resource}, which '
            'cannot be steered for it on this node: its weight has no effect.'
        )
    if case.places:
        return (
            f'This VM competes with others for {claim.resource}. Its weight '
            f'is a place in a range: {claim.weight:.2f}, where 0 is least '
            'and 1 is most service.'
        )
    if claim.part is not None and claim.part >= ABOVE:
        return _greedy(claim, case)
    return _modest(claim, case)


def _greedy(claim: Claim, case: Case) -> str:
    first = (
        f'{_owners(case)} VMs use {_times(claim.part)} {_part(case)} of '
        f'{claim.resource}, for which VMs compete on this node'
    )
    if claim.weight >= LOW:
        return (
            f'{first}; the weight of this VM is {claim.weight:.2f} (1 is '
            'neutral) and may fall until they use less of it.'
        )
    return (
        f'{first}: this VM stands back (weight {claim.weight:.2f}, 1 is '
        f'neutral{_bound(claim)}). Use less {claim.resource} here or in the '
        'other VMs, and it will be served more.'
    )


def _modest(claim: Claim, case: Case) -> str:
    first = f'This VM competes with others for {claim.resource}'
    if claim.weight > HIGH:
        return (
            f'{first}, and is served before heavier ones (weight '
            f'{claim.weight:.2f}, 1 is neutral){_used(claim, case)}.'
        )
    if claim.weight >= LOW:
        return f'{first}, and is served as others of its size are.'
    return (
        f'{first} and stands back (weight {claim.weight:.2f}, 1 is neutral'
        f'{_bound(claim)}){_because(case)}.'
    )


def _used(claim: Claim, case: Case) -> str:
    if claim.part is None:
        return ''
    return (
        f': {_owners(case).lower()} VMs use {_times(claim.part)} '
        f'{_part(case)} of it'
    )


def _because(case: Case) -> str:
    if case.preference < LOW:
        return (
            ', because its owner preferred other VMs (preference '
            f'{case.preference:g})'
        )
    if case.heaviest:
        return (
            f', because {_owners(case).lower()} VMs are heavy as a whole, '
            f'most of all by {case.heaviest}: use less of that'
        )
    return ''


def _bound(claim: Claim) -> str:
    if claim.weight > claim.smallest * HIGH:
        return ''
    return ', the smallest that is allowed'


def _times(part: float | None) -> str:
    number = part or 0.0
    return f'{number:.0f} times' if number >= 10 else f'{number:.2g} times'


def _owners(case: Case) -> str:
    return 'Your' if case.entity == 'user' else "Your project's"


def _part(case: Case) -> str:
    return 'your part' if case.entity == 'user' else 'its part'
