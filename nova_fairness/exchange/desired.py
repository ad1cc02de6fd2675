# SPDX-License-Identifier: Apache-2.0

"""Metric and policy of a whole domain: a value with an epoch.

The newest epoch has precedence. Two choices of the same epoch are ordered by
their content, origin first, so that every node selects the same one.
"""

import dataclasses
from typing import Annotated

import msgspec

from nova_fairness import exception
from nova_fairness.exchange import limits
from nova_fairness.model import caller

LARGEST_EPOCH = 2**53 - 1
"""Largest integer that is exact in JSON."""

_Word = Annotated[str, msgspec.Meta(max_length=limits.LONGEST_NAME)]


@dataclasses.dataclass(frozen=True, slots=True)
class DesiredChoice:
    """The choice of metric and policy for all nodes.

    :ivar epoch: 1..LARGEST_EPOCH, one more with every change.
    :ivar metric: name of the metric.
    :ivar policy: name of the policy.
    :ivar origin: creator of the epoch: the controller where peers have keys,
        otherwise the host that was called.
    :ivar signature: of the controller; empty where peers have no keys.
    :ivar user_id: user who requested it; empty if unknown.
    :ivar request_id: request that caused it; empty if unknown.
    """

    epoch: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_EPOCH)]
    metric: limits.Name
    policy: limits.Name
    origin: limits.Name
    signature: _Word = ''
    user_id: _Word = ''
    request_id: _Word = ''

    def __post_init__(self) -> None:
        limits.check_printable(
            metric=self.metric,
            policy=self.policy,
            origin=self.origin,
            signature=self.signature,
            user_id=self.user_id,
            request_id=self.request_id,
        )

    def is_newer_than(self, other: 'DesiredChoice | None') -> bool:
        """Check whether this choice has precedence over another or over
        none.
        """
        if other is None:
            return True
        return _sort_key(self) > _sort_key(other)


def _sort_key(choice: DesiredChoice) -> tuple[int, str, str, str]:
    return choice.epoch, choice.origin, choice.metric, choice.policy


def parse(value: object) -> DesiredChoice:
    """Parse the untrusted output of :func:`dataclasses.asdict`.

    :raises ReportRefused: with the error and the expectation.
    """
    return limits.convert(value, DesiredChoice, 'the desired state')


def newest(*known: DesiredChoice | None) -> DesiredChoice | None:
    """Return the choice with precedence; ``None`` if there is none."""
    winner: DesiredChoice | None = None
    for item in known:
        if item is not None and item.is_newer_than(winner):
            winner = item
    return winner


def next_choice(
    known: DesiredChoice | None,
    metric: str,
    policy: str,
    origin: str,
    by: caller.Asker = caller.UNKNOWN,
) -> DesiredChoice:
    """Return a choice with the next epoch.

    :param by: who requested it.
    :raises ReportRefused: if the last possible epoch was reached.
    """
    epoch = 1 if known is None else known.epoch + 1
    if epoch > LARGEST_EPOCH:
        raise exception.ReportRefused(
            'bounds', f'there is no epoch after {LARGEST_EPOCH}'
        )
    return DesiredChoice(
        epoch,
        metric,
        policy,
        origin,
        user_id=by.user_id,
        request_id=by.request_id,
    )
